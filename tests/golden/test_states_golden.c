// The inside of models against PyTorch's and the package transformers' (make_states.py), by the public functions:
// outputs of layers, attention, gates, states and cells of recurrences, kernels, logits; of translation models, BERT, a
// classifier, a regression model and GPT-2; in fp32, bf16 and on the shadow device, whatever is computed together, on
// one thread or three.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "device/devices.h"
#include "golden/golden_parameters.h"
#include "sandbox.h"
#include "shadow_device.h"
#include "store/checkpoint.h"
#include "tarn/checkpoint.h"
#include "tarn/lab/foreign.h"
#include "tarn/lab/states.h"

static const char *const cases[] = {"reservoirs_post", "recurrent_pre",      "bigru_post",        "conv_pre",
                                    "bert_model/bert", "bert_model/classes", "bert_model/number", "gpt2_model/tied"};
enum { CASES = sizeof cases / sizeof *cases, SENTENCES = 5, TEXT = 512, FILE_BYTES = 4096 };

static void open_golden(tarn__safetensors *file, const char *name) {
  char path[512];
  snprintf(path, sizeof path, "%s/tests/golden/%s.safetensors", TARN_SOURCE_DIR, name);
  must(tarn__safetensors_open(file, path));
}

// A vocabulary of so many words, of which id i is called wi.
static tarn_vocab *make_vocab(int64_t size) {
  char text[FILE_BYTES];
  int length = snprintf(text, sizeof text, "tarn-vocab whitespace 1\nlowercase 0\nsize %lld\n<unk>\n<s>\n</s>\n",
                        (long long)size);
  for (int64_t i = 3; i < size; i++)
    length += snprintf(text + length, sizeof text - (size_t)length, "w%lld\n", (long long)i);
  tarn_vocab *vocab;
  must(tarn_vocab_open_memory(&vocab, text, (size_t)length));
  return vocab;
}

// The golden model as a checkpoint.
static void save(const tarn__safetensors *file, const char *path) {
  const char *text = tarn__safetensors_text(file, "config");
  tarn_config *config;
  tarn__model *model;
  must(tarn_config_parse(&config, path, text, strlen(text), NULL, 0));
  static golden_parameters list;
  golden_list(&list, file);
  const golden_parameter *source = golden_find(&list, "embeddings.weight");
  if (!source) source = golden_find(&list, "embeddings.source.weight");
  assert_non_null(source);
  const golden_parameter *target = golden_find(&list, "embeddings.target.weight");
  if (!target) target = source;
  must(tarn__model_open(&model, config, source->rows, target->rows, TARN__F32, false));
  must(tarn__model_allocate(model));
  golden_set(model, &list);
  tarn_vocab *source_vocab = make_vocab(source->rows), *target_vocab = make_vocab(target->rows);
  const tarn__checkpoint_extra extra = {.source = source_vocab, .target = target_vocab, .update = 1, .dense = true};
  must(tarn__checkpoint_save(path, model, &extra));
  tarn_vocab_close(&source_vocab);
  tarn_vocab_close(&target_vocab);
  tarn__model_close(&model);
  tarn_config_close(&config);
}

// The sentences of a batch as lines of text; `first`: the end of sentence stands before them, not behind.
typedef struct lines {
  char text[SENTENCES][TEXT];
  const char *lines[SENTENCES];
  size_t lengths[SENTENCES];
} lines;

static void spell(lines *out, const tarn__safetensors *file, const char *ids, const char *offsets, bool first) {
  const int32_t *id = need(file, "batch", ids)->data, *at = need(file, "batch", offsets)->data;
  for (int s = 0; s < SENTENCES; s++) {
    size_t length = 0;
    out->text[s][0] = '\0';
    for (int32_t r = at[s] + first; r < at[s + 1] - !first; r++)
      length += (size_t)snprintf(out->text[s] + length, TEXT - length, "w%d ", (int)id[r]);
    out->lines[s] = out->text[s];
    out->lengths[s] = length;
  }
}

