// WordPiece: one file of ours, or an archive of BERT's vocab.txt and tokenizer_config.json.
#include "fuzz/vocab_use.h"

void fuzz_prepare(void) {}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tarn_vocab *vocab;
  vocab_read(data, size, false);
  if (fuzz_unpack("in", data, size) == 0) return 0;
  if (!fuzz_good(tarn_vocab_open(&vocab, "in"))) return 0;
  vocab_use(vocab, (const char *)data, size < 300 ? size : 300, false);
  tarn_vocab_close(&vocab);
  return 0;
}
