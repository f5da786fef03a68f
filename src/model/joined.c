#include "model/joined.h"

#include "model/integers.h"

// The integers of both sides, in the graph's arena.
typedef struct numbers {
  int32_t *offsets, *positions, *target_positions, *source_rows, *target_rows, *source_places, *target_places;
} numbers;

static void fill(const numbers *n, const tarn__packed *source, const tarn__packed *target) {
  int32_t row = 0, s = 0, t = 0;
  for (int64_t i = 0; i < source->sentences; i++) {
    const int32_t begin = row;
    n->offsets[i] = row;
    for (int side = 0; side < 2; side++) {
      const int32_t end = side == 0 ? source->offsets[i + 1] : target->offsets[i + 1];
      for (int32_t *at = side == 0 ? &s : &t; *at < end; ++*at, row++) {
        n->positions[row] = row - begin;
        n->source_places[row] = s;
        n->target_places[row] = t;
        (side == 0 ? n->source_rows : n->target_rows)[*at] = row;
        if (side == 1) n->target_positions[t] = row - begin;
      }
    }
  }
  n->offsets[source->sentences] = row;
  n->source_places[row] = s;
  n->target_places[row] = t;
}

tarn__joined tarn__joined_of(tarn__graph *graph, const tarn__packed *source, const tarn__packed *target) {
  const int64_t rows = source->rows + target->rows, sentences = source->sentences;
  numbers n = {0};
  if (source->offsets && target->offsets) {
    n = (numbers){tarn__integers(graph, sentences),    tarn__integers(graph, rows),
                  tarn__integers(graph, target->rows), tarn__integers(graph, source->rows),
                  tarn__integers(graph, target->rows), tarn__integers(graph, rows),
                  tarn__integers(graph, rows)};
    if (n.target_places) fill(&n, source, target);
  }
  const tarn__prefix prefix = {
      .source_rows = tarn__graph_input(graph, source->rows, n.source_rows, "rows of the source"),
      .target_rows = tarn__graph_input(graph, target->rows, n.target_rows, "rows of the target"),
      .source_places = tarn__graph_input(graph, rows + 1, n.source_places, "places of the source"),
      .target_places = tarn__graph_input(graph, rows + 1, n.target_places, "places of the target"),
      .source_offsets = tarn__graph_input(graph, sentences + 1, source->offsets, "source offsets"),
      .source_longest = source->longest};
  return (tarn__joined){.packed = {.sentences = sentences,
                                   .rows = rows,
                                   .longest = source->longest + target->longest,
                                   .positions = n.positions,
                                   .offsets = n.offsets},
                        .target_positions = n.target_positions,
                        .prefix = prefix};
}
