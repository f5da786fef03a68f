// Shows the events of a sweep as it runs.
#ifndef TARN_TOOLS_SWEEP_EVENTS_H
#define TARN_TOOLS_SWEEP_EVENTS_H

#include <jansson.h>
#include <stdbool.h>
#include <time.h>

#include "cli.h"
#include "tarn/lab/sweep.h"

typedef struct sweep_view {
  const cli_command *command;
  const tarn_sweep *sweep;
  bool json, quiet, terminal;
  bool elsewhere;    // other processes work on the sweep too, or instead, so the remaining time is unknown
  const char *only;  // a single run
  int code;          // of a failure to print
  time_t *shown;     // [runs] time of the last progress line, for output that is not a terminal
} sweep_view;

// The on_event of tarn_sweep_options; `user` is a sweep_view.
void sweep_view_event(void *user, const tarn_sweep_event *event);
// Prints an object as a line of JSON at once, and frees it.
int sweep_view_json(const sweep_view *view, json_t *object);

#endif
