// Relative keys and values (Shaw et al. 2018): nothing is added to embeddings; self-attention compares queries with the
// sum of a key and a learnt vector for its distance, and adds another such vector to its value. Distances are clipped.
#include "parts/block.h"

typedef struct shaw_keys {
  int64_t reach;
  bool values;
} shaw_keys;

static const tarn__option options[] = {
    {"max_relative_position", TARN__KEY_INTEGER(shaw_keys, reach, 1, 1 << 16), .value = "16",
     .help = "greatest distance k that has a vector of its own; tokens that are further away have that "
             "of k, in each direction; a layer has tables [2 k + 1, d_head] that its heads share",
     .unit = "tokens",
     .also = "max_relative_positions max_relative_distance clipping_distance left_max_position_embeddings k"},
    {"values", TARN__KEY_BOOL(shaw_keys, values), .value = "yes",
     .help = "vectors for distances are added to keys and to values; no: to keys only",
     .also = "relative_values use_relative_values"},
};

static int64_t relative(const void *memory, bool *values) {
  const shaw_keys *keys = memory;
  *values = keys->values;
  return keys->reach;
}

// Every distance is clipped to one with vectors, so a model can read longer texts than it was trained on.
const tarn__position_entry tarn__position_shaw = {
    .part = {.word = "shaw",
             .text = "relative keys and values, Shaw et al. 2018: self-attention adds learnt vectors for the "
                     "distance between query and key, clipped, to keys and to values; each layer has its own",
             .equation = "score_{ij} = q_i (k_j + K_{clip(j - i)}) / sqrt(d_head)\n"
                         "y_i = sum over j of softmax(score_i)_j (v_j + V_{clip(j - i)})\n"
                         "clip(n) = n within -max_relative_position .. max_relative_position, else the nearer one\n"
                         "K, V [2 max_relative_position + 1, d_head] trained, shared by the heads of a layer",
             .source = "Shaw et al. 2018 (arXiv 1803.02155)",
             .also = "relative relative_key relative_keys relative_position_representations rpr",
             TARN__PART_KEYS(shaw_keys, options)},
    .relative = relative,
};
