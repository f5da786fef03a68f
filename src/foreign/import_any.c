// Imports a model of another program by what it is.
#include <string.h>

#include "base/file.h"
#include "foreign/fairseq_format.h"
#include "foreign/hf_config.h"
#include "foreign/hf_import.h"
#include "foreign/torch_format.h"
#include "run/file_kind.h"
#include "tarn/lab/foreign.h"
#include "tarn/text.h"
#include "text/marian_own.h"

typedef tarn_status importer(const char *output, const char *folder, const char *vocab);
typedef tarn_status translation_importer(const char *output, const char *folder, const char *vocab,
                                         const char *target_vocab);

static const struct {
  const char *model_type;
  importer *import;
  translation_importer *translation;  // of a model with a vocabulary of the target
} TYPES[] = {{"gpt2", tarn_checkpoint_import_gpt2, NULL},     {"llama", tarn_checkpoint_import_llama, NULL},
             {"mistral", tarn_checkpoint_import_llama, NULL}, {"qwen2", tarn_checkpoint_import_llama, NULL},
             {"bert", tarn_checkpoint_import_bert, NULL},     {"roberta", tarn_checkpoint_import_bert, NULL},
             {"marian", NULL, tarn_checkpoint_import_marian}, {TARN__TORCH_TYPE, NULL, tarn__torch_import}};
enum { TYPE_COUNT = sizeof TYPES / sizeof *TYPES };

// The number of a folder's "model_type" in the table.
static tarn_status find_type(int *type, const tarn__hf_config *config) {
  const char *words[TYPE_COUNT], *word;
  TARN_TRY(tarn__hf_word(config, &word, "model_type", NULL));
  for (*type = 0; *type < TYPE_COUNT; ++*type) {
    words[*type] = TYPES[*type].model_type;
    if (strcmp(word, words[*type]) == 0) return TARN_STATUS_OK;
  }
  const char *near = tarn_text_nearest(word, words, TYPE_COUNT);
  return tarn__fail(TARN_STATUS_DATA,
                    "%s: \"model_type\" is \"%.40s\"; tarn imports gpt2, llama, mistral, qwen2, bert, roberta, "
                    "marian and " TARN__TORCH_TYPE "%s%s%s",
                    config->path, word, near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
}

static tarn_status read_type(int *type, const char *folder) {
  char path[PATH_MAX];
  tarn__hf_config config = {0};
  TARN_TRY(tarn__path_join(path, folder, TARN__HF_CONFIG));
  TARN_TRY(tarn__hf_config_open(&config, path));
  const tarn_status status = find_type(type, &config);
  tarn__hf_config_close(&config);
  return status;
}

tarn_status tarn_checkpoint_import(const char *output, const char *path, const char *vocab, const char *target_vocab) {
  int type;
  if (tarn__file_kind_at(path) == TARN__FILE_KIND_GGUF) {
    TARN_REQUIRE(!target_vocab, USAGE, "%s: a language model has one vocabulary, not another one for a target", path);
    return tarn_checkpoint_import_gguf(output, path, vocab);
  }
  if (tarn__marian_is_own(path)) return tarn_checkpoint_import_marian(output, path, vocab, target_vocab);
  if (tarn__fairseq_is_folder(path)) return tarn__fairseq_import_model(output, path, vocab, target_vocab);
  if (tarn__file_kind_at(path) == TARN__FILE_KIND_FOLDER) TARN_TRY(tarn__hf_refuse_pickles(path));
  const tarn_status status = read_type(&type, path);
  TARN_TRY(tarn__file_kind_explain(status, path, TARN__FILE_KIND_HF_FOLDER));
  if (TYPES[type].translation) return TYPES[type].translation(output, path, vocab, target_vocab);
  TARN_REQUIRE(!target_vocab, USAGE, "%s: a model of type %s has one vocabulary, not another one for a target", path,
               TYPES[type].model_type);
  return TYPES[type].import(output, path, vocab);
}
