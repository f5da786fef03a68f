#include "inspect_vocab.h"

#include <inttypes.h>
#include <stdio.h>

#include "json_output.h"
#include "tarn/vocab.h"

typedef struct special {
  const char *name;
  int32_t id;
} special;

enum { SPECIALS = 7 };

static void find_specials(special out[SPECIALS], const tarn_vocab *vocab) {
  const special all[SPECIALS] = {{"unknown", tarn_vocab_unk(vocab)},
                                 {"begin", tarn_vocab_bos(vocab)},
                                 {"end", tarn_vocab_eos(vocab)},
                                 {"padding", tarn_vocab_pad(vocab)},
                                 {"cls", tarn_vocab_special(vocab, TARN_SPECIAL_CLS)},
                                 {"sep", tarn_vocab_special(vocab, TARN_SPECIAL_SEP)},
                                 {"mask", tarn_vocab_special(vocab, TARN_SPECIAL_MASK)}};
  for (int i = 0; i < SPECIALS; i++) out[i] = all[i];
}

static void print_text(const tarn_vocab *vocab, const char *path) {
  special specials[SPECIALS];
  size_t bytes;
  bool first = true;
  tarn_vocab_bytes(vocab, &bytes);
  find_specials(specials, vocab);
  printf("file          %s (vocabulary, %s)\ntokens        %d:", path, tarn_vocab_kind(vocab), tarn_vocab_size(vocab));
  for (int i = 0; i < SPECIALS; i++) {
    const bool is_end = specials[i].id == tarn_vocab_eos(vocab) && specials[i].name[0] == 's';  // if there is no <sep>
    if (specials[i].id < 0 || is_end) continue;
    printf("%s %s %d %s", first ? "" : ",", specials[i].name, specials[i].id, tarn_vocab_piece(vocab, specials[i].id));
    first = false;
  }
  printf("\nnormalization %s; U+200C and U+200D %s\n", tarn_vocab_normalization_of(vocab),
         tarn_vocab_keeps_joiners(vocab) ? "are kept" : "are lost");
  printf("bytes         %zu\nhash          %s\n", bytes, tarn_vocab_hash(vocab));
}

static int print_json(const cli_command *command, const tarn_vocab *vocab, const char *path) {
  special specials[SPECIALS];
  size_t bytes;
  tarn_vocab_bytes(vocab, &bytes);
  find_specials(specials, vocab);
  json_t *ids = json_object();
  int failed = 0;
  for (int i = 0; i < SPECIALS; i++)
    failed |=
        json_object_set_new(ids, specials[i].name, specials[i].id < 0 ? json_null() : json_integer(specials[i].id));
  json_t *object =
      json_pack("{s:o, s:s, s:i, s:o, s:s, s:b, s:I, s:s}", "path", json_output_text(path), "kind",
                tarn_vocab_kind(vocab), "tokens", (int)tarn_vocab_size(vocab), "special", ids, "normalization",
                tarn_vocab_normalization_of(vocab), "keeps_joiners", (int)tarn_vocab_keeps_joiners(vocab), "bytes",
                (json_int_t)bytes, "hash", tarn_vocab_hash(vocab));
  if (failed) json_decref(object);
  return json_output_print(command, stdout, failed ? NULL : object, JSON_COMPACT);
}

int inspect_vocab(const cli_command *command, const char *path, bool json) {
  tarn_vocab *vocab;
  const tarn_status status = tarn_vocab_open(&vocab, path);
  if (status != TARN_STATUS_OK) return cli_report(command, status);
  const int code = json ? print_json(command, vocab, path) : CLI_OK;
  if (!json) print_text(vocab, path);
  tarn_vocab_close(&vocab);
  return code;
}
