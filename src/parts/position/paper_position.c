// Sines and cosines as defined by Vaswani et al. 2017, except for the order of the columns, which is Marian's.
#include "ops/embedding.h"
#include "parts/block.h"

static tarn_status resolve(const tarn__part_site *site, void *keys) {
  (void)keys;
  if (site->model->d_model % 2 == 0) return TARN_STATUS_OK;
  return site->fail(site, "model.d_model", "must be even with sinusoidal positions");
}

static tarn__tensor *embed(tarn__graph *graph, const tarn__embedded *e) {
  return tarn__embedding_paper(graph, e->ids, e->positions, e->table, e->scale, e->dropout);
}

const tarn__position_entry tarn__position_sinusoidal_paper = {
    .part = {.word = "sinusoidal_paper",
             .text = "sinusoidal with the frequencies 10000^(-2i/d) of the paper, as in Marian's models, in place of "
                     "tensor2tensor's 10000^(-i/(d/2 - 1))",
             .equation = "p_{t, i} = sin(t / 10000^(2 i / d)) for i = 0 .. d/2 - 1, then the cosines\n"
                         "x_t = scale embedding_t + p_t",
             .source = "Vaswani et al. 2017 (arXiv 1706.03762), with Marian's order of columns",
             .also = "sinusoidal_marian static_position_embeddings",
             .resolve = resolve},
    .bounded = true,
    .reads = true,
    .embed = embed,
};
