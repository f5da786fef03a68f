// Vocabularies as the files that the package transformers reads as a MarianTokenizer.
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "text/marian.h"
#include "text/vocab_files.h"
#include "text/vocab_formats.h"
#include "text/vocab_kind.h"

// The SentencePiece model of a side: the last bytes of our file.
static tarn_status write_model(const char *folder, const tarn_vocab *vocab, bool target) {
  char path[PATH_MAX];
  size_t size;
  int64_t number;
  const char *bytes = tarn_vocab_bytes(vocab, &size), *line;
  tarn__vocab_reader reader = {bytes, bytes + size};
  TARN_TRY(tarn__path_join(path, folder, tarn__marian_model_name(target)));
  if (!tarn__vocab_is_marian(vocab)) return tarn__file_write(path, bytes, size);
  TARN_TRY(tarn__vocab_head(&reader, &number, TARN__MARIAN_MAGIC, TARN__MARIAN_NEWEST));
  TARN_TRY(tarn__vocab_number(&reader, &number, TARN__MARIAN_SIZE, TARN__MARIAN_MOST));
  for (size_t length; number > 0; number--)
    TARN_REQUIRE(tarn__vocab_line(&reader, &line, &length), INTERNAL, "the vocabulary's file ends too early");
  TARN_TRY(tarn__vocab_number(&reader, &number, TARN__MARIAN_MODEL, 999999999));
  return tarn__file_write(path, reader.at, (size_t)(reader.end - reader.at));
}

tarn_status tarn__vocab_export_marian(const char *folder, const tarn_vocab *source, const tarn_vocab *target) {
  TARN_REQUIRE(tarn__vocab_has_marian_form(source, target), USAGE,
               "only SentencePiece models and vocabularies of Marian's kind have source.spm and target.spm");
  const bool separate = !tarn__vocab_same_tokens(source, target);
  TARN_TRY(write_model(folder, source, false));
  TARN_TRY(write_model(folder, target, true));
  TARN_TRY(tarn__vocab_json_write(folder, TARN__MARIAN_TOKENS, source));
  if (separate) TARN_TRY(tarn__vocab_json_write(folder, TARN__MARIAN_TARGET_TOKENS, target));
  const char *pad = tarn_vocab_pad(target) >= 0 ? tarn_vocab_piece(target, tarn_vocab_pad(target)) : "</s>";
  json_t *settings = json_pack("{s:s, s:s, s:b, s:s, s:s}", "eos_token", "</s>", "pad_token", pad, "separate_vocabs",
                               (int)separate, "tokenizer_class", "MarianTokenizer", "unk_token", "<unk>");
  return tarn__vocab_json_save(folder, TARN__MARIAN_SETTINGS, settings, JSON_INDENT(2));
}
