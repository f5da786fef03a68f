// The export for CTranslate2: against what its own converter made of the same model (make_marian.py CTRANSLATE2), and
// models of other forms.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "golden/import_check.h"
#include "tarn/checkpoint.h"
#include "tarn/lab/foreign.h"

enum { MOST = 256, WORDS = 155, WIDTH = 16 };

typedef struct variable {
  const char *name;
  int rank, type;
  uint32_t shape[4], bytes;
  const char *data;
} variable;

// A model.bin.
typedef struct binary {
  char *file;
  size_t size, at;
  uint32_t count, alias_count;
  variable variables[MOST];
  const char *aliases[MOST][2];
} binary;

static const char *take(binary *b, size_t bytes) {
  assert_true(bytes <= b->size - b->at);
  b->at += bytes;
  return b->file + b->at - bytes;
}

static uint32_t take_number(binary *b, size_t bytes) {
  const uint8_t *from = (const uint8_t *)take(b, bytes);
  uint32_t number = 0;
  for (size_t i = 0; i < bytes; i++) number |= (uint32_t)from[i] << 8 * i;
  return number;
}

static const char *take_name(binary *b) {
  const uint32_t length = take_number(b, 2);
  const char *name = take(b, length);
  assert_int_equal(strlen(name) + 1, length);
  return name;
}

static void open_binary(binary *b, const char *path) {
  *b = (binary){0};
  must(tarn__file_read(path, &b->file, &b->size));
  assert_int_equal(take_number(b, 4), 6);
  assert_string_equal(take_name(b), "TransformerSpec");
  assert_int_equal(take_number(b, 4), 7);
  b->count = take_number(b, 4);
  assert_true(b->count > 0 && b->count <= MOST);
  for (uint32_t i = 0; i < b->count; i++) {
    variable *v = &b->variables[i];
    v->name = take_name(b);
    v->rank = (int)take_number(b, 1);
    assert_true(v->rank <= 4);
    for (int k = 0; k < v->rank; k++) v->shape[k] = take_number(b, 4);
    v->type = (int)take_number(b, 1);
    v->bytes = take_number(b, 4);
    v->data = take(b, v->bytes);
  }
  b->alias_count = take_number(b, 4);
  assert_true(b->alias_count <= MOST);
  for (uint32_t i = 0; i < b->alias_count; i++)
    for (int k = 0; k < 2; k++) b->aliases[i][k] = take_name(b);
  assert_int_equal(b->at, b->size);
}

static const variable *find(const binary *b, const char *name) {
  for (uint32_t i = 0; i < b->alias_count; i++)
    if (strcmp(b->aliases[i][0], name) == 0) name = b->aliases[i][1];
  for (uint32_t i = 0; i < b->count; i++)
    if (strcmp(b->variables[i].name, name) == 0) return &b->variables[i];
  return NULL;
}

// Their model has no padding, and begins with a vector of zeros; alibi and shared keys are off by default.
static bool is_other(const char *name) {
  static const char *const names[] = {"decoder/alibi", "decoder/scale_alibi", "decoder/alibi_use_positive_positions",
                                      "encoder/multi_query_attention", "decoder/start_from_zero_embedding"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(name, names[i]) == 0) return true;
  return false;
}

static void compare(const binary *theirs, const binary *ours, const char *name) {
  const variable *a = find(theirs, name), *b = find(ours, name);
  if (is_other(name)) return;
  if (!b) fail_msg("there is no %s", name);
  assert_int_equal(a->rank, b->rank);
  assert_int_equal(a->type, b->type);
  if (strcmp(name, "decoder/num_heads") == 0) {  // their converter takes the encoder's, and has 2
    assert_int_equal(*b->data, 4);
    return;
  }
  if (strstr(name, "/encodings")) {
    assert_int_equal(a->bytes, b->bytes);
    for (size_t i = 0; i < a->bytes; i += sizeof(float)) {
      float x, y;
      memcpy(&x, a->data + i, sizeof x);
      memcpy(&y, b->data + i, sizeof y);
      assert_true(fabsf(x - y) < 1e-6f);
    }
    return;
  }
  // The last token of ours is the padding.
  const bool words = strstr(name, "embeddings") != NULL || strstr(name, "projection") != NULL;
  if (words && a->rank > 0) assert_int_equal(a->shape[0] + 1, b->shape[0]);
  for (int k = words; k < a->rank; k++) assert_int_equal(a->shape[k], b->shape[k]);
  if (memcmp(a->data, b->data, a->bytes) != 0) fail_msg("%s differs", name);
}

static void as_their_converter(void **state) {
  (void)state;
  static binary theirs, ours;
  must(tarn_checkpoint_import_marian("model", GOLDEN "marian_model/swish", NULL, NULL));
  must(tarn_checkpoint_export_ctranslate2("folder", "model"));
  open_binary(&theirs, GOLDEN "ctranslate2_model/swish.bin");
  open_binary(&ours, "folder/model.bin");
  for (uint32_t i = 0; i < theirs.count; i++) compare(&theirs, &ours, theirs.variables[i].name);
  for (uint32_t i = 0; i < theirs.alias_count; i++) compare(&theirs, &ours, theirs.aliases[i][0]);
  for (uint32_t i = 0; i < ours.count; i++) assert_non_null(find(&theirs, ours.variables[i].name));
  const variable *bias = find(&ours, "decoder/projection/bias");
  float pad;
  memcpy(&pad, bias->data + (WORDS - 1) * sizeof pad, sizeof pad);
  assert_true(pad == -1e4f);
  tarn__free(theirs.file);
  tarn__free(ours.file);
  assert_true(tarn__file_exists("folder/config.json") && tarn__file_exists("folder/shared_vocabulary.json"));
  must(tarn_checkpoint_import_marian("apart", GOLDEN "marian_model/separate", NULL, NULL));
  must(tarn_checkpoint_export_ctranslate2("parts", "apart"));
  // Into the folder of an export with one list: CTranslate2 would take that.
  must(tarn_checkpoint_export_ctranslate2("folder", "apart"));
  assert_false(tarn__file_exists("folder/shared_vocabulary.json"));
  assert_true(tarn__file_exists("parts/source_vocabulary.json") && tarn__file_exists("parts/target_vocabulary.json"));
}

