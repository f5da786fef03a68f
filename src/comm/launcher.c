#include "comm/launcher.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// Environment variables of launchers: mpirun of Open MPI, Hydra's mpiexec of MPICH (and srun --mpi=pmi2), and srun of
// Slurm, which runs either. srun comes last, because the others are also used within an allocation of Slurm.
static const struct {
  const char *rank, *size, *mpi;
} launchers[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "openmpi"},
                 {"PMI_RANK", "PMI_SIZE", "mpich"},
                 {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", NULL}};

static int number(const char *name) {
  const char *text = getenv(name);
  char *end = NULL;
  const long value = text ? strtol(text, &end, 10) : 0;
  return text && end != text && *end == '\0' && value > 0 && value < 1 << 20 ? (int)value : 0;
}

tarn__launcher tarn__launcher_find(void) {
  tarn__launcher found = {.size = 1};
  for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
    if (number(launchers[i].size) < 1) continue;
    found = (tarn__launcher){number(launchers[i].rank), number(launchers[i].size), launchers[i].mpi};
    break;
  }
  const char *slurm = getenv("SLURM_MPI_TYPE"), *named = getenv("TARN_MPI");
  if (!found.mpi && slurm) found.mpi = strncmp(slurm, "pmix", 4) == 0 ? "openmpi" : "mpich";
  if (named && *named) found.mpi = named;
  return found;
}

static atomic_bool unjoined;

void tarn__launcher_unjoined(bool is) { atomic_store(&unjoined, is); }

// A write to an ended launcher must not raise a signal. MPICH uses a socket, others perhaps a pipe.
static bool tell(int fd, const char *text, size_t length) {
  ssize_t sent = send(fd, text, length, MSG_NOSIGNAL);
  if (sent < 0 && errno == ENOTSOCK) sent = write(fd, text, length);
  return sent == (ssize_t)length;
}

// The simple PMI of MPICH (src/pmi/simple of its sources): lines of text on a descriptor that Hydra gives to each
// process. It accepts an abort only from a process that has registered.
void tarn__launcher_abandon(void) {
  static const char hello[] = "cmd=init pmi_version=1 pmi_subversion=1\n", end[] = "cmd=abort exitcode=1\n";
  const int fd = atomic_exchange(&unjoined, false) ? number("PMI_FD") : 0;
  struct pollfd answer = {.fd = fd, .events = POLLIN};
  char text[256];
  if (fd == 0 || !tell(fd, hello, sizeof hello - 1)) return;
  if (poll(&answer, 1, 2000) != 1 || read(fd, text, sizeof text) <= 0) return;
  // The launcher now kills this process too.
  if (tell(fd, end, sizeof end - 1)) poll(&answer, 1, 2000);
}

void tarn__launcher_leave(void) {
  for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
    unsetenv(launchers[i].rank);
    unsetenv(launchers[i].size);
  }
  unsetenv("PMI_FD");
}
