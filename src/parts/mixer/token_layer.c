#include "parts/mixer/token_layer.h"

#include <stdio.h>

tarn_status tarn__tokens_resolve(const tarn__part_site *site, int64_t *tokens) {
  if (*tokens == 0) *tokens = site->model->max_length;
  if (*tokens >= site->model->max_length) return TARN_STATUS_OK;
  return tarn__part_fail(site, "tokens",
                         "%lld places are fewer than model.max_length (%lld), and a sentence may be as long as that; "
                         "leave the key out, or lower model.max_length",
                         (long long)*tokens, (long long)site->model->max_length);
}

tarn__param *tarn__token_weight(tarn__declare *declare, const char *name, int64_t out, int64_t in, bool near_zero) {
  tarn__param *weight = tarn__declare_dense(declare, name, out, in, 1, 1.0);
  if (weight && weight->trained && near_zero)
    weight->init = (tarn__init){TARN__INIT_UNIFORM, 1e-3 * declare->kind->init_gain, 1};
  return weight;
}

tarn__param *tarn__token_bias_one(tarn__declare *declare, const char *name, int64_t n) {
  tarn__param *bias = tarn__declare_bias(declare, name, n, n);
  if (bias) bias->init = (tarn__init){TARN__INIT_ONE, 0.0, 1};
  return bias;
}
