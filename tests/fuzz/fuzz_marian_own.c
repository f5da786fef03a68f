// Import of a model in Marian's own files: an input is model.npz, whose settings stand in it. The vocabulary is one of
// bytes, whose last token is what the decoder reads first.
#include <sys/stat.h>

#include "fuzz/fuzz.h"
#include "tarn/checkpoint.h"
#include "tarn/lab/foreign.h"
#include "tarn/vocab.h"

void fuzz_prepare(void) {
  tarn_vocab_options options;
  tarn_vocab_default(&options);
  options.type = TARN_VOCAB_TYPE_BYTE;
  fuzz_must(tarn_vocab_train("bytes", NULL, 0, &options));
  if (mkdir("in", 0777) != 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_write("in/model.npz", data, size);
  if (!fuzz_good(tarn_checkpoint_import_marian("out", "in", "bytes", NULL))) return 0;
  tarn_checkpoint_info *info;
  fuzz_must(tarn_checkpoint_info_open(&info, "out"));
  tarn_checkpoint_info_close(&info);
  return 0;
}
