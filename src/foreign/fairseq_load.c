// Imports a translation model of fairseq. Names of layers are those of Marian's models in the package transformers,
// which come from fairseq.
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "foreign/fairseq_format.h"
#include "text/fairseq.h"

typedef tarn__marian_source source;

bool tarn__fairseq_is_folder(const char *path) {
  bool found = false;
  DIR *folder = opendir(path);
  if (!folder) return false;
  for (const struct dirent *entry; !found && (entry = readdir(folder));)
    found = tarn__fairseq_is_original(entry->d_name);
  closedir(folder);
  return found;
}

static tarn_status open_side(const source *s, tarn_vocab **vocab, const char *given, const char *language, int64_t rows,
                             const char *words) {
  char name[TARN__FAIRSEQ_LANGUAGE + 16], path[PATH_MAX];
  snprintf(name, sizeof name, "dict.%s.txt", language);
  TARN_TRY(tarn__path_join(path, s->import.folder, name));
  TARN_TRY(tarn_vocab_open(vocab, given ? given : path));
  TARN_REQUIRE(tarn_vocab_size(*vocab) == rows, DATA,
               "%s: the vocabulary has %d tokens, 4 special ones included, but tensor \"%s\" has %lld rows",
               given ? given : path, tarn_vocab_size(*vocab), words, (long long)rows);
  TARN_REQUIRE(tarn_vocab_eos(*vocab) == TARN__FAIRSEQ_EOS && tarn_vocab_unk(*vocab) == TARN__FAIRSEQ_UNK, DATA,
               "%s: its end of sentence and unknown token are not those of fairseq's vocabularies, %d and %d",
               given ? given : path, TARN__FAIRSEQ_EOS, TARN__FAIRSEQ_UNK);
  return TARN_STATUS_OK;
}

static tarn_status open_vocabs(source *s, const tarn__fairseq_languages *languages, const char *vocab,
                               const char *target_vocab) {
  TARN_TRY(open_side(s, &s->import.vocab, vocab, languages->source, s->config.vocab, TARN__FAIRSEQ_ENCODER_WORDS));
  TARN_TRY(open_side(s, &s->import.target_vocab, target_vocab ? target_vocab : vocab, languages->target,
                     s->config.target_vocab, TARN__FAIRSEQ_DECODER_WORDS));
  s->config.start = TARN__FAIRSEQ_EOS;
  s->config.padding = TARN__FAIRSEQ_PAD;
  return TARN_STATUS_OK;
}

static tarn_status describe(source *s) {
  static const tarn__hf_key keys[] = {{"model.d_model: ", TARN__FAIRSEQ_ENCODER_WORDS},
                                      {"model.max_length: ", "max_source_positions"},
                                      {"model.dropout: ", "dropout"},
                                      {"encoder.layers: ", "encoder_layers"},
                                      {"decoder.layers: ", "decoder_layers"},
                                      {"encoder.layerdrop: ", "encoder_layerdrop"},
                                      {"decoder.layerdrop: ", "decoder_layerdrop"},
                                      {"kinds.E.heads: ", "encoder_attention_heads"},
                                      {"kinds.D.heads: ", "decoder_attention_heads"},
                                      {"kinds.E.attention_dropout: ", "attention_dropout"},
                                      {"kinds.E.ffn: ", "encoder.layers.0.fc1.weight"},
                                      {"kinds.D.ffn: ", "decoder.layers.0.fc1.weight"},
                                      {NULL, NULL}};
  return tarn__marian_describe(s, keys);
}

static const char *const TABLES[TARN__MARIAN_TABLES] = {TARN__FAIRSEQ_ENCODER_WORDS, TARN__FAIRSEQ_DECODER_WORDS,
                                                        TARN__FAIRSEQ_OUTPUT};

static tarn_status take_positions(source *s, bool set) {
  if (s->config.first > 0) return TARN_STATUS_OK;
  TARN_TRY(tarn__marian_take_one(s, "encoder.embed_positions.weight", "embeddings.source_positions.weight",
                                 TARN__FAIRSEQ_FIRST, set));
  return tarn__marian_take_one(s, "decoder.embed_positions.weight", "embeddings.target_positions.weight",
                               TARN__FAIRSEQ_FIRST, set);
}

