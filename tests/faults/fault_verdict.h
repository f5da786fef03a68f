// What a command must have left after a fault, and the lines that it said.
#ifndef TARN_TESTS_FAULT_VERDICT_H
#define TARN_TESTS_FAULT_VERDICT_H

#include "fault_command.h"
#include "fault_tree.h"

typedef struct verdict {
  fault_command *command;
  const char *before;  // folder before the command
  const char *loads;   // script of bash that opens what the command may leave half done (a training), or NULL
  const char *drops;   // files that the command removes on its way and makes anew at its end: "run/result.json"
  bool keeps;          // files that it cannot remove may stay
  bool messages;       // print the distinct messages
  tree old, whole;     // before, and after an undisturbed run
  char *output;        // of an undisturbed run, on standard output
  size_t output_size;
  double seconds;
  size_t failures;
} verdict;

// Runs the command undisturbed, twice: both must write the same bytes. Returns the counters and
// places in `counted`.
void verdict_begin(verdict *v, fault_state *counted);
void verdict_close(verdict *v);

// Puts the folder back to what it was before the command.
void verdict_reset(verdict *v);

// Checks what a faulted command left, goes on, and checks that the end is that of an undisturbed run. `what` names the
// fault. After a kill or a loss of power temporary files may wait for the next run; after a failure nothing may be
// left.
void verdict_after_failure(verdict *v, const char *what, int wait_status, bool memory);
void verdict_after_kill(verdict *v, const char *what);

void verdict_print_messages(void);

#endif
