// Minimal pairs: an archive of files *.jsonl, scored by a tiny language model over bytes.
#include "fuzz/lm_use.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tarn_minimal_pairs_result *result;
  if (fuzz_unpack("in", data, size) == 0) return 0;
  if (!fuzz_good(tarn_minimal_pairs_run(&result, lm, "in", NULL, NULL))) return 0;
  FUZZ_REQUIRE(result->paradigm_count > 0 && result->overall.accuracy >= 0 && result->overall.accuracy <= 1);
  tarn_minimal_pairs_close(&result);
  return 0;
}
