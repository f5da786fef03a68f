// GPT-2's own two files: an archive of vocab.json and merges.txt, or of encoder.json and vocab.bpe.
#include "fuzz/vocab_use.h"
#include "text/vocab_formats.h"

void fuzz_prepare(void) {}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tarn_vocab *vocab;
  if (fuzz_unpack("in", data, size) == 0) return 0;
  if (!fuzz_good(tarn_vocab_open(&vocab, "in"))) return 0;
  vocab_use(vocab, (const char *)data, size < 300 ? size : 300, true);
  fuzz_must(tarn__vocab_export_gpt2(".", vocab));
  tarn_vocab *again;
  fuzz_must(tarn_vocab_open(&again, "."));
  FUZZ_REQUIRE(strcmp(tarn_vocab_hash(vocab), tarn_vocab_hash(again)) == 0);
  tarn_vocab_close(&again);
  tarn_vocab_close(&vocab);
  return 0;
}
