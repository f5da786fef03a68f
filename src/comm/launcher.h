// The launcher of this process and the number of processes, from the environment set by mpirun, mpiexec and srun.
#ifndef TARN_COMM_LAUNCHER_H
#define TARN_COMM_LAUNCHER_H

#include <stdbool.h>

typedef struct tarn__launcher {
  int rank, size;   // by the launcher; size 1 if this process was started alone
  const char *mpi;  // its module: "openmpi" or "mpich"; NULL: unknown
} tarn__launcher;

// TARN_MPI (openmpi or mpich) overrides the launcher's information about the MPI.
tarn__launcher tarn__launcher_find(void);

// Records whether this process could not join the others, which may wait for it.
void tarn__launcher_unjoined(bool is);
// If so, asks the launcher to end all processes, in case it does not do so when a process ends without MPI_Init: Hydra
// of MPICH waits for it, and so do the other processes.
void tarn__launcher_abandon(void);

// Removes the launchers' variables from the environment, so that child processes are alone. No other thread may access
// the environment meanwhile.
void tarn__launcher_leave(void);

#endif
