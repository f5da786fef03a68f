// A text of which a part is taken. The length of the input chooses lines or bytes, and which.
#include "fuzz/fuzz.h"
#include "tarn/split.h"

void fuzz_prepare(void) {}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tarn_split_options options;
  tarn_split_result result;
  tarn_split_default(&options);
  options.every = (int64_t)(size % 4);
  if (options.every > 0) {
    options.header = (int64_t)(size / 4 % 2);
    options.rest = "rest";
  } else {
    options.from = (int64_t)(size / 4 % 8);
    options.bytes = 1 + (int64_t)(size / 32);
  }
  fuzz_write("text", data, size);
  if (!fuzz_good(tarn_split_write(&result, "taken", "text", &options))) return 0;
  FUZZ_REQUIRE(result.taken > 0 && (options.every != 1 || result.rest == 0));
  FUZZ_REQUIRE(options.every > 0 || result.taken <= options.bytes + 3);
  return 0;
}
