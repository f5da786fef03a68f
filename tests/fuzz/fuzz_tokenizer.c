// A tokenizer.json of Hugging Face and the settings beside it, as an archive; and the file of ours that it makes.
#include <sys/stat.h>

#include "fuzz/vocab_use.h"
#include "text/vocab_formats.h"

void fuzz_prepare(void) {
  if (mkdir("back", 0777) != 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tarn_vocab *vocab, *again;
  if (size > 15 && memcmp(data, "tarn-vocab bpe ", 15) == 0) {
    vocab_read(data, size, false);
    return 0;
  }
  if (fuzz_unpack("in", data, size) == 0) return 0;
  if (!fuzz_good(tarn__vocab_open_tokenizer(&vocab, "in", fuzz_choice(data, size) % 3 ? 0 : 900, -1, -1))) return 0;
  vocab_use(vocab, (const char *)data, size < 300 ? size : 300, false);
  fuzz_must(tarn__vocab_export_tokenizer("back", vocab));
  // A token may have a text that is no JSON, and so may be another one there.
  if (fuzz_good(tarn__vocab_open_tokenizer(&again, "back", tarn_vocab_size(vocab), -1, -1))) tarn_vocab_close(&again);
  tarn_vocab_close(&vocab);
  return 0;
}
