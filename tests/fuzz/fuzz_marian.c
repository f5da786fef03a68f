// Marian's and fairseq's vocabularies, and lists of tokens: one file of ours, or an archive of the package's files,
// read for both sides, or of fairseq's, or of a list.
#include "fuzz/vocab_use.h"
#include "text/vocab_formats.h"

void fuzz_prepare(void) {}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tarn_vocab *vocab;
  vocab_read(data, size, false);
  if (fuzz_unpack("in", data, size) == 0) return 0;
  for (int list = 0; list < 2; list++) {
    if (!fuzz_good(tarn_vocab_open(&vocab, list ? "in/tokens.source.txt" : "in/dict.de.txt"))) continue;
    vocab_use(vocab, (const char *)data, size < 300 ? size : 300, false);
    tarn_vocab_close(&vocab);
  }
  for (int target = 0; target < 2; target++) {
    if (!fuzz_good(tarn__vocab_open_marian(&vocab, "in", target == 1))) continue;
    FUZZ_REQUIRE(tarn__vocab_is_marian(vocab));
    vocab_use(vocab, (const char *)data, size < 300 ? size : 300, false);
    fuzz_must(tarn__vocab_export_marian(".", vocab, vocab));
    tarn_vocab *again;
    fuzz_must(tarn__vocab_open_marian(&again, ".", false));
    FUZZ_REQUIRE(strcmp(tarn_vocab_hash(vocab), tarn_vocab_hash(again)) == 0);
    tarn_vocab_close(&again);
    tarn_vocab_close(&vocab);
  }
  return 0;
}
