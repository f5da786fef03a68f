// Import of a model in Marian's own files: an input is model.npz, whose settings stand in it. The vocabulary is one of
// 258 words and the token that the decoder reads first.
#include <stdio.h>
#include <sys/stat.h>

#include "fuzz/fuzz.h"
#include "tarn/checkpoint.h"
#include "tarn/lab/foreign.h"

void fuzz_prepare(void) {
  enum { WORDS = 258 };
  static char text[16 * WORDS];
  int at = snprintf(text, sizeof text, "tarn-vocab whitespace 1\nlowercase 0\nsize %d\n<unk>\n<s>\n</s>\n", WORDS + 1);
  for (int i = 3; i < WORDS; i++) at += snprintf(text + at, sizeof text - (size_t)at, "word%d\n", i);
  at += snprintf(text + at, sizeof text - (size_t)at, "<pad>\n");
  fuzz_write("words", text, (size_t)at);
  if (mkdir("in", 0777) != 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_write("in/model.npz", data, size);
  if (!fuzz_good(tarn_checkpoint_import_marian("out", "in", "words", NULL))) return 0;
  tarn_checkpoint_info *info;
  fuzz_must(tarn_checkpoint_info_open(&info, "out"));
  tarn_checkpoint_info_close(&info);
  return 0;
}
