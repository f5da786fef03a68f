// Sine and cosine as they stand in Vaswani et al. 2017 but for the order of the columns, which is Marian's.
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
             .text = "the same with frequencies 10000^(-2i/d) in place of tensor2tensor's 10000^(-i/(d/2 - 1)), as the "
                     "paper has them, and Marian's models",
             .also = "sinusoidal_marian static_position_embeddings",
             .resolve = resolve},
    .bounded = true,
    .reads = true,
    .embed = embed,
};
