#include "eval/agreement.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/bootstrap.h"

// A number and its index.
typedef struct placed {
  float value;
  uint32_t place;
} placed;

static int by_value(const void *a, const void *b) {
  const placed *x = a, *y = b;
  if (x->value != y->value) return x->value < y->value ? -1 : 1;
  return x->place < y->place ? -1 : 1;
}

static tarn_status sort_numbers(uint32_t *order, const float *numbers, size_t count) {
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, count, sizeof(placed)));
  placed *sorted = memory;
  for (size_t i = 0; i < count; i++) sorted[i] = (placed){numbers[i], (uint32_t)i};
  qsort(sorted, count, sizeof *sorted, by_value);
  for (size_t i = 0; i < count; i++) order[i] = sorted[i].place;
  tarn__free(sorted);
  return TARN_STATUS_OK;
}

// What is kept of a sentence of words: tarn__span_counts.
enum { WORDS, RIGHT_WORDS, RIGHT, FOUND, HITS, COUNTS };

static void count_spans(tarn__agreement *a) {
  int64_t first = 0;
  for (size_t i = 0; i < a->count; i++) {
    const tarn__span_counts c =
        tarn__spans_count(a->spans, a->right_class + first, a->found_class + first, a->ends[i] - first);
    const double counts[COUNTS] = {(double)c.words, (double)c.right_words, (double)c.right, (double)c.found,
                                   (double)c.hits};
    memcpy(a->room + i * COUNTS, counts, sizeof counts);
    first = a->ends[i];
  }
}

static tarn_status prepare(tarn__agreement *a) {
  void *memory;
  const size_t room = a->ends ? COUNTS * a->count : a->classes ? 3 * (size_t)a->classes : 2 * a->count;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, room, sizeof(double)));
  a->room = memory;
  if (a->ends) count_spans(a);
  if (a->classes) return TARN_STATUS_OK;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 2 * a->count, sizeof(uint32_t)));
  a->orders = memory;
  TARN_TRY(sort_numbers(a->orders, a->right_number, a->count));
  return sort_numbers(a->orders + a->count, a->found_number, a->count);
}

size_t tarn__agreement_bytes(size_t count, int32_t classes, bool words) {
  if (words) return COUNTS * count * sizeof(double);
  if (classes) return 3 * (size_t)classes * sizeof(double);
  return count * (2 * sizeof(double) + 2 * sizeof(uint32_t) + sizeof(placed));
}

tarn_status tarn__agreement_open(tarn__agreement *agreement) {
  agreement->room = NULL;
  agreement->orders = NULL;
  const tarn_status status = prepare(agreement);
  if (status != TARN_STATUS_OK) tarn__agreement_close(agreement);
  return status;
}

void tarn__agreement_close(tarn__agreement *agreement) {
  tarn__free(agreement->room);
  tarn__free(agreement->orders);
  agreement->room = NULL;
  agreement->orders = NULL;
}

static double weight_of(const uint32_t *times, size_t i) { return times ? (double)times[i] : 1.0; }

// The sum over sentences of one of their counts.
static double sum_of(const tarn__agreement *a, int which, const uint32_t *times) {
  double sum = 0.0;
  for (size_t i = 0; i < a->count; i++) sum += weight_of(times, i) * a->room[i * COUNTS + (size_t)which];
  return sum;
}

// Counts, by class, correct answers, true classes and answered classes. Returns the number of answers.
static double count_classes(const tarn__agreement *a, const uint32_t *times) {
  double all = 0.0, *hits = a->room, *right = hits + a->classes, *found = right + a->classes;
  for (int32_t c = 0; c < 3 * a->classes; c++) a->room[c] = 0.0;
  for (size_t i = 0; i < a->count; i++) {
    const double n = weight_of(times, i);
    all += n;
    right[a->right_class[i]] += n;
    found[a->found_class[i]] += n;
    if (a->right_class[i] == a->found_class[i]) hits[a->right_class[i]] += n;
  }
  return all;
}

double tarn__agreement_accuracy(const tarn__agreement *a, const uint32_t *times) {
  if (a->ends) return sum_of(a, RIGHT_WORDS, times) / sum_of(a, WORDS, times);
  const double all = count_classes(a, times);
  double hits = 0.0;
  for (int32_t c = 0; c < a->classes; c++) hits += a->room[c];
  return hits / all;
}

