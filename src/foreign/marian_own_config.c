// The settings of a model in Marian's own format: special:model.yml in the weights, decoder.yml for the search.
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "base/yaml_json.h"
#include "foreign/marian_format.h"
#include "parts/table/part_table.h"
#include "text/marian_own.h"

const char *const tarn__marian_own_names[TARN__MARIAN_LAYER_NAMES][TARN__HF_PARTS] = {
    {"self_Wq", "self_Wk", "self_Wv"},
    {"self_bq", "self_bk", "self_bv"},
    {"self_Wo"},
    {"self_bo"},
    {"self_Wo_ln_scale"},
    {"self_Wo_ln_bias"},
    {"ffn_W1"},
    {"ffn_b1"},
    {"ffn_W2"},
    {"ffn_b2"},
    {"ffn_ffn_ln_scale"},
    {"ffn_ffn_ln_bias"},
    {"context_Wq"},
    {"context_bq"},
    {"context_Wk", "context_Wv"},
    {"context_bk", "context_bv"},
    {"context_Wo"},
    {"context_bo"},
    {"context_Wo_ln_scale"},
    {"context_Wo_ln_bias"},
};

// Of layer normalisation in Marian's Transformer, and defaults of its decoder.
static const double EPSILON = 1e-6, LONGEST_SHARE = 3.0;
enum { BEAM = 12, LONGEST_SOURCE = 1000 };

static bool is_word(const json_t *value, const char *word) {
  return json_is_string(value) && strcmp(json_string_value(value), word) == 0;
}

// A key whose text decides what the model is; `what` says what another one means.
static tarn_status demand_word(const tarn__hf_config *file, const char *key, const char *wanted, const char *what) {
  const char *word;
  TARN_TRY(tarn__hf_word(file, &word, key, wanted));
  TARN_REQUIRE(strcmp(word, wanted) == 0, DATA, "%s: \"%s\" is \"%.40s\", and tarn imports %s (\"%s\")", file->path,
               key, word, what, wanted);
  return TARN_STATUS_OK;
}

// Decoders without self-attention are refused by the names of their layers.
static tarn_status check_decoder(const tarn__hf_config *file) {
  static const char key[] = "transformer-decoder-autoreg";
  const json_t *value = tarn__hf_value(file, key);
  const bool ssru = is_word(value, "rnn") && is_word(tarn__hf_value(file, "dec-cell"), "ssru");
  TARN_REQUIRE(!is_word(value, "average-attention"), DATA,
               "%s: its decoder has average attention (AAN, \"%s\"), which tarn does not have", file->path, key);
  TARN_REQUIRE(!ssru, DATA, "%s: its decoder has SSRU layers (\"%s\" rnn, \"dec-cell\" ssru), which tarn does not have",
               file->path, key);
  return demand_word(file, key, "self-attention", "decoders of self-attention");
}

static tarn_status check_number(const tarn__hf_config *file, const char *key, double wanted, double also) {
  double value;
  TARN_TRY(tarn__hf_real(file, &value, key, wanted));
  TARN_REQUIRE(value == wanted || value == also, DATA, "%s: \"%s\" is %g, and tarn has %g only", file->path, key, value,
               wanted);
  return TARN_STATUS_OK;
}

static tarn_status check_form(const tarn__hf_config *file) {
  static const char *const off[] = {"transformer-no-projection",
                                    "transformer-train-position-embeddings",
                                    "transformer-train-positions",
                                    "transformer-disable-position-embeddings",
                                    "transformer-pool",
                                    "transformer-no-bias",
                                    "transformer-no-affine",
                                    "right-left",
                                    "ulr"};
  TARN_TRY(demand_word(file, "type", "transformer", "Transformers"));
  TARN_TRY(check_decoder(file));
  for (size_t i = 0; i < sizeof off / sizeof *off; i++) TARN_TRY(tarn__hf_demand(file, off[i], false));
  TARN_TRY(demand_word(file, "transformer-attention-mask", "default", "attention without further masks"));
  TARN_TRY(check_number(file, "transformer-ffn-depth", 2, 2));
  TARN_TRY(check_number(file, "transformer-decoder-ffn-depth", 2, 0));
  TARN_TRY(check_number(file, "lemma-dim-emb", 0, 0));
  TARN_REQUIRE(json_array_size(tarn__hf_value(file, "transformer-tied-layers")) == 0, DATA,
               "%s: \"transformer-tied-layers\" is not empty; tarn imports layers with weights of their own",
               file->path);
  return TARN_STATUS_OK;
}

