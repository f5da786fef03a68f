// Import of a GGUF file, with the vocabulary of the file or another one, and its way back.
#include "fuzz/fuzz.h"
#include "tarn/lab/foreign.h"
#include "tarn/vocab.h"

void fuzz_prepare(void) {
  tarn_vocab_options options;
  tarn_vocab_default(&options);
  options.type = TARN_VOCAB_TYPE_BYTE;
  fuzz_must(tarn_vocab_train("bytes", NULL, 0, &options));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_write("in.gguf", data, size);
  const bool own = fuzz_good(tarn_checkpoint_import_gguf("out", "in.gguf", NULL));
  if (!own && !fuzz_good(tarn_checkpoint_import_gguf("out", "in.gguf", "bytes"))) return 0;
  const tarn_gguf_type type = (tarn_gguf_type)(fuzz_choice(data, size) % 3);
  if (!fuzz_good(tarn_checkpoint_export_gguf("back.gguf", "out", type))) return 0;
  (void)fuzz_good(tarn_checkpoint_import_gguf("again", "back.gguf", own ? NULL : "bytes"));
  return 0;
}
