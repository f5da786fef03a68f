// GPT-2's vocabulary as the two files that Hugging Face's packages read.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "text/gpt2.h"
#include "text/vocab_files.h"
#include "text/vocab_formats.h"

static tarn__gpt2_sort sort_of(const tarn_vocab *vocab) {
  size_t size;
  const void *bytes = tarn_vocab_bytes(vocab, &size);
  return tarn__gpt2_sort_of(bytes, size);
}

bool tarn__vocab_is_gpt2(const tarn_vocab *vocab) { return sort_of(vocab) == TARN__GPT2_OWN; }
bool tarn__vocab_is_roberta(const tarn_vocab *vocab) { return sort_of(vocab) == TARN__GPT2_ROBERTA; }

static tarn_status write_file(const char *folder, const char *name, const char *data, size_t size) {
  char path[PATH_MAX];
  TARN_TRY(tarn__path_join(path, folder, name));
  return tarn__file_write(path, data, size);
}

// The merges are the file's last lines, after one line for each token and three with numbers.
static tarn_status write_merges(const char *folder, const tarn_vocab *vocab) {
  static const char VERSION[] = "#version: 0.2\n";
  size_t size;
  const char *bytes = tarn_vocab_bytes(vocab, &size);
  const char *at = bytes;
  for (int64_t line = 0; line < (int64_t)tarn_vocab_size(vocab) + 3; line++) {
    at = memchr(at, '\n', size - (size_t)(at - bytes));
    TARN_REQUIRE(at, INTERNAL, "the vocabulary's file has no merges");
    at++;
  }
  const size_t rest = size - (size_t)(at - bytes);
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, sizeof VERSION + rest, 1));
  char *text = memory;
  memcpy(text, VERSION, sizeof VERSION - 1);
  memcpy(text + sizeof VERSION - 1, at, rest);
  tarn_status status = write_file(folder, "merges.txt", text, sizeof VERSION - 1 + rest);
  tarn__free(text);
  return status;
}

tarn_status tarn__vocab_export_gpt2(const char *folder, const tarn_vocab *vocab) {
  TARN_REQUIRE(sort_of(vocab) != TARN__GPT2_NONE, USAGE,
               "only a vocabulary of GPT-2's or RoBERTa's kind has merges.txt and vocab.json");
  TARN_TRY(tarn__vocab_json_write(folder, "vocab.json", vocab));
  return write_merges(folder, vocab);
}