double tarn__agreement_f1(const tarn__agreement *a, const uint32_t *times) {
  if (a->ends) {
    const double either = sum_of(a, RIGHT, times) + sum_of(a, FOUND, times);
    return either > 0.0 ? 2.0 * sum_of(a, HITS, times) / either : 0.0;
  }
  count_classes(a, times);
  const double *hits = a->room, *right = hits + a->classes, *found = right + a->classes;
  double sum = 0.0, classes = 0.0;
  for (int32_t c = a->classes == 2 ? 1 : 0; c < a->classes; c++) {
    const double either = right[c] + found[c];
    if (either == 0.0) continue;
    sum += 2.0 * hits[c] / either;
    classes += 1.0;
  }
  return classes > 0.0 ? sum / classes : 0.0;
}

double tarn__agreement_mcc(const tarn__agreement *a, const uint32_t *times) {
  const double all = count_classes(a, times);
  const double *hits = a->room, *right = hits + a->classes, *found = right + a->classes;
  double covariance = 0.0, right_variance = all * all, found_variance = all * all;
  for (int32_t c = 0; c < a->classes; c++) {
    covariance += hits[c] * all - right[c] * found[c];
    right_variance -= right[c] * right[c];
    found_variance -= found[c] * found[c];
  }
  const double scale = sqrt(right_variance) * sqrt(found_variance);
  return scale > 0.0 ? covariance / scale : 0.0;
}

// Pearson's correlation of two lists of numbers.
static double correlation(const double *x, const double *y, size_t count, const uint32_t *times) {
  double all = 0.0, mean_x = 0.0, mean_y = 0.0, xx = 0.0, yy = 0.0, xy = 0.0;
  for (size_t i = 0; i < count; i++) {
    all += weight_of(times, i);
    mean_x += weight_of(times, i) * x[i];
    mean_y += weight_of(times, i) * y[i];
  }
  mean_x /= all;
  mean_y /= all;
  for (size_t i = 0; i < count; i++) {
    const double n = weight_of(times, i), dx = x[i] - mean_x, dy = y[i] - mean_y;
    xx += n * dx * dx;
    yy += n * dy * dy;
    xy += n * dx * dy;
  }
  const double scale = sqrt(xx) * sqrt(yy);
  return scale > 0.0 ? fmax(-1.0, fmin(1.0, xy / scale)) : 0.0;
}

// The rank of each number: equal ones share their mean rank.
static void rank(double *ranks, const uint32_t *order, const float *numbers, size_t count, const uint32_t *times) {
  double before = 0.0;
  for (size_t first = 0, last; first < count; first = last) {
    double equal = weight_of(times, order[first]);
    for (last = first + 1; last < count && numbers[order[last]] == numbers[order[first]]; last++)
      equal += weight_of(times, order[last]);
    for (size_t i = first; i < last; i++) ranks[order[i]] = before + (equal + 1.0) / 2.0;
    before += equal;
  }
}

double tarn__agreement_pearson(const tarn__agreement *a, const uint32_t *times) {
  double *right = a->room, *found = right + a->count;
  for (size_t i = 0; i < a->count; i++) {
    right[i] = (double)a->right_number[i];
    found[i] = (double)a->found_number[i];
  }
  return correlation(right, found, a->count, times);
}

double tarn__agreement_spearman(const tarn__agreement *a, const uint32_t *times) {
  double *right = a->room, *found = right + a->count;
  rank(right, a->orders, a->right_number, a->count, times);
  rank(found, a->orders + a->count, a->found_number, a->count, times);
  return correlation(right, found, a->count, times);
}

// The argument of the bootstrap's score function.
typedef struct asked {
  const tarn__agreement *agreement;
  tarn__agreement_measure measure;
} asked;

static double resampled(void *user, size_t system, const uint32_t *times) {
  (void)system;
  const asked *what = user;
  return what->measure(what->agreement, times);
}

static int by_score(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

tarn_status tarn__agreement_interval_of(tarn__agreement_interval *interval, const tarn__agreement *agreement,
                                        tarn__agreement_measure measure, int64_t resamples, uint64_t seed) {
  void *memory;
  asked what = {agreement, measure};
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)resamples, sizeof(double)));
  double *scores = memory;
  const tarn__bootstrap_options draws = {.resamples = resamples, .seed = seed};
  const tarn_status status = tarn__bootstrap(&interval->value, scores, 1, agreement->count, resampled, &what, &draws);
  if (status == TARN_STATUS_OK) {
    qsort(scores, (size_t)resamples, sizeof *scores, by_score);
    interval->low = scores[resamples / 40];
    interval->high = scores[resamples - 1 - resamples / 40];
  }
  tarn__free(scores);
  return status;
}