// A way of computing.
typedef struct way {
  const char *name;
  tarn_translate_precision precision;
  const tarn__device *device;  // NULL: the usual one
  int64_t max_tokens;
  int threads;
  double bound;  // largest difference over the largest number; of bf16 the norm of the difference over the norm
} way;

static const way ways[] = {
    {"fp32", TARN_TRANSLATE_PRECISION_FP32, NULL, 4096, 3, 2e-5},
    {"fp32, one by one", TARN_TRANSLATE_PRECISION_FP32, NULL, 1, 1, 2e-5},
    {"bf16", TARN_TRANSLATE_PRECISION_BF16, NULL, 4096, 2, 0.1},
    {"shadow fp32", TARN_TRANSLATE_PRECISION_FP32, &shadow_device, 16, 2, 2e-5},
};
enum { WAYS = sizeof ways / sizeof *ways };

static double distance(const float *got, const float *wanted, int64_t count, bool by_norm) {
  double worst = 0, largest = 0, difference = 0, square = 0;
  for (int64_t i = 0; i < count; i++) {
    const double d = (double)got[i] - (double)wanted[i];
    worst = golden_worse(worst, d);
    largest = golden_worse(largest, (double)wanted[i]);
    difference += d * d;
    square += (double)wanted[i] * (double)wanted[i];
  }
  return by_norm ? sqrt(difference / square) : worst / largest;
}

// Rows of attention sum to one, and what is not seen has no weight at all.
static void check_attention(const tarn_states *states, size_t array, const float *got) {
  size_t count;
  const tarn_states_array *a = &tarn_states_selected(states, &count)[array];
  const int64_t *rows = tarn_states_offsets(states, a->side), *keys = tarn_states_offsets(states, a->key_side);
  const bool causal = strncmp(a->name, "decoder", 7) == 0 && !strstr(a->name, "cross");
  for (int s = 0; s < SENTENCES; s++) {
    const int64_t n = rows[s + 1] - rows[s], m = keys[s + 1] - keys[s];
    for (int64_t i = 0; i < a->width * n; i++, got += m) {
      double sum = 0;
      for (int64_t j = 0; j < m; j++) {
        assert_true(got[j] >= 0.0F);
        if (causal && j > i % n) assert_true(got[j] == 0.0F);
        sum += (double)got[j];
      }
      assert_true(fabs(sum - 1.0) < 1e-5);
    }
  }
}

// Compares what is there. Of the feed-forward networks PyTorch's are those of the first layers, and of transformers'
// models there are neither these nor the stream before GPT-2's final norm.
static void compare(const tarn_states *states, const tarn__safetensors *golden, const char *name, const way *how,
                    float *const *buffers) {
  size_t count, compared = 0;
  const tarn_states_array *arrays = tarn_states_selected(states, &count);
  for (size_t a = 0; a < count; a++) {
    const tarn__stored *wanted = find(golden, name, arrays[a].name);
    const int64_t numbers = tarn_states_place(states, a, SENTENCES);
    if (arrays[a].form == TARN_STATES_FORM_ATTENTION) check_attention(states, a, buffers[a]);
    if (!wanted && (strstr(arrays[a].name, ".hidden") || strncmp(arrays[a].name, "output.", 7) == 0)) continue;
    if (!wanted && strcmp(name, "gpt2_model/tied") == 0 && strcmp(arrays[a].name, "decoder.2") == 0) continue;
    if (!wanted) fail_msg("%s: there is no golden %s", name, arrays[a].name);
    assert_int_equal((size_t)numbers * sizeof(float), wanted->bytes);
    const double d = distance(buffers[a], wanted->data, numbers, how->precision == TARN_TRANSLATE_PRECISION_BF16);
    if (!(d <= how->bound)) fail_msg("%s, %s: %s is off by %.2e", name, how->name, arrays[a].name, d);
    compared++;
  }
  size_t stored = 0;
  for (size_t i = 0; i < golden->count; i++)
    stored += strncmp(golden->tensors[i].name, name, strlen(name)) == 0 && golden->tensors[i].name[strlen(name)] == '/';
  assert_int_equal(compared, stored);
}

