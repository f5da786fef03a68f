#include "config/config_adaptive.h"

#include <stdio.h>
#include <string.h>

#include "task/bands.h"

static tarn_status check_cutoffs(const tarn__cutoffs *cutoffs, const char *factor, int64_t d_model,
                                 const tarn__yaml_node *root) {
  char text[160];
  const double usual = 4.0;
  if (cutoffs->count == 0 && cutoffs->factor != usual) {
    snprintf(text, sizeof text, "changes nothing without cut-offs; set %s, or leave it out", cutoffs->key);
    return tarn__yaml_fail_key(root, factor, text);
  }
  if (cutoffs->count >= TARN__BANDS) {
    snprintf(text, sizeof text, "there are %lld cut-offs, and at most %d", (long long)cutoffs->count,
             (int)TARN__BANDS - 1);
    return tarn__yaml_fail_key(root, cutoffs->key, text);
  }
  for (int64_t i = 1; i < cutoffs->count; i++) {
    if (cutoffs->values[i] > cutoffs->values[i - 1]) continue;
    snprintf(text, sizeof text, "must rise, and %lld comes after %lld", (long long)cutoffs->values[i],
             (long long)cutoffs->values[i - 1]);
    return tarn__yaml_fail_key(root, cutoffs->key, text);
  }
  if (cutoffs->count == 0 || tarn__band_width(cutoffs, d_model, cutoffs->count) > 0) return TARN_STATUS_OK;
  snprintf(text, sizeof text, "with %g the last of %lld bands has vectors of no numbers (%lld / %g^%lld)",
           cutoffs->factor, (long long)cutoffs->count + 1, (long long)d_model, cutoffs->factor,
           (long long)cutoffs->count);
  return tarn__yaml_fail_key(root, factor, text);
}

static bool same_bands(const tarn__cutoffs *a, const tarn__cutoffs *b) {
  return a->count == b->count && a->factor == b->factor &&
         (a->count == 0 || memcmp(a->values, b->values, (size_t)a->count * sizeof *a->values) == 0);
}

// An output in bands has its own projections, and one softmax per band.
static tarn_status check_output(tarn_config *config, const tarn__yaml_node *root) {
  static const char smoothing[] = "train.label_smoothing";
  const tarn_config_model *model = &config->model;
  if (model->output_rank > 0)
    return tarn__yaml_fail_key(root, "model.output_rank",
                               "with model.adaptive_softmax_cutoff each band has a rank of its own; set it to 0");
  if (model->output_mixtures > 0)
    return tarn__yaml_fail_key(root, "model.output_mixtures",
                               "with model.adaptive_softmax_cutoff each band has one softmax; set it to 0");
  if (config->train.label_smoothing > 0 && !tarn__yaml_is_empty(tarn__yaml_find(root, smoothing)))
    return tarn__yaml_fail_key(root, smoothing,
                               "with model.adaptive_softmax_cutoff there is no softmax over all words to smooth; set "
                               "it to 0");
  config->train.label_smoothing = 0;
  return TARN_STATUS_OK;
}

// An input and an output that share parameters must have the same bands.
static tarn_status check_shared(const tarn_config *config, const tarn__cutoffs *input, const tarn__cutoffs *output,
                                const tarn__yaml_node *root) {
  const tarn_embeddings share = config->model.embeddings;
  const tarn__task *task = tarn__config_task(config);
  const bool shared = share != TARN_EMBEDDINGS_NONE && share != TARN_EMBEDDINGS_ENCODER_DECODER;
  if (task->labelled && output->count > 0 && !shared)
    return tarn__yaml_fail_key(root, output->key, "no words are predicted; leave it out");
  const bool bands = shared && !(task->labelled && output->count == 0);
  if (bands && !same_bands(input, output))
    return tarn__yaml_fail_key(root, output->count > 0 ? output->key : input->key,
                               "with this model.embeddings the output shares its matrices with an input, so that "
                               "adaptive_input and adaptive_softmax need the same cut-offs and factor; else set "
                               "model.embeddings to none");
  if (config->model.tie_adaptive_proj && (!shared || output->count == 0))
    return tarn__yaml_fail_key(root, "model.tie_adaptive_proj",
                               "no adaptive softmax shares its matrices with an adaptive input; set it to no");
  return TARN_STATUS_OK;
}

tarn_status tarn__config_resolve_adaptive(tarn_config *config, const tarn__yaml_node *root) {
  const tarn_config_model *model = &config->model;
  const tarn__cutoffs input = tarn__input_cutoffs(model), output = tarn__output_cutoffs(model);
  TARN_TRY(check_cutoffs(&input, "model.adaptive_input_factor", model->d_model, root));
  TARN_TRY(check_cutoffs(&output, "model.adaptive_softmax_factor", model->d_model, root));
  if (input.count > 0 && model->embedding_size > 0)
    return tarn__yaml_fail_key(root, "model.embedding_size",
                               "with model.adaptive_input_cutoff each band has a width of its own; set it to 0");
  if (output.count == 0 && model->adaptive_softmax_dropout > 0)
    return tarn__yaml_fail_key(root, "model.adaptive_softmax_dropout",
                               "changes nothing without model.adaptive_softmax_cutoff; set it to 0");
  TARN_TRY(check_shared(config, &input, &output, root));
  return output.count > 0 && !tarn__config_task(config)->labelled ? check_output(config, root) : TARN_STATUS_OK;
}
