#include "forecast/scale_time.h"

#include <math.h>

enum {
  WORD = 24,        // bytes of a status word
  SHORT = 1 << 19,  // total bytes below which gathering uses doubling
  PLAIN = 4,        // bytes of a value in fp32
  FEW = 24          // size of the few numbers gathered from every rank
};

static double doublings(int ranks) { return ceil(log2(ranks)); }

// Bytes that every rank gets from the others if `bytes` are divided among them.
static double foreign(int ranks, double bytes) { return bytes * (ranks - 1) / ranks; }

double tarn__scale_word(const tarn_scale *scale, int ranks) {
  if (ranks == 1) return 0;
  return scale->latency * doublings(ranks) + WORD * (ranks - 1) / scale->bandwidth;
}

double tarn__scale_exchange(const tarn_scale *scale, int ranks, double bytes) {
  if (ranks == 1) return 0;
  return scale->latency * (ranks - 1) + foreign(ranks, bytes) / scale->bandwidth;
}

double tarn__scale_gather(const tarn_scale *scale, int ranks, double bytes) {
  if (ranks == 1) return 0;
  const double messages = bytes < SHORT ? doublings(ranks) : ranks - 1;
  return scale->latency * messages + foreign(ranks, bytes) / scale->bandwidth;
}

double tarn__scale_used_rows(const tarn__scale_table *table, double tokens) {
  if (!table->shares) return fmin((double)table->rows, tokens);
  double rows = 0;
  for (int64_t r = 0; r < table->rows; r++) rows -= expm1(tokens * log1p(-fmin(table->shares[r], 1)));
  return rows;
}

// The halves of a sum: the first, the second, or both.
enum { SCATTERS = 1, GATHERS = 2 };

static double travel(const tarn_scale *scale, int ranks, double bytes, int what) {
  const double rounds = ceil(bytes / (double)scale->round), word = tarn__scale_word(scale, ranks);
  double each = 0;
  if (rounds == 0) return 0;
  if (what & SCATTERS) each += word + tarn__scale_exchange(scale, ranks, bytes / rounds);
  if (what & GATHERS) each += word + tarn__scale_gather(scale, ranks, bytes / rounds);
  return rounds * each;
}

// Exchange of so many bytes from each rank, in pieces that fit into the gathering buffer with those of all ranks and
// the own one (comm/mpi).
static double tell(const tarn_scale *scale, int ranks, double bytes) {
  const double pieces = ceil(bytes / floor((double)scale->round / (ranks + 1)));
  return tarn__scale_word(scale, ranks) + pieces * tarn__scale_gather(scale, ranks, bytes * ranks / pieces);
}

static double small_sums(const tarn_scale *scale, int ranks) {
  double seconds = 3 * tell(scale, ranks, FEW) + tell(scale, ranks, ceil((double)scale->marks / 8));
  for (size_t i = 0; i < scale->own->table_count; i++)
    seconds += tell(scale, ranks, ceil((double)scale->own->tables[i].rows / 8));
  return seconds;
}

// Buckets in transit.
typedef struct queue {
  const tarn_scale *scale;
  int ranks, sharded;
  double end;              // of the last bucket
  double adding, network;  // total so far
} queue;

static void send(queue *q, double ready, double values) {
  const double bytes = values * (q->scale->reduce == TARN_PRECISION_BF16 ? 2 : PLAIN);
  const double network = travel(q->scale, q->ranks, bytes, q->sharded ? SCATTERS : SCATTERS | GATHERS);
  const double adding = values * PLAIN / q->scale->adding;
  q->end = fmax(ready + q->adding, q->end) + network + adding;
  q->adding += adding;
  q->network += network;
}

// The part with whose gradients those of an output layer are sent. The output layer is complete first, but its
// parameters precede those of the layers (model.c), so its sums follow those of the lowest layer with any.
static size_t find_release(const tarn_scale *scale, const tarn_scale_point *point) {
  const size_t output = scale->own->output;
  for (size_t i = 1; i < scale->part_count; i++)
    if (i != output && point->part_values[i] > 0) return i;
  return output;
}

// The last backward pass of an update, from top to bottom. Returns the seconds of all passes.
static double walk(queue *q, const tarn_scale_point *point) {
  const tarn_scale *scale = q->scale;
  const size_t output = scale->own->output, release = find_release(scale, point);
  double now = 0, last = 0, filled = 0;
  for (size_t i = 0; i < scale->part_count; i++) {
    now += scale->parts[i].forward_seconds + scale->parts[i].backward_seconds;
    last += scale->parts[i].backward_seconds / scale->accumulate;
  }
  const double all = now;
  now -= last;
  for (size_t i = scale->part_count; i-- > 0;) {
    now += scale->parts[i].backward_seconds / scale->accumulate;
    if (output == 0 || i != output) filled += point->part_values[i];
    if (output > 0 && i == release) filled += point->part_values[output];
    for (; filled >= (double)scale->bucket; filled -= (double)scale->bucket)
      send(q, scale->overlap ? now : all, (double)scale->bucket);
  }
  if (filled > 0) send(q, all, filled);
  return all;
}

static void go_way(tarn_scale_way *way, const tarn_scale_point *point, const tarn_scale *scale, int sharded) {
  const int ranks = point->ranks;
  queue q = {.scale = scale, .ranks = ranks, .sharded = sharded};
  const double passes = walk(&q, point);
  const double weights = sharded ? travel(scale, ranks, scale->weight_bytes, GATHERS) : 0,
               small = small_sums(scale, ranks);
  const double optimiser = scale->optimiser_seconds / (sharded ? ranks : 1);
  const double bytes = point->used_values * (scale->reduce == TARN_PRECISION_BF16 ? 2 : PLAIN);
  way->step_seconds = fmax(passes + q.adding, q.end) + small + weights + optimiser;
  way->network_seconds = q.network + small + weights;
  way->adding_seconds = q.adding;
  way->waiting_seconds = way->step_seconds - passes - q.adding - optimiser;
  way->sent_bytes = foreign(ranks, sharded ? bytes + scale->weight_bytes : 2 * bytes);
}

static void find_values(tarn_scale_point *point, const tarn_scale *scale) {
  for (size_t i = 0; i < scale->part_count; i++) point->part_values[i] = (double)scale->parts[i].values;
  for (size_t i = 0; i < scale->own->table_count; i++) {
    const tarn__scale_table *table = &scale->own->tables[i];
    const double used = tarn__scale_used_rows(table, table->tokens * point->ranks);
    point->part_values[table->part] -= ((double)table->rows - used) * (double)table->cols;
  }
  point->used_values = 0;
  for (size_t i = 0; i < scale->part_count; i++) point->used_values += point->part_values[i];
}

void tarn__scale_point(tarn_scale_point *point, const tarn_scale *scale) {
  tarn_scale_way *const ways[] = {&point->whole, &point->sharded};
  find_values(point, scale);
  for (int sharded = 0; sharded < 2; sharded++) {
    tarn_scale_way *way = ways[sharded];
    if (point->ranks == 1)
      *way = (tarn_scale_way){.step_seconds = scale->alone_seconds};
    else
      go_way(way, point, scale, sharded);
    way->efficiency = scale->alone_seconds / way->step_seconds;
    way->tokens_per_second = scale->update_tokens * point->ranks / way->step_seconds;
  }
}
