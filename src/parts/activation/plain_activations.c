// The activations without a parameter: an entry for each word of ops/activation_table.h.
#include "parts/block.h"

#define FIELDS(...) __VA_ARGS__
#define ENTRY(name, word_, value, slope, vector, vector_slope, part_)                                            \
  static tarn__tensor *build_##word_(tarn__graph *graph, tarn__tensor *x, const tarn__linear_weights *weights) { \
    return tarn__project(graph, x, weights, name);                                                               \
  }                                                                                                              \
  const tarn__activation_entry tarn__activation_##word_ = {                                                      \
      .part = {.word = #word_, FIELDS part_}, .form = name, .build = build_##word_};
TARN__ACTIVATION_WORDS(ENTRY)
