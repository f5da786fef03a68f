// A vector for each position, added to the embeddings (Gehring et al. 2017).
#include "parts/block.h"

// Initialised like the embeddings.
static tarn__param *declare_table(tarn__declare *declare, const char *name, const tarn_config_model *model,
                                  bool trained) {
  return tarn__declare_param(declare, name, model->max_length, declare->d_model, trained,
                             (tarn__init){TARN__INIT_NORMAL, model->embedding_std, 1});
}

static tarn__tensor *embed(tarn__graph *graph, const tarn__embedded *e) {
  if (e->longest > e->position_table->rows)
    tarn__graph_fail(graph, TARN_STATUS_DATA,
                     "a sentence of %lld tokens is longer than model.max_length (%lld), and has no learned positions",
                     (long long)e->longest, (long long)e->position_table->rows);
  return tarn__embedding(graph, e->ids, e->positions, e->table, e->position_table, e->scale, e->dropout);
}

const tarn__position_entry tarn__position_learned = {
    .part = {.word = "learned",
             .text = "a trained vector for each of max_length positions, as in GPT-2; a matrix for each side",
             .equation = "x_t = scale embedding_t + P_t, P [max_length, d_model] trained",
             .source = "Gehring et al. 2017 (arXiv 1705.03122)",
             .also = "trained absolute"},
    .bounded = true,
    .reads = true,
    .declare = declare_table,
    .embed = embed,
};
