#include "model/funnel.h"

#include "model/integers.h"

tarn__funnel tarn__funnel_of(const tarn_stack *keys, tarn__block_run *run) {
  return (tarn__funnel){
      .keys = keys, .run = run, .whole = *run, .sentences = run->offsets ? run->offsets->cols - 1 : 0};
}

static bool pools_after(const tarn_stack *keys, int depth) {
  for (int64_t i = 0; i < keys->pool_count; i++)
    if (keys->pool_after[i] == depth) return true;
  return false;
}

// What a pooling makes of the rows, as the host knows them: the rows of each pair, and the offsets of the sentences, of
// pairs. Of a graph that is only planned, whose offsets are not known, at most as many pairs as there can be.
typedef struct pairs {
  int32_t *first;    // [count + 1] of each pair, and the end
  int32_t *offsets;  // [sentences + 1]
  int64_t count;
} pairs;

static pairs pairs_of(const tarn__funnel *f, tarn__graph *graph, int64_t rows) {
  const int32_t *offsets = f->run->offsets->host;
  pairs p = {.count = (rows + f->sentences) / 2};
  if (!offsets) return p;
  p.count = 0;
  p.first = tarn__integers(graph, (rows + f->sentences) / 2);
  p.offsets = tarn__integers(graph, f->sentences);
  if (!p.first || !p.offsets) return (pairs){.count = (rows + f->sentences) / 2};
  for (int64_t s = 0; s < f->sentences; s++) {
    p.offsets[s] = (int32_t)p.count;
    for (int32_t r = offsets[s]; r < offsets[s + 1]; r += 2) p.first[p.count++] = r;
  }
  p.offsets[f->sentences] = (int32_t)p.count;
  p.first[p.count] = (int32_t)rows;
  return p;
}

// The position of a pair is that of its first row.
static tarn__tensor *positions_of(const tarn__funnel *f, tarn__graph *graph, const pairs *p) {
  const tarn__tensor *positions = f->run->positions;
  int32_t *own = p->first && positions->host ? tarn__integers(graph, p->count) : NULL;
  for (int64_t i = 0; own && i < p->count; i++) own[i] = positions->host[p->first[i]];
  return tarn__graph_input(graph, p->count, own, "positions of pairs");
}

static void pool(tarn__funnel *f, tarn__stream *stream) {
  tarn__graph *graph = f->run->graph;
  tarn__tensor *x = tarn__stream_finish(graph, stream, &(tarn__norm_weights){0});
  const pairs p = pairs_of(f, graph, x->rows);
  if (!f->first) {
    f->first = x;
    f->rows = x->rows;
  }
  stream->x = tarn__sentence_mean(graph, x, tarn__graph_input(graph, p.count + 1, p.first, "pairs of rows"));
  if (f->run->positions) f->run->positions = positions_of(f, graph, &p);
  f->run->offsets = tarn__graph_input(graph, f->sentences + 1, p.offsets, "offsets of pairs");
  f->run->longest = (f->run->longest + 1) / 2;
  f->pooled++;
}

// The row that token i of a sentence has become is its row i / 2^pooled, rounded down.
static tarn__tensor *rows_of(const tarn__funnel *f, tarn__graph *graph) {
  const int32_t *whole = f->whole.offsets->host, *offsets = f->run->offsets->host;
  int32_t *rows = whole && offsets ? tarn__integers(graph, f->rows) : NULL;
  for (int64_t s = 0; rows && s < f->sentences; s++)
    for (int32_t i = 0; i < whole[s + 1] - whole[s]; i++) rows[whole[s] + i] = offsets[s] + (i >> f->pooled);
  return tarn__graph_input(graph, f->rows, rows, "rows of tokens");
}

static void upsample(tarn__funnel *f, tarn__stream *stream) {
  tarn__graph *graph = f->run->graph;
  tarn__tensor *x = tarn__stream_finish(graph, stream, &(tarn__norm_weights){0});
  x = tarn__select_rows(graph, x, rows_of(f, graph));
  stream->x = tarn__stream_sum(graph, x, f->first, 0.0);
  *f->run = f->whole;
}

void tarn__funnel_leave(tarn__funnel *funnel, int depth, tarn__stream *stream) {
  if (pools_after(funnel->keys, depth)) pool(funnel, stream);
  if (funnel->keys->upsample_after == depth) upsample(funnel, stream);
}