// Norms before the branches, learned positions, frozen and shared layers, sets of both stacks, every way of
// sharing embeddings.
static void own_models(void **state) {
  (void)state;
  static const char *const shares[] = {"all", "decoder", "none", "encoder_decoder", "encoder_output"};
  for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
    static binary b;
    char text[1024];
    snprintf(text, sizeof text,
             "model: { d_model: 16, norm: pre, positions: %s, max_length: 12, embeddings: %s, share_stacks: %s }\n"
             "encoder: { layers: R1 L H R1 }\ndecoder: { layers: L R1 }\n" KINDS,
             i % 2 ? "learned" : "sinusoidal", shares[i], i % 2 ? "yes" : "no");
    save_model("own", text, "bytes");
    must(tarn_checkpoint_export_ctranslate2("folder", "own"));
    open_binary(&b, "folder/model.bin");
    const variable *source = find(&b, "encoder/embeddings_0/weight"), *words = find(&b, "decoder/embeddings/weight"),
                   *output = find(&b, "decoder/projection/weight");
    assert_true(source && words && output && find(&b, "encoder/layer_norm/gamma") &&
                find(&b, "decoder/layer_norm/beta"));
    assert_int_equal(source == words, i == 0 || i == 3);
    assert_int_equal(source == output, i == 0 || i == 4);
    assert_int_equal(words == output, i == 0 || i == 1);
    assert_int_equal(find(&b, "encoder/position_encodings/encodings")->shape[0], 12);
    assert_int_equal(*find(&b, "encoder/pre_norm")->data, 1);
    assert_memory_equal(find(&b, "encoder/layer_0/ffn/linear_0/weight")->data,
                        find(&b, "encoder/layer_3/ffn/linear_0/weight")->data, 32 * WIDTH * sizeof(float));
    const char *below = find(&b, "encoder/layer_0/ffn/linear_0/weight")->data,
               *above = find(&b, "decoder/layer_1/ffn/linear_0/weight")->data;
    assert_int_equal(memcmp(below, above, 32 * WIDTH * sizeof(float)) == 0, i % 2);
    assert_null(find(&b, "decoder/projection/bias"));
    tarn__free(b.file);
  }
}

static void other_models_are_refused(void **state) {
  (void)state;
#define STACKS "\nencoder: { layers: L R }\ndecoder: { layers: L }\n"
  static const struct {
    const char *text, *words;
  } cases[] = {
      {"model: { d_model: 16, positions: rotary }" STACKS KINDS, "model.positions is rotary"},
      {"model: { d_model: 16, norm_type: rms }" STACKS KINDS, "norms of kind L are of type rms"},
      {"model: { d_model: 16, embeddings: none, output_rank: 4 }" STACKS KINDS, "model.output_rank is 4"},
      {"model: { d_model: 16, embedding_size: 4 }" STACKS KINDS, "model.embedding_size is 4"},
      {"model: { d_model: 16, output_mixtures: 4 }" STACKS KINDS, "model.output_mixtures is 4"},
      {"model: { d_model: 16 }\nencoder: { layers: L N }\ndecoder: { layers: L }\n" KINDS,
       "layer 2 of the encoder (kind N) is none of attention"},
      {"model: { d_model: 16 }\nencoder: { layers: L G }\ndecoder: { layers: L }\n" KINDS
       "  G: { heads: 2, ffn: { type: glu, width: 32 } }\n",
       "layer 2 of the encoder (kind G) has glu as its FFN, and CTranslate2's have ffn"},
      {"model: { d_model: 16 }\nencoder: { layers: L P }\ndecoder: { layers: L }\n" KINDS
       "  P: { heads: 2, ffn: 32, norm: pre }\n",
       "layer 2 of the encoder (kind P) has norm unlike the first one's"},
      {"model: { d_model: 16 }\nencoder: { layers: L P }\ndecoder: { layers: L }\n" KINDS
       "  P: { heads: 4, ffn: 32 }\n",
       "kinds L and P have different heads"},
      {"model: { d_model: 16 }\ndecoder: { layers: L }\n" KINDS, "a language model; what is written for CTranslate2"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    save_model("other", cases[i].text, "bytes");
    assert_int_equal(tarn_checkpoint_export_ctranslate2("refused", "other"), TARN_STATUS_USAGE);
    must_say(cases[i].words);
    assert_false(tarn__file_exists("refused"));
  }
}

static int open_all(void **state) { return open_with_bytes(state, false); }

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(as_their_converter), cmocka_unit_test(own_models),
                                     cmocka_unit_test(other_models_are_refused)};
  return cmocka_run_group_tests(tests, open_all, sandbox_close);
}
