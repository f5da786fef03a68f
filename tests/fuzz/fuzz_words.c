// A vocabulary of words.
#include "fuzz/vocab_use.h"

void fuzz_prepare(void) {}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  vocab_read(data, size, false);
  return 0;
}
