// Synthetic run directories, for tests of their readers.
#ifndef TARN_TESTS_RESULTS_RUNS_H
#define TARN_TESTS_RESULTS_RUNS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "sandbox.h"

#define RUN_MODEL                                                \
  "model: { d_model: 16 }\nkinds:\n  L: { heads: 2, ffn: 32 }\n" \
  "  R: { heads: 2, ffn: 32, frozen: yes }\n"                    \
  "data: { vocab: vocab, train: train, valid: valid }\n"
#define RUN_REGULAR RUN_MODEL "encoder: { layers: L*2 }\ndecoder: { layers: L }\n"
#define RUN_RESERVOIR RUN_MODEL "encoder: { layers: L R L }\ndecoder: { layers: L }\n"

static inline void run_file(const char *run, const char *name, const char *text) {
  char path[512];
  if (tarn__mkdir(run) != TARN_STATUS_OK) abort();
  snprintf(path, sizeof path, "%s/%s", run, name);
  sandbox_write(path, text, strlen(text));
}

// config.yaml of a model with a seed and train.max_minutes.
static inline void run_config(const char *run, const char *model, int seed, double minutes) {
  char text[2048];
  snprintf(text, sizeof text, "%strain: { seed: %d, max_minutes: %.9g, max_updates: 0 }\n", model, seed, minutes);
  run_file(run, "config.yaml", text);
}

// result.json of a finished run; `more` is inserted among its fields (", \"clock\": ...").
static inline void run_result(const char *run, const char *end, int update, double seconds, const char *more) {
  char text[2048];
  snprintf(text, sizeof text,
           "{\"version\": \"0.1.0\", \"status\": \"finished\", \"end\": \"%s\", \"update\": %d, \"epoch\": %.9g,"
           " \"seconds\": %.17g, \"clock\": \"wall\", \"threads\": 2, \"peak_bytes\": 1000000,"
           " \"parameters\": {\"total\": 30, \"trained\": 20, \"frozen\": 10, \"shared_saved\": 0}%s}\n",
           end, update, update / 100.0, seconds, more);
  run_file(run, "result.json", text);
}

#endif
