// Questions of multiple choice: a file of JSON lines, answered by a tiny language model over bytes.
#include "fuzz/lm_use.h"
#include "tarn/choices.h"

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
