// One command under the library of faults.
#ifndef TARN_TESTS_FAULT_COMMAND_H
#define TARN_TESTS_FAULT_COMMAND_H

#include <stdbool.h>

#include "fault_state.h"

typedef struct fault_command {
  const char *name;
  const char *program, *library;
  char *const *arguments;  // of the program, ended by NULL; [0] is its name
  const char *again;       // script of bash that goes on after a kill or a fault; NULL: the command once more
  const char *folder;      // working directory
  const char *input;       // file for standard input, or NULL
  const char *out, *err;   // where its standard output and error go
  fault_state *state;
  const char *state_path;
  bool only_first;  // processes that it starts meet no faults
  double timeout;   // seconds
} fault_command;

// Maps a new state file.
fault_state *command_state(const char *path, const char *program);

// Clears the counters and orders.
void command_reset(fault_command *c);

// Runs the command, or the script, and returns the status of waitpid(); -1 where it took too long and was killed.
// `kill_after` (seconds; negative: never) sends SIGKILL.
int command_run(fault_command *c, const char *script, double kill_after, double *seconds);

#endif
