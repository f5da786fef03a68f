// Relative biases (T5: Raffel et al. 2020): nothing is added to embeddings, and scores of self-attention get a learnt
// number for the head and the distance between query and key. Distances fall into buckets, whose widths grow. The
// layers of a stack share one table.
#include "ops/bias_table.h"

#include <math.h>

#include "parts/block.h"

typedef struct t5_keys {
  int64_t buckets, max_distance;
} t5_keys;

static const tarn__option options[] = {
    {"buckets", TARN__KEY_INTEGER(t5_keys, buckets, 4, 1 << 16), .value = "32",
     .help = "buckets of distances, an even number; in encoders half of them are for keys before the "
             "query and half for keys after it; in each direction the first half of the buckets hold "
             "one distance each",
     .also = "relative_attention_num_buckets num_buckets"},
    {"max_distance", TARN__KEY_INTEGER(t5_keys, max_distance, 2, 1 << 20), .value = "128",
     .help = "distances from here on are in the last bucket; more than half of `buckets`", .unit = "tokens",
     .also = "relative_attention_max_distance"},
};

static tarn_status resolve(const tarn__part_site *site, void *memory) {
  const t5_keys *keys = memory;
  if (keys->buckets % 2 != 0)
    return tarn__part_fail(site, "buckets", "%lld is odd; half of the buckets are for keys after the query",
                           (long long)keys->buckets);
  if (keys->max_distance > keys->buckets / 2) return TARN_STATUS_OK;
  return tarn__part_fail(site, "max_distance",
                         "%lld is not more than %lld, half of the buckets, which hold one distance each",
                         (long long)keys->max_distance, (long long)keys->buckets / 2);
}

// Initialised as in T5.
static tarn__param *declare_biases(tarn__declare *declare, const void *memory, int64_t heads, bool trained) {
  const t5_keys *keys = memory;
  return tarn__declare_param(declare, "biases.weight", keys->buckets, heads, trained,
                             (tarn__init){TARN__INIT_NORMAL, 1.0 / sqrt((double)declare->d_model), 1});
}

static tarn__tensor *biases(tarn__graph *graph, const void *memory, tarn__param *table, bool causal) {
  const t5_keys *keys = memory;
  return tarn__bias_table(graph, table, (tarn__bias_table_spec){keys->buckets, keys->max_distance, !causal});
}

// Every distance has a bucket, so a model can read longer texts than it was trained on.
const tarn__position_entry tarn__position_t5 = {
    .part = {.word = "t5",
             .text = "relative biases, Raffel et al. 2020: each score of self-attention gets a learnt number "
                     "for its head and for the bucket of the distance between query and key, from a table "
                     "that the layers of a stack share",
             .equation = "score_{ij} = q_i k_j / sqrt(d_head) + B[bucket(j - i), head], B [buckets, heads] trained\n"
                         "bucket(n) = |n| below E = buckets / 2, else E + E ln(|n| / E) / ln(max_distance / E), "
                         "rounded down, at most buckets - 1\n"
                         "encoders: so with half of the buckets for n <= 0, and with the other half for n > 0; "
                         "decoders: n <= 0 alone",
             .source = "Raffel et al. 2020 (arXiv 1910.10683)",
             .also = "relative_bias relative_attention_bias",
             TARN__PART_KEYS(t5_keys, options),
             .resolve = resolve},
    .declare_biases = declare_biases,
    .biases = biases,
};
