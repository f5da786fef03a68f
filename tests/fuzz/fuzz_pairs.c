// Minimal pairs: an archive of files *.jsonl, scored by a tiny language model over bytes.
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tarn_minimal_pairs_result *result;
  if (fuzz_unpack("in", data, size) == 0) return 0;
  if (!fuzz_good(tarn_minimal_pairs_run(&result, lm, "in", NULL, NULL))) return 0;
  FUZZ_REQUIRE(result->paradigm_count > 0 && result->overall.accuracy >= 0 && result->overall.accuracy <= 1);
  tarn_minimal_pairs_close(&result);
  return 0;
}
