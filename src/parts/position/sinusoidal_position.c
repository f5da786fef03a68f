// Sine and cosine of each position, added to the embeddings (Vaswani et al. 2017).
#include "parts/block.h"

static tarn_status resolve(const tarn__part_site *site, void *keys) {
  (void)keys;
  if (site->model->d_model % 2 == 0) return TARN_STATUS_OK;
  return site->fail(site, "model.d_model", "must be even with sinusoidal positions");
}

static tarn__tensor *embed(tarn__graph *graph, const tarn__embedded *e) {
  return tarn__embedding(graph, e->ids, e->positions, e->table, NULL, e->scale, e->dropout);
}

// The formula has no limit, but a model has only learnt positions below max_length.
const tarn__position_entry tarn__position_sinusoidal = {
    .part = {.word = "sinusoidal",
             .text = "sine and cosine of Vaswani et al. 2017",
             .equation = "p_{t, i} = sin(t / 10000^(i / (d/2 - 1))) for i = 0 .. d/2 - 1, then the cosines\n"
                         "x_t = scale embedding_t + p_t",
             .source = "Vaswani et al. 2017 (arXiv 1706.03762), in tensor2tensor's and fairseq's form",
             .also = "sin sinusoid trigonometric",
             .resolve = resolve},
    .bounded = true,
    .reads = true,
    .embed = embed,
};
