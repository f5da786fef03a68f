// The options and the output of `tarn plan --ranks`.
#ifndef TARN_TOOLS_SCALE_OUTPUT_H
#define TARN_TOOLS_SCALE_OUTPUT_H

#include "json_output.h"
#include "tarn/lab/forecast.h"

enum { SCALE_MOST = 64 };  // length of a list of ranks

// As given; NULL and NAN: not given.
typedef struct scale_wanted {
  const char *ranks;
  double bandwidth, latency, step_seconds, optimiser_seconds, adding;
  bool one_machine;
} scale_wanted;

// Returns CLI_OK, or the exit code of a usage error. `ranks` holds the list, and must live as long as the options.
int scale_options(tarn_scale_options *options, int ranks[SCALE_MOST], const cli_command *command,
                  const scale_wanted *wanted);

void scale_print_text(const tarn_scale *scale);
// NULL: out of memory.
json_t *scale_json(const tarn_scale *scale);

#endif