static float **take_buffers(const tarn_states *states, size_t *count) {
  tarn_states_selected(states, count);
  float **buffers = calloc(*count, sizeof *buffers);
  assert_non_null(buffers);
  for (size_t a = 0; a < *count; a++) {
    buffers[a] = calloc((size_t)tarn_states_place(states, a, SENTENCES), sizeof(float));
    assert_non_null(buffers[a]);
  }
  return buffers;
}

static void free_buffers(float **buffers, size_t count) {
  for (size_t a = 0; a < count; a++) free(buffers[a]);
  free(buffers);
}

// The likeliest words are those of the log-probabilities.
static void check_top(tarn_states *states) {
  static const char *const names[] = {"output.log_probabilities", "output.top3"};
  must(tarn_states_select(states, names, 2));
  size_t count;
  float **buffers = take_buffers(states, &count);
  assert_int_equal(count, 3);
  must(tarn_states_compute(states, (void *const *)buffers));
  const int64_t words = tarn_states_selected(states, &count)[0].width;
  const int32_t *ids = (const int32_t *)(const void *)buffers[2];
  for (int64_t r = 0; r < tarn_states_offsets(states, TARN_STATES_SIDE_TARGET)[SENTENCES]; r++)
    for (int k = 0; k < 3; k++) {
      const float top = buffers[1][r * 3 + k];
      int above = 0;
      assert_in_range(ids[r * 3 + k], 0, words - 1);
      assert_true(fabsf(buffers[0][r * words + ids[r * 3 + k]] - top) < 1e-5F);
      for (int64_t w = 0; w < words; w++) above += buffers[0][r * words + w] > top + 1e-5F;
      assert_true(above <= k);
    }
  free_buffers(buffers, count);
}

// What the sink is given are the numbers of the buffers.
typedef struct told {
  const tarn_states *states;
  float **buffers;
  int64_t sentences;
} told;

static tarn_status compare_told(void *user, int64_t sentence, const void *const *values) {
  told *t = user;
  size_t count;
  tarn_states_selected(t->states, &count);
  assert_int_equal(sentence, t->sentences++);
  for (size_t a = 0; a < count; a++) {
    const int64_t first = tarn_states_place(t->states, a, sentence),
                  last = tarn_states_place(t->states, a, sentence + 1);
    assert_memory_equal(values[a], t->buffers[a] + first, (size_t)(last - first) * sizeof(float));
  }
  return TARN_STATUS_OK;
}

// What the sentences are taken from.
typedef struct texts {
  lines source, target;
  bool pairs;                     // there is a target
  const tarn__safetensors *file;  // with their tokens; NULL: these come from the bytes of the lines
} texts;

static void check_ids(const tarn_states *states, tarn_states_side side, const texts *t, const char *ids) {
  const tarn__stored *wanted = need(t->file, "batch", ids);
  assert_memory_equal(tarn_states_ids(states, side), wanted->data, wanted->bytes);
}

static void run_way(const texts *text, const tarn__safetensors *golden, const char *name, const way *how) {
  static const char *const everything[] = {"*"};
  tarn_states_options options;
  tarn_states *states;
  tarn_states_default(&options);
  options.precision = how->precision;
  options.max_tokens = how->max_tokens;
  options.threads = how->threads;
  must(tarn_states_open(&states, "model.safetensors", &options));
  must(tarn_states_select(states, everything, 1));
  must(tarn_states_encode(states, text->source.lines, text->source.lengths, text->pairs ? text->target.lines : NULL,
                          text->target.lengths, SENTENCES));
  if (text->file) check_ids(states, TARN_STATES_SIDE_SOURCE, text, "source_ids");
  if (text->file) check_ids(states, TARN_STATES_SIDE_TARGET, text, "target_in");
  size_t count;
  float **buffers = take_buffers(states, &count);
  must(tarn_states_compute(states, (void *const *)buffers));
  compare(states, golden, name, how, buffers);
  told t = {states, buffers, 0};
  must(tarn_states_each(states, compare_told, &t));
  assert_int_equal(t.sentences, SENTENCES);
  free_buffers(buffers, count);
  if (text->pairs) check_top(states);
  tarn_states_close(&states);
}

