// Processes of the program, for the trainings of a sweep and the steps of a recipe. child.c.
#ifndef TARN_SWEEP_CHILD_H
#define TARN_SWEEP_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/status.h"

// A process of a program: its path and arguments, which begin with its name.
typedef struct tarn__child {
  const char *program;
  const char *const *arguments;
  const char *folder;  // it works in; NULL: where the caller does
  const char *output;  // file for its standard output; NULL: none
  const char *errors;  // file for its standard error
  bool outlives;       // it does not die with the calling thread, because it would leave its work half done
} tarn__child;
// Starts it. *pid: 0 if it fails, which no call of kill() or waitpid() may be given.
tarn_status tarn__child_start(pid_t *pid, const tarn__child *child) TARN_CHECKED;
// Waits for the end of the process. Fails where its exit status is lost, as to a caller that ignores SIGCHLD.
tarn_status tarn__child_wait(int *wait_status, pid_t pid, const tarn__child *child) TARN_CHECKED;
// The last line of its standard error without the program's name, or its exit status; at most `size` bytes.
void tarn__child_message(char *text, size_t size, const char *errors, int wait_status);
// Whether a signal to stop ended it.
bool tarn__child_was_stopped(int wait_status);

#endif
