// Import of a GPT-2 model of Hugging Face: config.json, then the line "-- model --", then model.safetensors.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz/fuzz.h"
#include "tarn/checkpoint.h"
#include "tarn/vocab.h"

static const char MARK[] = "\n-- model --\n";

void fuzz_prepare(void) {
  tarn_vocab_options options;
  tarn_vocab_default(&options);
  options.type = TARN_VOCAB_TYPE_BYTE;
  fuzz_must(tarn_vocab_train("bytes", NULL, 0, &options));
  if (mkdir("in", 0777) != 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const uint8_t *mark = memmem(data, size, MARK, sizeof MARK - 1);
  if (!mark) return 0;
  const size_t head = (size_t)(mark - data), tail = head + sizeof MARK - 1;
  fuzz_write("in/config.json", data, head);
  fuzz_write("in/model.safetensors", data + tail, size - tail);
  if (!fuzz_good(tarn_checkpoint_import_gpt2("out", "in", "bytes"))) return 0;
  tarn_checkpoint_info *info;
  fuzz_must(tarn_checkpoint_info_open(&info, "out"));
  tarn_checkpoint_info_close(&info);
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed) {
  uint8_t *mark = memmem(data, size, MARK, sizeof MARK - 1);
  if (!mark || seed % 16 == 0) return LLVMFuzzerMutate(data, size, room);
  const size_t head = (size_t)(mark - data), tail = head + sizeof MARK - 1;
  if (seed % 2 == 0) return tail + fuzz_mutate_tensors(data + tail, size - tail, room - tail, seed);
  uint8_t *text = malloc(room);
  if (!text) return 0;
  memcpy(text, data, head);
  const size_t most = room - size < 200 ? head + (room - size) : head + 200, now = LLVMFuzzerMutate(text, head, most);
  memmove(data + now, mark, size - head);
  memcpy(data, text, now);
  free(text);
  return size - head + now;
}
