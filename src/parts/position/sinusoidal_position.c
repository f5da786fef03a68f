// Sine and cosine of each position, added to the embeddings (Vaswani et al. 2017).
#include "ops/embedding.h"
#include "parts/block.h"

typedef struct sinusoidal_keys {
  int64_t first;
} sinusoidal_keys;

static const tarn__option options[] = {
    {"first", TARN__KEY_INTEGER(sinusoidal_keys, first, 0, 1 << 24), .value = "0",
     .help = "position of the first token of a sentence; fairseq's is 2", .unit = "tokens", .later = true,
     .also = "offset padding_idx"},
};

static tarn_status resolve(const tarn__part_site *site, void *keys) {
  (void)keys;
  if (site->model->d_model % 2 == 0) return TARN_STATUS_OK;
  return site->fail(site, "model.d_model", "must be even with sinusoidal positions");
}

static tarn__tensor *embed(tarn__graph *graph, const tarn__embedded *e) {
  const sinusoidal_keys *keys = e->keys;
  return tarn__embedding_from(graph, e->ids, e->positions, e->table, e->scale, keys->first, e->dropout);
}

// The formula has no limit, but a model has only learnt positions below max_length.
const tarn__position_entry tarn__position_sinusoidal = {
    .part = {.word = "sinusoidal",
             .text = "sine and cosine of Vaswani et al. 2017",
             .equation = "p_{t, i} = sin(t / 10000^(i / (d/2 - 1))) for i = 0 .. d/2 - 1, then the cosines\n"
                         "x_t = scale embedding_t + p_{t + first}",
             .source = "Vaswani et al. 2017 (arXiv 1706.03762), in tensor2tensor's and fairseq's form",
             .also = "sin sinusoid trigonometric",
             TARN__PART_KEYS(sinusoidal_keys, options),
             .resolve = resolve},
    .bounded = true,
    .reads = true,
    .embed = embed,
};