// Norms are before all sublayers and behind the stacks, or after all sublayers.
static tarn_status read_norms(const tarn__hf_config *file, bool *pre) {
  const char *before, *after, *top, *embedded;
  TARN_TRY(tarn__hf_word(file, &before, "transformer-preprocess", ""));
  TARN_TRY(tarn__hf_word(file, &after, "transformer-postprocess", "dan"));
  TARN_TRY(tarn__hf_word(file, &top, "transformer-postprocess-top", ""));
  TARN_TRY(tarn__hf_word(file, &embedded, "transformer-postprocess-emb", "d"));
  const bool post = strcmp(before, "") == 0 && strcmp(after, "dan") == 0 && strcmp(top, "") == 0;
  *pre = strcmp(before, "n") == 0 && strcmp(after, "da") == 0 && strcmp(top, "n") == 0;
  TARN_REQUIRE(post || *pre, DATA,
               "%s: \"transformer-preprocess\", \"transformer-postprocess\" and \"transformer-postprocess-top\" are "
               "\"%.20s\", \"%.20s\" and \"%.20s\"; tarn imports \"\", \"dan\", \"\" (post-norm) and \"n\", \"da\", "
               "\"n\" (pre-norm)",
               file->path, before, after, top);
  TARN_REQUIRE(strcmp(embedded, "") == 0 || strcmp(embedded, "d") == 0, DATA,
               "%s: \"transformer-postprocess-emb\" is \"%.20s\"; tarn imports \"d\" and none", file->path, embedded);
  return TARN_STATUS_OK;
}

static tarn_status read_stack(const tarn__hf_config *file, tarn__marian_stack *stack, const char *layers,
                              int64_t d_model) {
  TARN_TRY(tarn__hf_size(file, &stack->layers, layers, 0));
  TARN_TRY(tarn__hf_size(file, &stack->heads, "transformer-heads", 0));
  TARN_TRY(tarn__hf_size(file, &stack->ffn, "transformer-dim-ffn", 0));
  TARN_TRY(tarn__hf_check_layers(file, layers, stack->layers));
  TARN_TRY(tarn__hf_check_divides(file, "transformer-heads", stack->heads, "dim-emb", d_model));
  return TARN_STATUS_OK;
}

// The rows of both sides' embeddings.
static tarn_status read_words(const tarn__hf_config *file, tarn__marian_config *c) {
  const json_t *list = tarn__hf_value(file, "dim-vocabs");
  bool all, source;
  TARN_TRY(tarn__hf_flag(file, &all, "tied-embeddings-all", false));
  TARN_TRY(tarn__hf_flag(file, &source, "tied-embeddings-src", false));
  TARN_TRY(tarn__hf_flag(file, &c->tied, "tied-embeddings", false));
  c->tied = c->tied || all;
  c->shared = source || all;
  c->embeddings = c->tied ? (c->shared ? "all" : "decoder") : c->shared ? "encoder_decoder" : "none";
  int64_t *const sizes[2] = {&c->vocab, &c->target_vocab};
  for (size_t i = 0; i < 2; i++) {
    *sizes[i] = json_integer_value(json_array_get(list, i));
    TARN_REQUIRE(json_array_size(list) == 2 && *sizes[i] >= 1 && *sizes[i] < 1 << 24, DATA,
                 "%s: \"dim-vocabs\" does not give the sizes of two vocabularies", file->path);
  }
  TARN_REQUIRE(!c->shared || c->vocab == c->target_vocab, DATA,
               "%s: the sides share embeddings, but \"dim-vocabs\" are %lld and %lld", file->path, (long long)c->vocab,
               (long long)c->target_vocab);
  return TARN_STATUS_OK;
}

