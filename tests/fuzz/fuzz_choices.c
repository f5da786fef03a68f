// Questions of multiple choice: a file of JSON lines, answered by a tiny language model over bytes.
#include <stdlib.h>

#include "fuzz/fuzz.h"
#include "tarn/choices.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tarn_choices_options options;
  tarn_choices_result *r;
  tarn_choices_default(&options);
  fuzz_write("in", data, size);
  if (!fuzz_good(tarn_choices_run(&r, lm, "in", &options))) return 0;
  FUZZ_REQUIRE(r->questions > 0 && r->choices >= r->questions && r->acc.right <= r->questions);
  FUZZ_REQUIRE(r->acc.low <= r->acc.accuracy && r->acc.accuracy <= r->acc.high);
  tarn_choices_close(&r);
  return 0;
}
