// Translation models beside what others compute of them (make_marian.py, make_marian_own.py). Include it after cmocka.h
// and import_check.h.
#ifndef TARN_TESTS_TRANSLATION_CHECK_H
#define TARN_TESTS_TRANSLATION_CHECK_H

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "golden/import_check.h"
#include "tarn/translate.h"

enum { TRANSLATION_ROWS = 64 };

// The logits of all words at each place of the target, which the loss of a batch goes through. The model may have words
// behind those of the file.
static inline void run_translation(const tarn__model *model, const tarn__stored *source, const tarn__stored *target,
                                   const tarn__stored *wanted, double most) {
  static const int32_t targets[TRANSLATION_ROWS];
  const int32_t sentences = (int32_t)source->shape[0], length = (int32_t)source->shape[1], rows = sentences * length;
  int32_t positions[TRANSLATION_ROWS], offsets[TRANSLATION_ROWS + 1];
  tarn__graph graph = {0};
  tarn__host_room host = {0};
  void *room, *values;
  assert_true(rows > 0 && rows <= TRANSLATION_ROWS);
  for (int s = 0; s <= sentences; s++) offsets[s] = s * length;
  tarn__packed_positions(positions, offsets, sentences);
  const tarn__batch batch = {
      .source = {sentences, rows, length, source->data, positions, offsets, NULL, NULL},
      .target = {sentences, rows, length, target->data, positions, offsets, NULL, NULL},
      .predictions = rows,
      .targets = targets,
  };
  tarn__model_begin(model, &graph, false, 1);
  tarn__tensor *loss = tarn__model_build_loss(model, &graph, &batch, NULL, 0.0, 1.0, NULL);
  tarn__tensor *x = tarn__linear(&graph, loss->source->in[0], model->weights.output_table, model->weights.output_bias,
                                 TARN__IDENTITY);
  x->keep = true;
  must(tarn__graph_plan(&graph));
  must(tarn__device_allocate(graph.device, &room, TARN__MEMORY_OTHER, graph.workspace_bytes, 1));
  tarn__graph_bind(&graph, room);
  must(tarn__graph_run(&graph, &(tarn__exec){.threads = 1}));
  must(tarn__graph_read(&graph, &values, x, &host));
  const int64_t words = wanted->shape[2];
  assert_int_equal(x->rows, rows);
  assert_true(words <= x->cols);
  double worst = 0.0;
  for (int64_t r = 0; r < x->rows; r++)
    for (int64_t w = 0; w < words; w++)
      worst = fmax(worst, fabs((double)((float *)values)[r * x->cols + w] -
                               (double)((const float *)wanted->data)[r * words + w]));
  print_message("largest difference %g\n", worst);
  if (!(worst < most)) fail_msg("a logit is off by %g", worst);
  tarn__host_room_close(&host);
  tarn__device_free(graph.device, room);
  tarn__graph_close(&graph);
}

// No logit of the checkpoint is off by `most` or more.
static inline void check_logits(const char *checkpoint, const char *expected, double most) {
  tarn__checkpoint *c;
  tarn__safetensors file = {0};
  must(tarn__checkpoint_open(&c, checkpoint, TARN__F32));
  must(tarn__safetensors_open(&file, expected));
  run_translation(c->model, tarn__safetensors_find(&file, "source"), tarn__safetensors_find(&file, "target"),
                  tarn__safetensors_find(&file, "logits"), most);
  tarn__safetensors_close(&file);
  tarn__checkpoint_close(&c);
}

// Equal translations; in INT8 most of them.
static inline void translate(const char *checkpoint, const json_t *cases, tarn_translate_precision precision) {
  const char *lines[64];
  size_t lengths[64], number, equal = 0;
  const size_t count = json_array_size(cases);
  tarn_translate_result results[64];
  tarn_translator_options options;
  tarn_translator *translator;
  json_t *c;
  assert_true(count >= 4 && count <= 64);
  tarn_translator_default(&options);
  options.precision = precision;
  must(tarn_translator_open(&translator, checkpoint, &options));
  json_array_foreach(cases, number, c) {
    lines[number] = json_string_value(json_object_get(c, "text"));
    lengths[number] = strlen(lines[number]);
  }
  must(tarn_translator_lines(translator, results, lines, lengths, count));
  json_array_foreach(cases, number, c) {
    const char *wanted = json_string_value(json_object_get(c, "translation"));
    const bool same = strcmp(results[number].hypotheses[0].text, wanted) == 0;
    equal += same;
    if (precision == TARN_TRANSLATE_PRECISION_FP32 && !same)
      fail_msg("\"%s\": \"%s\" and not \"%s\"", lines[number], results[number].hypotheses[0].text, wanted);
    // The token that the decoder reads first, and the end of sentence that a result counts.
    if (same)
      assert_int_equal(results[number].hypotheses[0].tokens, json_integer_value(json_object_get(c, "tokens")) - 1);
  }
  print_message("%zu of %zu translations are equal\n", equal, count);
  assert_true(2 * equal > count);
  tarn_translator_close(&translator);
}

// The first translations that a search finds of the texts of cases, and their probabilities, are those under `key`. A
// beam of 0 is the checkpoint's own, as are lengths of 0.
static inline void check_search(const char *checkpoint, const json_t *cases, int64_t beam, int64_t longest,
                                const char *key) {
  enum { LINES = 16 };
  const char *lines[LINES];
  char value[64];
  size_t lengths[LINES], number;
  tarn_translate_result results[LINES];
  tarn_translator_options options;
  tarn_translator *translator;
  json_t *c;
  assert_in_range(json_array_size(cases), 4, LINES);
  tarn_translator_default(&options);
  options.beam = beam;
  if (longest > 0) options.max_len_b = longest;
  must(tarn_translator_open(&translator, checkpoint, &options));
  json_array_foreach(cases, number, c) {
    lines[number] = json_string_value(json_object_get(c, "text"));
    lengths[number] = strlen(lines[number]);
  }
  must(tarn_translator_lines(translator, results, lines, lengths, number));
  snprintf(value, sizeof value, "%s_log_probability", key);
  json_array_foreach(cases, number, c) {
    const tarn_translate_hypothesis *best = &results[number].hypotheses[0];
    assert_string_equal(best->text, json_string_value(json_object_get(c, key)));
    const double wanted = json_number_value(json_object_get(c, value));
    if (!(fabs((double)best->log_probability - wanted) < 1e-5 * fabs(wanted)))
      fail_msg("\"%s\": log-probability %.9g and not %.9g", lines[number], (double)best->log_probability, wanted);
  }
  tarn_translator_close(&translator);
}

// Writes the tensors of a file with one left out, or called otherwise.
static inline void write_renamed(const char *to, const char *from, const char *name, const char *other) {
  tarn__safetensors file = {0};
  tarn__stored tensors[128];
  size_t count = 0;
  must(tarn__safetensors_open(&file, from));
  assert_true(file.count <= 128);
  for (size_t i = 0; i < file.count; i++) {
    const bool is = strcmp(file.tensors[i].name, name) == 0;
    if (is && !other) continue;
    tensors[count] = file.tensors[i];
    if (is) tensors[count].name = other;
    count++;
  }
  must(tarn__safetensors_write(to, tensors, count, NULL, 0));
  tarn__safetensors_close(&file);
}

static inline json_t *read_cases(const char *path) {
  json_error_t error;
  json_t *object = json_load_file(path, 0, &error);
  if (!object) fail_msg("%s: %s", path, error.text);
  return object;
}

#endif
