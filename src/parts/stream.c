#include "ops/scale.h"
#include "parts/block.h"

tarn__tensor *tarn__stream_sum(tarn__graph *graph, tarn__tensor *x, tarn__tensor *y, double dropout) {
  return tarn__residual_norm(graph, x, y, dropout, (tarn__norm){.gain = NULL}).sum;
}

// Joins a pending branch without a norm.
static void join(tarn__graph *graph, tarn__stream *stream) {
  if (!stream->branch) return;
  stream->x = tarn__stream_sum(graph, stream->x, stream->branch, stream->dropout);
  stream->branch = NULL;
}

// x plus a branch, and the norm of the sum.
static tarn__residual_out build_norm(tarn__graph *graph, tarn__tensor *x, tarn__tensor *branch, double dropout,
                                     const tarn__norm_weights *norm) {
  return tarn__norm_of(&norm->use)->build(graph, x, branch, dropout, norm);
}

// Whether a branch waits for the next norm, or for none.
static bool is_pending(tarn_norm order) {
  return order == TARN_NORM_PRE || order == TARN_NORM_NONE || order == TARN_NORM_FIXUP;
}

static void begin_segment(tarn__graph *graph, tarn__stream *stream) {
  if (stream->begins) tarn__graph_segment(graph);
  if (stream->begins) stream->input = stream->x;
  stream->begins = false;
}

tarn__tensor *tarn__stream_enter(tarn__graph *graph, tarn__stream *stream, const tarn__norm_weights *norm,
                                 tarn_norm order) {
  if (order != TARN_NORM_PRE) {
    join(graph, stream);
    begin_segment(graph, stream);
    return norm->shift ? tarn__scale(graph, stream->x, NULL, norm->shift) : stream->x;
  }
  // The op that adds a branch belongs to the layer of the branch, so that only the sum crosses the border.
  if (!stream->branch) begin_segment(graph, stream);
  tarn__residual_out out = build_norm(graph, stream->x, stream->branch, stream->dropout, norm);
  stream->x = out.sum;
  stream->branch = NULL;
  begin_segment(graph, stream);
  return out.y;
}

void tarn__stream_leave(tarn__graph *graph, tarn__stream *stream, tarn__tensor *branch, double dropout,
                        const tarn__norm_weights *norm, tarn_norm order) {
  if (stream->replaced) {
    stream->x = tarn__dropout_apply(graph, branch, dropout);
    return;
  }
  if (norm->gate) branch = tarn__scale(graph, branch, norm->gate, NULL);
  if (is_pending(order)) {
    stream->branch = branch;
    stream->dropout = dropout;
    return;
  }
  tarn__norm_weights own = *norm;
  tarn__tensor *x = stream->x;
  if (order == TARN_NORM_DEEPNORM) own.skip = stream->skip;
  if (order == TARN_NORM_B2T && stream->last) x = tarn__stream_sum(graph, stream->input, x, 0.0);
  stream->x = build_norm(graph, x, branch, dropout, &own).y;
}

// The stream itself continues with a separate branch, so the following bits are the same as without showing.
void tarn__stream_show(tarn__graph *graph, const tarn__stream *stream, tarn__shows *shows) {
  if (!tarn__shows_want(shows, TARN__SHOW_OUTPUT)) return;
  tarn__stream seen = *stream;
  join(graph, &seen);
  tarn__show_tensor(shows, TARN__SHOW_OUTPUT, seen.x);
}

void tarn__stream_select(tarn__graph *graph, tarn__stream *stream, tarn__tensor *rows) {
  stream->input = stream->x = tarn__select_rows(graph, stream->x, rows);
}

tarn__tensor *tarn__stream_finish(tarn__graph *graph, tarn__stream *stream, const tarn__norm_weights *norm) {
  if (norm->use.part) {
    stream->x = build_norm(graph, stream->x, stream->branch, stream->dropout, norm).y;
    stream->branch = NULL;
  }
  join(graph, stream);
  tarn__graph_segment_end(graph);
  return stream->x;
}