// The model of a folder of transformers, and its texts.
static void import(texts *text, const tarn__safetensors *golden, const char *name) {
  char folder[512];
  const bool bert = strncmp(name, "bert", 4) == 0;
  tarn_vocab_options options;
  tarn_vocab_default(&options);
  options.type = TARN_VOCAB_TYPE_BYTE;
  options.mask_symbols = bert;
  snprintf(folder, sizeof folder, "%s/tests/golden/%s", TARN_SOURCE_DIR, name);
  must(tarn_vocab_train("bytes", NULL, 0, &options));
  must(bert ? tarn_checkpoint_import_bert("model.safetensors", folder, "bytes")
            : tarn_checkpoint_import_gpt2("model.safetensors", folder, "bytes"));
  const char *line = tarn__safetensors_text(golden, name);
  assert_non_null(line);
  for (int s = 0; s < SENTENCES; s++) {
    const size_t length = strcspn(line, "\n");
    text->source.lines[s] = line;
    text->source.lengths[s] = length;
    line += length + (line[length] == '\n');
  }
}

static void run_case(void **state) {
  static texts text;
  const char *name = *state;
  tarn__safetensors file = {0}, golden;
  open_golden(&golden, "states");
  text = (texts){.pairs = !strchr(name, '/')};
  if (text.pairs) {
    open_golden(&file, name);
    save(&file, "model.safetensors");
    spell(&text.source, &file, "source_ids", "source_offsets", false);
    spell(&text.target, &file, "target_in", "target_offsets", true);
    text.file = &file;
  } else {
    import(&text, &golden, name);
  }
  for (size_t i = 0; i < WAYS; i++) {
    if (ways[i].device) tarn__device_use(ways[i].device);
    run_way(&text, &golden, name, &ways[i]);
    tarn__device_use(NULL);
  }
  tarn__safetensors_close(&golden);
  tarn__safetensors_close(&file);
}

// Of many sentences a file takes the memory of their tokens, of a batch, and of one array of places, however many
// arrays it has. Run first: what others took at most would hide it.
static void take_little_memory(void **state) {
  (void)state;
  enum { MANY = 8000 };
  static const char *many[MANY];
  static size_t lengths[MANY];
  static texts text;
  tarn__safetensors golden;
  tarn_states *states;
  tarn_states_options options;
  size_t arrays;
  open_golden(&golden, "states");
  import(&text, &golden, "gpt2_model/tied");
  for (int i = 0; i < MANY; i++) many[i] = "";
  tarn_states_default(&options);
  options.max_tokens = 256;
  options.threads = 1;
  must(tarn_states_open(&states, "model.safetensors", &options));
  must(tarn_states_select(states, &(const char *){"decoder*"}, 1));
  tarn_states_selected(states, &arrays);
  must(tarn_states_encode(states, many, lengths, NULL, NULL, MANY));
  const size_t before = tarn__memory_now(TARN__MEMORY_OTHER), tokens = MANY * sizeof(int64_t);
  must(tarn_states_write(states, "many.safetensors", TARN_STATES_FORMAT_SAFETENSORS));
  const size_t most = tarn__memory_peak(TARN__MEMORY_OTHER);
  if (arrays < 8 || most > before + 3 * tokens) fail_msg("%zu arrays, %zu bytes, then %zu", arrays, before, most);
  tarn_states_close(&states);
  tarn__safetensors_close(&golden);
}

int main(void) {
  struct CMUnitTest tests[1 + CASES] = {cmocka_unit_test(take_little_memory)};
  for (size_t i = 0; i < CASES; i++)
    tests[1 + i] = (struct CMUnitTest){cases[i], run_case, NULL, NULL, (void *)(uintptr_t)cases[i]};
  return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
