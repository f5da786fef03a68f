// No positions: the order of tokens is known to mixers alone.
#include "parts/block.h"

static tarn__tensor *embed(tarn__graph *graph, const tarn__embedded *e) {
  return tarn__embedding(graph, e->ids, NULL, e->table, NULL, e->scale, e->dropout);
}

const tarn__position_entry tarn__position_none = {
    .part = {.word = "none", .text = "no positions are added"},
    .embed = embed,
};
