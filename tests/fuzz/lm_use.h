// The tiny language model over bytes whose readers are fuzzed; include it once in a target.
#ifndef FUZZ_LM_USE_H
#define FUZZ_LM_USE_H

#include <stdlib.h>

#include "fuzz/fuzz.h"
#include "tarn/lm.h"

static tarn_lm *lm;

static void leave_model(void) { tarn_lm_close(&lm); }

void fuzz_prepare(void) {
  tarn_lm_options options;
  tarn_lm_default(&options);
  options.threads = 1;
  options.overlong = TARN_TRANSLATE_OVERLONG_TRUNCATE;
  fuzz_copy("lm.safetensors", "tests/fuzz/data/lm.safetensors");
  fuzz_must(tarn_lm_open(&lm, "lm.safetensors", &options));
  atexit(leave_model);
}

#endif
