// BERT's vocabulary as the files that Hugging Face's packages read.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "text/vocab_formats.h"
#include "text/vocab_kind.h"
#include "text/wordpiece.h"

bool tarn__vocab_is_wordpiece(const tarn_vocab *vocab) {
  size_t size;
  const char *bytes = tarn_vocab_bytes(vocab, &size);
  return size >= sizeof TARN__WORDPIECE_MAGIC - 1 &&
         memcmp(bytes, TARN__WORDPIECE_MAGIC, sizeof TARN__WORDPIECE_MAGIC - 1) == 0;
}

static const char *word_of(int64_t flag) { return flag ? "true" : "false"; }

// Our file's last lines are those of vocab.txt.
tarn_status tarn__vocab_export_wordpiece(const char *folder, const tarn_vocab *vocab) {
  char path[PATH_MAX], settings[256];
  size_t size;
  int64_t version, lowercase, strip_accents, chinese, count;
  TARN_REQUIRE(tarn__vocab_is_wordpiece(vocab), USAGE, "only a WordPiece vocabulary has vocab.txt");
  const char *bytes = tarn_vocab_bytes(vocab, &size);
  tarn__vocab_reader reader = {bytes, bytes + size};
  TARN_TRY(tarn__vocab_head(&reader, &version, TARN__WORDPIECE_MAGIC, 1));
  TARN_TRY(tarn__vocab_number(&reader, &lowercase, "lowercase ", 1));
  TARN_TRY(tarn__vocab_number(&reader, &strip_accents, "strip_accents ", 1));
  TARN_TRY(tarn__vocab_number(&reader, &chinese, "chinese ", 1));
  TARN_TRY(tarn__vocab_number(&reader, &count, "size ", TARN__WORDPIECE_MOST));
  TARN_TRY(tarn__path_join(path, folder, "vocab.txt"));
  TARN_TRY(tarn__file_write(path, reader.at, (size_t)(reader.end - reader.at)));
  snprintf(settings, sizeof settings,
           "{\n  \"do_lower_case\": %s,\n  \"strip_accents\": %s,\n  \"tokenize_chinese_chars\": %s,\n"
           "  \"tokenizer_class\": \"BertTokenizer\"\n}\n",
           word_of(lowercase), word_of(strip_accents), word_of(chinese));
  TARN_TRY(tarn__path_join(path, folder, "tokenizer_config.json"));
  return tarn__file_write(path, settings, strlen(settings));
}
