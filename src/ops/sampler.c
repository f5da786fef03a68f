#include "ops/sampler.h"

#include <math.h>
#include <stdbool.h>

#include "ops/sampling_uniform.h"

double tarn__sampling_uniform(uint64_t seed, uint64_t key, uint32_t sample, uint32_t position) {
  return tarn__sampling_number(seed, key, sample, position);
}

int64_t tarn__sample_collect(tarn__candidate *candidates, const int32_t *ids, const float *log_probabilities,
                             int64_t count, tarn__ban banned) {
  int64_t found = 0;
  for (int64_t i = 0; i < count; i++) {
    const int32_t id = ids ? ids[i] : (int32_t)i;
    bool allowed = id >= 0 && log_probabilities[i] > -INFINITY;
    for (int b = 0; b < banned.count; b++) allowed = allowed && banned.ids[b] != id;
    if (allowed) candidates[found++] = (tarn__candidate){log_probabilities[i], id};
  }
  return found;
}

static bool is_better(const tarn__candidate *a, const tarn__candidate *b) {
  return a->log_probability != b->log_probability ? a->log_probability > b->log_probability : a->id < b->id;
}

// Moves an item from `place` down to where it belongs in a heap with the best item at its root.
static void sink(tarn__candidate *heap, int64_t count, int64_t place) {
  const tarn__candidate item = heap[place];
  for (;;) {
    int64_t child = 2 * place + 1;
    if (child >= count) break;
    if (child + 1 < count && is_better(&heap[child + 1], &heap[child])) child++;
    if (!is_better(&heap[child], &item)) break;
    heap[place] = heap[child];
    place = child;
  }
  heap[place] = item;
}

// What candidates weigh.
typedef struct weighing {
  double scale;          // 1 / temperature
  tarn__candidate best;  // weighs 1
  const float *row;  // the log-probabilities by id, where those of the candidates are overwritten; NULL: they are not
} weighing;

static float value_of(const weighing *w, const tarn__candidate *item) {
  return w->row ? w->row[item->id] : item->log_probability;
}

// The logarithm of the weight.
static double surplus(const weighing *w, const tarn__candidate *item) {
  return ((double)value_of(w, item) - (double)w->best.log_probability) * w->scale;
}

static double weight(const weighing *w, const tarn__candidate *item) { return exp(surplus(w, item)); }

// Sorts the best items to the end of the array, the best one last, until `most` of them or `mass` of weight is there.
// Returns how many.
static int64_t select_best(const weighing *w, tarn__candidate *items, int64_t count, int64_t most, double mass) {
  int64_t left = count;
  double total = 0.0;
  for (int64_t i = count / 2 - 1; i >= 0; i--) sink(items, count, i);
  while (left > 0 && count - left < most && (total < mass || left == count)) {
    const tarn__candidate best = items[0];
    items[0] = items[--left];
    items[left] = best;
    sink(items, left, 0);
    total += weight(w, &best);
  }
  return count - left;
}

// The weights of candidates, summed over blocks of them, so that a draw looks into one block alone.
enum { BLOCKS = 64 };

typedef struct sums {
  double of[BLOCKS], total;
  int64_t size;  // of a block
} sums;

static void sum_weights(sums *s, const weighing *w, const tarn__candidate *items, int64_t count) {
  s->size = (count + BLOCKS - 1) / BLOCKS;
  s->total = 0.0;
  for (int b = 0; b < BLOCKS; b++) {
    const int64_t first = b * s->size, end = first + s->size < count ? first + s->size : count;
    s->of[b] = 0.0;
    for (int64_t i = first; i < end; i++) s->of[b] += weight(w, &items[i]);
    s->total += s->of[b];
  }
}

static tarn__candidate draw(const sums *s, const weighing *w, const tarn__candidate *items, int64_t count,
                            double uniform) {
  double wanted = uniform * s->total;
  int b = 0;
  while (b < BLOCKS - 1 && wanted >= s->of[b]) wanted -= s->of[b++];
  for (int64_t i = b * s->size; i < (b + 1) * s->size && i < count; i++) {
    wanted -= weight(w, &items[i]);
    if (wanted < 0.0) return items[i];
  }
  return w->row ? items[count - 1] : w->best;  // the sums are rounded, and the number lay behind the last of them
}

// Keeps the candidates that weigh at least `least`, in their order. Returns how many.
static int64_t keep_heavy(const weighing *w, tarn__candidate *items, int64_t count, double least) {
  int64_t kept = 0;
  for (int64_t i = 0; i < count; i++)
    if (weight(w, &items[i]) >= least) items[kept++] = items[i];
  return kept;
}

// Sorts the most typical items to the end of the array, the most typical one last, until they weigh `share` of all.
// Their log-probabilities are overwritten by how typical they are: w->row has them from then on. Returns how many.
static int64_t select_typical(weighing *w, const float *row, tarn__candidate *items, int64_t count, double share) {
  sums s;
  double expected[BLOCKS], entropy = 0.0;
  sum_weights(&s, w, items, count);
  const double log_total = log(s.total);
  for (int b = 0; b < BLOCKS; b++) {
    expected[b] = 0.0;
    for (int64_t i = b * s.size; i < (b + 1) * s.size && i < count; i++)
      expected[b] += weight(w, &items[i]) * (log_total - surplus(w, &items[i]));
    entropy += expected[b];
  }
  entropy /= s.total;
  for (int64_t i = 0; i < count; i++)
    items[i].log_probability = -(float)fabs(log_total - surplus(w, &items[i]) - entropy);
  w->row = row;
  return select_best(w, items, count, count, share * s.total);
}

tarn__candidate tarn__sample(const tarn__sampling *sampling, tarn__candidate *candidates, int64_t count,
                             const float *row, double uniform) {
  if (count == 0) return (tarn__candidate){-INFINITY, -1};
  weighing w = {.scale = 1.0 / sampling->temperature, .best = candidates[0]};
  for (int64_t i = 1; i < count; i++)
    if (is_better(&candidates[i], &w.best)) w.best = candidates[i];
  if (sampling->top_k > 0 && sampling->top_k < count) {
    const int64_t kept = select_best(&w, candidates, count, sampling->top_k, INFINITY);
    candidates += count - kept;
    count = kept;
  }
  sums s;
  sum_weights(&s, &w, candidates, count);
  if (sampling->top_p < 1.0) {
    const int64_t kept = select_best(&w, candidates, count, count, sampling->top_p * s.total);
    candidates += count - kept;
    count = kept;
    sum_weights(&s, &w, candidates, count);
  }
  if (sampling->min_p > 0.0) {
    count = keep_heavy(&w, candidates, count, sampling->min_p);
    sum_weights(&s, &w, candidates, count);
  }
  if (tarn__sampling_typical(sampling)) {
    const int64_t kept = select_typical(&w, row, candidates, count, sampling->typical_p);
    candidates += count - kept;
    count = kept;
    sum_weights(&s, &w, candidates, count);
  }
  const tarn__candidate drawn = draw(&s, &w, candidates, count, uniform);
  return (tarn__candidate){value_of(&w, &drawn), drawn.id};
}
