// Entities of labelled sentences: their spans, and accuracy and F1 over sentences, against values that were worked out
// by hand with the rules of conlleval, and that seqeval 1.2.2 gives.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "eval/agreement.h"
#include "eval/spans.h"

enum { MOST = 16 };

static const char *const names[] = {"O",     "B-PER", "I-PER", "E-PER", "S-PER",
                                    "B-LOC", "I-LOC", "L-LOC", "U-LOC", "NOUN"};
enum { NAMES = sizeof names / sizeof *names };

// The numbers of labels that blanks divide.
static int64_t read_labels(int32_t *labels, const char *text) {
  int64_t count = 0;
  while (*text) {
    const size_t length = strcspn(text, " ");
    int32_t found = -1;
    for (int32_t i = 0; i < NAMES; i++)
      if (strlen(names[i]) == length && strncmp(names[i], text, length) == 0) found = i;
    assert_true(found >= 0 && count < MOST);
    labels[count++] = found;
    text += length + (text[length] == ' ');
  }
  return count;
}

static void spans_of_sentences(void **state) {
  (void)state;
  static const struct {
    const char *right, *found;
    tarn__span_counts counts;
  } cases[] = {
      {"", "", {0, 0, 0, 0, 0}},
      {"O O", "O O", {2, 2, 0, 0, 0}},
      {"B-PER I-PER O B-LOC", "B-PER I-PER O B-LOC", {4, 4, 2, 2, 2}},
      // seqeval's first example: the second entity is one word too short.
      {"O O O B-PER I-PER I-PER O", "O O B-PER I-PER I-PER I-PER O", {7, 5, 1, 1, 0}},
      {"B-PER I-PER O", "B-PER O O", {3, 2, 1, 1, 0}},
      {"B-PER I-PER O", "B-LOC I-LOC O", {3, 1, 1, 1, 0}},
      // Two that touch, and one of both words.
      {"B-PER B-PER", "B-PER I-PER", {2, 1, 2, 1, 0}},
      // IOB1: an entity may begin with I, and one of another type ends it.
      {"I-PER I-PER I-LOC O", "B-PER I-PER B-LOC O", {4, 2, 2, 2, 2}},
      {"B-PER I-LOC", "B-PER B-LOC", {2, 1, 2, 2, 2}},
      // IOBES and BILOU are the same places.
      {"B-PER I-PER E-PER S-PER U-LOC", "B-PER I-PER I-PER S-PER B-LOC", {5, 3, 3, 3, 3}},
      {"B-LOC L-LOC", "B-LOC I-LOC", {2, 1, 1, 1, 1}},
      {"E-PER E-PER", "B-PER B-PER", {2, 0, 2, 2, 2}},
      // What follows an end begins anew.
      {"S-PER I-PER", "B-PER I-PER", {2, 1, 2, 1, 0}},
      // Labels without places are entities of one word.
      {"NOUN NOUN O", "NOUN O NOUN", {3, 1, 2, 2, 1}},
  };
  tarn__span_label labels[NAMES];
  tarn__span_labels(labels, names, NAMES);
  assert_int_equal(labels[2].type, labels[1].type);
  assert_int_not_equal(labels[5].type, labels[1].type);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int32_t right[MOST], found[MOST];
    const int64_t words = read_labels(right, cases[i].right);
    assert_int_equal(read_labels(found, cases[i].found), words);
    const tarn__span_counts counts = tarn__spans_count(labels, right, found, words);
    if (memcmp(&counts, &cases[i].counts, sizeof counts) != 0)
      fail_msg("case %zu: %d words, %d right; entities %d right, %d found, %d both", i, (int)counts.words,
               (int)counts.right_words, (int)counts.right, (int)counts.found, (int)counts.hits);
  }
}

// Three sentences: 2 of 3 entities are found, and 1 that is none: F1 = 2 * 2 / (3 + 3). Of 9 words 7 are right.
static void measures_of_a_set(void **state) {
  (void)state;
  static const char *const right[] = {"B-PER I-PER O B-LOC", "O O", "B-LOC O O"};
  static const char *const found[] = {"B-PER I-PER O O", "B-PER O", "B-LOC O O"};
  int32_t labels[2][MOST];
  int64_t ends[3], words = 0;
  tarn__span_label kinds[NAMES];
  tarn__span_labels(kinds, names, NAMES);
  for (int s = 0; s < 3; s++) {
    read_labels(labels[0] + words, right[s]);
    ends[s] = words += read_labels(labels[1] + words, found[s]);
  }
  tarn__agreement a = {
      .count = 3, .classes = NAMES, .right_class = labels[0], .found_class = labels[1], .ends = ends, .spans = kinds};
  assert_int_equal(tarn__agreement_open(&a), TARN_STATUS_OK);
  assert_true(fabs(tarn__agreement_accuracy(&a, NULL) - 7.0 / 9.0) < 1e-12);
  assert_true(fabs(tarn__agreement_f1(&a, NULL) - 4.0 / 6.0) < 1e-12);
  // A resample of the first sentence twice and the last one once.
  static const uint32_t times[] = {2, 0, 1};
  assert_true(fabs(tarn__agreement_accuracy(&a, times) - 9.0 / 11.0) < 1e-12);
  assert_true(fabs(tarn__agreement_f1(&a, times) - 6.0 / 8.0) < 1e-12);
  // Without any entity there is nothing to find.
  static const uint32_t none[] = {0, 0, 0};
  assert_true(tarn__agreement_f1(&a, none) == 0.0);
  tarn__agreement_close(&a);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(spans_of_sentences), cmocka_unit_test(measures_of_a_set)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
