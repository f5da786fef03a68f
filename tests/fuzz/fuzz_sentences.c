// Text that is split into sentences. The length of the input chooses language and options.
#include <string.h>

#include "fuzz/fuzz.h"
#include "tarn/text.h"

void fuzz_prepare(void) {}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const char *file = "text";
  tarn_sentences_options options;
  tarn_sentences_result result;
  tarn_sentences_default(&options);
  options.language = size % 2 ? "en" : "de";
  options.wrapped = size / 2 % 2;
  options.strict = size / 4 % 4 == 0;
  fuzz_write(file, data, size);
  if (!fuzz_good(tarn_sentences_write(&result, "sentences", &file, 1, &options))) return 0;
  FUZZ_REQUIRE(result.sentences >= result.paragraphs && result.replaced <= result.lines);
  return 0;
}
