// Reads tests/golden/scores.json: texts, and the scores that sacreBLEU gives them.
#ifndef TARN_TESTS_SCORE_GOLDEN_H
#define TARN_TESTS_SCORE_GOLDEN_H

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GOLDEN_LINES = 32, GOLDEN_STREAMS = 4 };

// A corpus as the library takes it; the strings belong to the JSON document.
typedef struct golden_corpus {
  const char *hypotheses[GOLDEN_LINES];
  const char *lines[GOLDEN_STREAMS][GOLDEN_LINES];
  const char *const *streams[GOLDEN_STREAMS];
  size_t sentences, count;
} golden_corpus;

static inline json_t *golden_open(void) {
  json_error_t error;
  json_t *root = json_load_file(TARN_SOURCE_DIR "/tests/golden/scores.json", 0, &error);
  if (!root) fprintf(stderr, "scores.json: %s\n", error.text);
  assert_non_null(root);
  return root;
}

static inline void golden_read(golden_corpus *corpus, const json_t *root, const char *name) {
  const json_t *object = json_object_get(json_object_get(root, "corpora"), name);
  const json_t *hypotheses = json_object_get(object, "hypotheses");
  const json_t *references = json_object_get(object, "references");
  memset(corpus, 0, sizeof *corpus);
  corpus->sentences = json_array_size(hypotheses);
  corpus->count = json_array_size(references);
  assert_in_range(corpus->sentences, 1, GOLDEN_LINES);
  assert_in_range(corpus->count, 1, GOLDEN_STREAMS);
  for (size_t s = 0; s < corpus->sentences; s++) {
    corpus->hypotheses[s] = json_string_value(json_array_get(hypotheses, s));
    for (size_t r = 0; r < corpus->count; r++)
      corpus->lines[r][s] = json_string_value(json_array_get(json_array_get(references, r), s));  // NULL for null
  }
  for (size_t r = 0; r < corpus->count; r++) corpus->streams[r] = corpus->lines[r];
}

static inline const char *golden_text(const json_t *c, const char *key) {
  return json_string_value(json_object_get(c, key));
}
static inline double golden_real(const json_t *c, const char *key) {
  return json_number_value(json_object_get(c, key));
}
static inline int golden_flag(const json_t *c, const char *key) { return json_is_true(json_object_get(c, key)); }

// Everything is the same arithmetic in the same order; only exp() and log() of another C library may differ in the last
// bit.
static inline void golden_near(double got, double expected, const json_t *c) {
  double difference = got > expected ? got - expected : expected - got;
  if (difference <= 1e-11) return;
  char *text = json_dumps(c, 0);
  print_error("got %.17g, sacreBLEU has %.17g in %s\n", got, expected, text);
  free(text);
  fail();
}

// The signature without its version, which is the program's own.
static inline void golden_signature(const char *got, const json_t *c) {
  const char *expected = golden_text(c, "signature");
  size_t length = (size_t)(strstr(expected, "version:") - expected);
  assert_true(strncmp(got, expected, length) == 0);
  assert_string_equal(got + length, "version:tarn " TARN_VERSION);
}

#endif