static tarn_status read_model(const tarn__hf_config *file, tarn__marian_config *c) {
  TARN_TRY(check_form(file));
  TARN_TRY(read_norms(file, &c->pre));
  c->encoder.top = c->decoder.top = c->pre;
  TARN_TRY(tarn__hf_size(file, &c->d_model, "dim-emb", 0));
  TARN_TRY(read_stack(file, &c->encoder, "enc-depth", c->d_model));
  TARN_TRY(read_stack(file, &c->decoder, "dec-depth", c->d_model));
  const json_t *other = tarn__hf_value(file, "transformer-decoder-dim-ffn");
  // 0 is the encoder's.
  if (other && !(json_is_integer(other) && json_integer_value(other) == 0))
    TARN_TRY(tarn__hf_size(file, &c->decoder.ffn, "transformer-decoder-dim-ffn", 0));
  TARN_TRY(tarn__hf_activation(file, &c->activation, "transformer-ffn-activation", "swish"));
  TARN_TRY(tarn__hf_real(file, &c->dropout, "transformer-dropout", 0.1));
  TARN_TRY(tarn__hf_real(file, &c->attention_dropout, "transformer-dropout-attention", 0.0));
  c->sinusoids = &tarn__position_sinusoidal.part;
  c->epsilon = EPSILON;
  c->scaled = true;
  return read_words(file, c);
}

// The score of a hypothesis is divided by its length to the power of "normalize", as ours by "length_penalty".
static tarn_status read_search(const tarn__hf_config *file, tarn__marian_config *c) {
  const json_t *power = tarn__hf_value(file, "normalize");
  double penalty;
  TARN_TRY(tarn__hf_size(file, &c->beam, "beam-size", BEAM));
  TARN_TRY(tarn__hf_size(file, &c->positions, "max-length", LONGEST_SOURCE));
  TARN_TRY(tarn__hf_real(file, &c->longest_share, "max-length-factor", LONGEST_SHARE));
  TARN_TRY(tarn__hf_real(file, &penalty, "word-penalty", 0.0));
  TARN_TRY(tarn__hf_flag(file, &c->allow_unk, "allow-unk", false));
  if (json_is_boolean(power))
    c->length_penalty = json_is_true(power) ? 1.0 : 0.0;
  else
    TARN_TRY(tarn__hf_real(file, &c->length_penalty, "normalize", 0.0));
  if (penalty != 0.0)
    tarn__log(TARN_LOG_WARNING, "%s: \"word-penalty\" is left out, as tarn's search has none", file->path);
  c->early_stopping = true;
  c->longest = c->shortest = 0;
  return TARN_STATUS_OK;
}

tarn_status tarn__marian_own_config(tarn__marian_config *config, const char *origin, json_t *decoder,
                                    const char *folder, const char *model, size_t size) {
  char path[PATH_MAX];
  json_t *object;
  *config = (tarn__marian_config){.eos = -1};
  TARN_TRY(tarn__path_join(path, folder, TARN__MARIAN_DECODER));
  TARN_TRY(read_search(&(tarn__hf_config){.path = path, .object = decoder, .model = "Marian"}, config));
  TARN_TRY(tarn__yaml_json(&object, origin, model, size));
  tarn_status status = TARN_STATUS_OK;
  if (!json_is_object(object)) status = tarn__fail(TARN_STATUS_DATA, "%s: not a YAML map", origin);
  if (status == TARN_STATUS_OK)
    status = read_model(&(tarn__hf_config){.path = origin, .object = object, .model = "Marian"}, config);
  json_decref(object);
  return status;
}
