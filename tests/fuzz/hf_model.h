// A model of Hugging Face as one input: config.json, then the line "-- model --", then model.safetensors. For one
// target a program: it defines the mutator.
#ifndef TARN_TESTS_FUZZ_HF_MODEL_H
#define TARN_TESTS_FUZZ_HF_MODEL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz/fuzz.h"
#include "tarn/checkpoint.h"
#include "tarn/vocab.h"

static const char MARK[] = "\n-- model --\n";

// Makes the byte vocabulary "bytes" and the folder "in".
static inline void hf_prepare(bool mask_symbols) {
  tarn_vocab_options options;
  tarn_vocab_default(&options);
  options.type = TARN_VOCAB_TYPE_BYTE;
  options.mask_symbols = mask_symbols;
  fuzz_must(tarn_vocab_train("bytes", NULL, 0, &options));
  if (mkdir("in", 0777) != 0) abort();
}

// Imports an input by `import`; what it writes must be a checkpoint. Returns whether there is one.
static inline bool hf_import(tarn_status (*import)(const char *, const char *, const char *), const uint8_t *data,
                             size_t size) {
  const uint8_t *mark = memmem(data, size, MARK, sizeof MARK - 1);
  if (!mark) return false;
  const size_t head = (size_t)(mark - data), tail = head + sizeof MARK - 1;
  fuzz_write("in/config.json", data, head);
  fuzz_write("in/model.safetensors", data + tail, size - tail);
  if (!fuzz_good(import("out", "in", "bytes"))) return false;
  tarn_checkpoint_info *info;
  fuzz_must(tarn_checkpoint_info_open(&info, "out"));
  tarn_checkpoint_info_close(&info);
  return true;
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

#endif
