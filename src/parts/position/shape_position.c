// Sinusoids whose positions are shifted in training (SHAPE: Kiyono et al. 2021), so a model learns that only distances
// count.
#include "ops/embedding.h"
#include "parts/block.h"

typedef struct shape_keys {
  int64_t shift;
} shape_keys;

static const tarn__option options[] = {
    {"shift", TARN__KEY_INTEGER(shape_keys, shift, 1, 1 << 24), .value = "500",
     .help = "largest shift K: in training, the positions of a sentence begin at a number drawn from "
             "0 .. K, anew in each update and separately for source and target; outside training they "
             "begin at 0",
     .unit = "tokens", .random = true, .also = "max_shift maximum_shift"},
};

static tarn_status resolve(const tarn__part_site *site, void *keys) {
  (void)keys;
  if (site->model->d_model % 2 == 0) return TARN_STATUS_OK;
  return site->fail(site, "model.d_model", "must be even with sinusoidal positions");
}

static tarn__tensor *embed(tarn__graph *graph, const tarn__embedded *e) {
  const shape_keys *keys = e->keys;
  return tarn__embedding_shifted(graph, e->ids, e->positions, e->table, e->scale, keys->shift, e->dropout);
}

const tarn__position_entry tarn__position_shape = {
    .part = {.word = "shape",
             .text = "sinusoidal, shifted by a random number of positions in training (SHAPE), Kiyono et al. 2021",
             .equation = "x_t = scale embedding_t + p_{t + k}, k uniform in 0 .. shift for each sentence in "
                         "training, else 0\n"
                         "p as in sinusoidal",
             .source = "Kiyono et al. 2021 (arXiv 2109.05644)",
             .also = "shifted shifted_absolute shifted_sinusoidal",
             TARN__PART_KEYS(shape_keys, options),
             .resolve = resolve},
    .bounded = true,
    .reads = true,
    .embed = embed,
};
