// Who started this process, together with how many others: read from the environment that mpirun, mpiexec and srun give
// to what they start.
#ifndef TARN_COMM_LAUNCHER_H
#define TARN_COMM_LAUNCHER_H

#include <stdbool.h>

typedef struct tarn__launcher {
  int rank, size;   // by the launcher; size 1 where nothing was started together with this process
  const char *mpi;  // the module that belongs to it: "openmpi" or "mpich"; NULL: the launcher does not tell
} tarn__launcher;

// TARN_MPI (openmpi or mpich) overrides what the launcher tells about the MPI.
tarn__launcher tarn__launcher_find(void);

// Whether this process could not join the others, which may wait for it.
void tarn__launcher_unjoined(bool is);
// If so, has a launcher end all that it has started which does not do so by itself when a process ends that never
// called MPI_Init: the Hydra of MPICH waits for it, and so do the other processes.
void tarn__launcher_abandon(void);

// Takes what launchers say of this process out of the environment, so that what it starts is alone. No other thread may
// read or change the environment meanwhile.
void tarn__launcher_leave(void);

#endif
