// The BiGRU reservoir of Shen et al. (ACL 2021) when frozen: a bidirectional GRU and a linear projection of both
// directions to d_model. The paper does not give its width; by default both directions together are as wide as the
// layer.
#include "parts/mixer/recurrent_layer.h"

typedef struct bigru_keys {
  tarn__recurrent_keys recurrent;  // without the keys of cross-attention
} bigru_keys;

static const tarn__option options[] = {
    TARN__KEY_HIDDEN(bigru_keys, recurrent.hidden, "half of model.d_model, rounded up", "units of each direction"),
    TARN__KEY_FROZEN_INPUT(bigru_keys, recurrent.frozen_input),
    TARN__KEY_FROZEN_RECURRENCE(bigru_keys, recurrent.frozen_recurrence),
    TARN__KEY_FROZEN_OUTPUT(bigru_keys, recurrent.frozen_output),
};

static tarn_status resolve(const tarn__part_site *site, void *keys) {
  tarn__recurrent_default(keys, (site->model->d_model + 1) / 2);
  return tarn__recurrent_check(site, keys, 2);
}

static void *declare_bigru(tarn__declare *declare, const void *keys) {
  return tarn__recurrent_declare(declare, keys, "gru", TARN__CELL_GRU, 2);
}

const tarn__mixer_entry tarn__mixer_bigru = {
    .part = {.word = "bigru",
             .text = "bidirectional GRU and a projection of both directions; encoder only",
             .equation = "h = GRU forwards, g = GRU backwards, as under gru\n"
                         "y = [h, g] W_o",
             .source = "Cho et al. 2014 (arXiv 1406.1078); frozen, Shen et al. 2021 (arXiv 2012.15045)",
             .also = "bi-gru bidirectional_gru",
             TARN__PART_KEYS(bigru_keys, options),
             .resolve = resolve},
    .declare = declare_bigru,
    .build = tarn__recurrent_build,
    .partly_frozen = tarn__recurrent_partly_frozen,
};