static tarn_status take_embedding_norms(source *s, bool set) {
  static const char *const names[][2] = {{"encoder.layernorm_embedding.weight", "embeddings.source_norm.gain"},
                                         {"encoder.layernorm_embedding.bias", "embeddings.source_norm.bias"},
                                         {"decoder.layernorm_embedding.weight", "embeddings.target_norm.gain"},
                                         {"decoder.layernorm_embedding.bias", "embeddings.target_norm.bias"}};
  for (size_t i = 0; s->config.embedding_norm && i < sizeof names / sizeof *names; i++)
    TARN_TRY(tarn__marian_take_one(s, names[i][0], names[i][1], 0, set));
  return TARN_STATUS_OK;
}

static tarn_status take_all(void *user, bool set) {
  static const tarn__marian_names names = {tarn__marian_package_names, "%s.layers.%lld.", NULL, 0, ""};
  static const char *const top[2] = {"%s.layer_norm.weight", "%s.layer_norm.bias"};
  source *s = user;
  TARN_TRY(tarn__marian_take_tables(s, TABLES, set));
  TARN_TRY(take_positions(s, set));
  TARN_TRY(take_embedding_norms(s, set));
  TARN_TRY(tarn__marian_take_stack(s, &names, &s->config.encoder, "encoder", TARN__MARIAN_ENCODER_NAMES, set));
  TARN_TRY(tarn__marian_take_stack(s, &names, &s->config.decoder, "decoder", TARN__MARIAN_LAYER_NAMES, set));
  TARN_TRY(tarn__marian_take_top(s, "encoder", "encoder", top, set));
  return tarn__marian_take_top(s, "decoder", "decoder", top, set);
}

// Tensors that say nothing: buffers, of which older versions have more, and copies of tied matrices, which were found
// equal.
static bool is_idle(const source *s, const char *name) {
  static const char *const buffers[] = {"encoder.version",
                                        "decoder.version",
                                        "encoder.embed_positions._float_tensor",
                                        "decoder.embed_positions._float_tensor",
                                        "encoder.embed_positions.weights",
                                        "decoder.embed_positions.weights"};
  for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
    if (strcmp(name, buffers[i]) == 0) return true;
  return tarn__marian_is_copy(&s->config, TABLES, name);
}

static tarn_status check_rest(const void *user) {
  const source *s = user;
  for (size_t i = 0; i < s->import.tensors.count; i++)
    TARN_REQUIRE(s->import.tensors.used[i] || is_idle(s, s->import.tensors.tensors[i].name), DATA,
                 "%s: tensor \"%s\" is none of a Transformer of fairseq with %lld and %lld layers",
                 s->import.tensors.path, s->import.tensors.tensors[i].name, (long long)s->config.encoder.layers,
                 (long long)s->config.decoder.layers);
  return TARN_STATUS_OK;
}

static tarn_status import(source *s, const char *output, const char *vocab, const char *target_vocab) {
  tarn__fairseq_languages languages;
  TARN_TRY(tarn__hf_import_tensors(&s->import, ""));
  TARN_TRY(tarn__fairseq_config(s, &languages));
  TARN_TRY(open_vocabs(s, &languages, vocab, target_vocab));
  TARN_TRY(describe(s));
  const tarn__hf_import_steps steps = {.take = take_all, .check_rest = check_rest, .user = s};
  return tarn__hf_import_write(&s->import, output, s->config.vocab, &steps);
}

tarn_status tarn__fairseq_import_model(const char *output, const char *folder, const char *vocab,
                                       const char *target_vocab) {
  source s = {.import.folder = folder};
  const tarn_status status = tarn__hf_tensors_judge(&s.import.tensors, import(&s, output, vocab, target_vocab));
  tarn__hf_import_close(&s.import);
  return status;
}
