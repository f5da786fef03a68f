// tokenizer.json of Hugging Face's tokenizers, for byte-pair encodings of the kinds that models of LLaMA's kind have,
// made into a file of ours (bpe.h) and back.
#ifndef TARN_TEXT_TOKENIZER_JSON_H
#define TARN_TEXT_TOKENIZER_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text/bpe.h"

#define TARN__TOKENIZER_JSON "tokenizer.json"
#define TARN__TOKENIZER_SETTINGS "tokenizer_config.json"

// The regular expressions of the rules, as tokenizers of these models have them; NULL: the rule has none.
extern const char *const tarn__split_patterns[TARN__SPLITS];

// Reads the rules from the parts of a tokenizer: "normalizer", "pre_tokenizer", "post_processor", "decoder" and
// "model". Fails with DATA, naming a part that tarn does not have.
tarn_status tarn__tokenizer_rules(tarn__bpe_rules *rules, json_t *tokenizer, const char *path) TARN_CHECKED;

// Whether a path is a file of that name, or a folder with one and without the files of another kind of vocabulary.
bool tarn__tokenizer_is_original(const char *path);

// What the model says that the file is for.
typedef struct tarn__tokenizer_wish {
  int64_t size;      // tokens: numbers behind the last one have no token; 0: as many as there are
  int64_t bos, eos;  // -1: as tokenizer_config.json beside the file says
} tarn__tokenizer_wish;

// Makes the bytes of our file, which the caller frees with tarn__free(). Fails with IO, or DATA, naming the file and
// the part, the key or the token.
tarn_status tarn__tokenizer_import(char **bytes, size_t *size, const char *path,
                                   const tarn__tokenizer_wish *wish) TARN_CHECKED;

// The tokens of a vocabulary as they are put together, by their ids; texts are bytes.
typedef struct tarn__bpe_token {
  const char *text;
  size_t length;
  tarn__token_sort sort;
  bool spelt;  // the text is in the characters for bytes already
} tarn__bpe_token;
// Writes "size N" and the tokens.
tarn_status tarn__bpe_write_tokens(tarn_vocab_text *out, const tarn__bpe_token *tokens, int64_t count) TARN_CHECKED;
// Writes one side of a merge.
tarn_status tarn__bpe_write_text(tarn_vocab_text *out, const char *text, size_t length, bool spelt) TARN_CHECKED;

#endif
