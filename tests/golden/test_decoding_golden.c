// Processors of logits and sampling against transformers (make_decoding.py): the changes that the processors list, made
// by the reference and by the device under test, and the shares with which tokens are drawn.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
// cmocka needs some of the above.
#include <cmocka.h>

#include "decode/processors.h"
#include "kernels/kernel_check.h"
#include "ops/ops.h"

enum { WORDS = 24, MOST = 64, PHRASES = 3 };

typedef struct reader {
  FILE *file;
  int number;  // of the case
} reader;

static double number_of(reader *r) {
  double x;
  if (fscanf(r->file, "%lf", &x) != 1) fail_msg("case %d is cut", r->number);
  return x;
}

static int64_t whole_of(reader *r) { return (int64_t)number_of(r); }

static void row_of(reader *r, float *row) {
  for (int w = 0; w < WORDS; w++) row[w] = (float)number_of(r);
}

static void adjust_on(const tarn__device *device, const float *logits, const tarn__logit_edits *edits, float *out) {
  float *row = check_shared(WORDS * sizeof *row);
  memcpy(row, logits, WORDS * sizeof *row);
  tarn__graph graph = {0};
  tarn__graph_begin(&graph, device, TARN__F32, false, 1);
  tarn__tensor *scores = tarn__adjust_rows(&graph, tarn__graph_external(&graph, TARN__F32, 1, WORDS, row, "logits"),
                                           tarn__graph_input(&graph, edits->count, edits->words, "edits"));
  scores->keep = true;
  check_ok(tarn__graph_plan(&graph));
  void *workspace = check_shared(graph.workspace_bytes);
  tarn__graph_bind(&graph, workspace);
  check_ok(tarn__graph_run(&graph, &(tarn__exec){.threads = 1}));
  check_ok(tarn__device_synchronise(check_device()));
  memcpy(out, scores->data, WORDS * sizeof *out);
  check_shared_free(workspace);
  check_shared_free(row);
  tarn__graph_close(&graph);
}

static void check_processors(reader *r, tarn__logit_edits *edits) {
  tarn__processing p = {.repetition_penalty = number_of(r)};
  tarn__phrase banned[PHRASES];
  int32_t phrases[PHRASES][MOST], ids[MOST];
  float logits[WORDS], expected[WORDS], found[WORDS];
  p.presence_penalty = number_of(r);
  p.frequency_penalty = number_of(r);
  p.no_repeat_ngram = whole_of(r);
  p.banned_count = whole_of(r);
  p.banned = banned;
  assert_true(p.banned_count <= PHRASES);
  for (int64_t b = 0; b < p.banned_count; b++) {
    banned[b] = (tarn__phrase){phrases[b], whole_of(r)};
    for (int64_t i = 0; i < banned[b].length; i++) phrases[b][i] = (int32_t)whole_of(r);
  }
  tarn__so_far so_far = {.ids = ids, .length = whole_of(r)};
  so_far.prompt = whole_of(r);
  assert_true(so_far.length <= MOST);
  for (int64_t i = 0; i < so_far.length; i++) ids[i] = (int32_t)whole_of(r);
  row_of(r, logits);
  row_of(r, expected);
  check_ok(tarn__logit_edits_begin(edits, 1, WORDS));
  check_ok(tarn__logit_edits_add(edits, &p, &so_far));
  bool changes = false;
  for (int device = 0; device < 2; device++) {
    adjust_on(device == 0 ? &tarn__device_reference : check_device(), logits, edits, found);
    for (int w = 0; w < WORDS; w++) {
      changes |= expected[w] != logits[w];
      if (found[w] != expected[w] && !(fabsf(found[w] - expected[w]) < 1e-5f))
        fail_msg("case %d: word %d is %g and not %g", r->number, w, (double)found[w], (double)expected[w]);
    }
  }
  if (changes) assert_true(tarn__processing_acts(&p));
}

// Of N numbers spread evenly over [0, 1) a token is drawn by N times its probability, but for one at each end.
static void check_sampling(reader *r) {
  enum { N = 4000 };
  tarn__sampling sampling = {.temperature = number_of(r)};
  float row[WORDS], expected[WORDS];
  int drawn[WORDS] = {0};
  sampling.top_k = whole_of(r);
  sampling.top_p = number_of(r);
  sampling.min_p = number_of(r);
  sampling.typical_p = number_of(r);
  row_of(r, row);
  row_of(r, expected);
  for (int i = 0; i < N; i++) {
    tarn__candidate room[WORDS];
    const int64_t count = tarn__sample_collect(room, NULL, row, WORDS, (tarn__ban){NULL, 0});
    const tarn__candidate one = tarn__sample(&sampling, room, count, row, (i + 0.5) / N);
    assert_true(one.id >= 0 && one.log_probability == row[one.id]);
    drawn[one.id]++;
  }
  for (int w = 0; w < WORDS; w++)
    if (fabs(drawn[w] - (double)expected[w] * N) > 1.51 || (expected[w] == 0.0f && drawn[w] > 0))
      fail_msg("case %d: word %d is drawn %d times and not %g", r->number, w, drawn[w], (double)expected[w] * N);
}

static void equals_transformers(void **state) {
  (void)state;
  reader r = {.file = fopen(TARN_SOURCE_DIR "/tests/golden/decoding.cases", "r")};
  tarn__logit_edits edits = {0};
  char word[16];
  int processed = 0;
  assert_non_null(r.file);
  for (; fscanf(r.file, "%15s", word) == 1; r.number++) {
    if (strcmp(word, "process") == 0) {
      check_processors(&r, &edits);
      processed++;
    } else {
      assert_string_equal(word, "sample");
      check_sampling(&r);
    }
  }
  assert_int_equal(processed, 60);
  assert_int_equal(r.number, 120);
  tarn__logit_edits_close(&edits);
  fclose(r.file);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(equals_transformers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
