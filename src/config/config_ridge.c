#include "config/config_ridge.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "config/config_part.h"
#include "task/task.h"

bool tarn__config_takes_steps(const tarn_config *config) { return config->train.optimiser != TARN_OPTIMISER_RIDGE; }

// Whether an option of train has its default.
static tarn_status has_default(bool *same, const tarn_config *config, const char *name) {
  const tarn__section *section = tarn__config_section(TARN__SECTION_TRAIN);
  tarn_config_train plain;
  memcpy(&plain, &config->train, sizeof plain);
  const tarn__option *option = NULL;
  for (int i = 0; i < section->count && !option; i++)
    if (strcmp(section->options[i].name, name) == 0) option = &section->options[i];
  TARN_REQUIRE(option, INTERNAL, "train has no option %s", name);
  TARN_TRY(tarn__option_set(option, &plain, option->value, NULL));
  *same = memcmp(&plain, &config->train, sizeof plain) == 0;
  return TARN_STATUS_OK;
}

// Keys for the steps of an optimiser. A resolved configuration contains every key, so defaults are allowed.
static tarn_status check_steps(const tarn_config *config, const tarn__yaml_node *root) {
  static const char *const names[] = {"lr",       "beta1",     "beta2",    "eps",       "weight_decay",
                                      "schedule", "warmup",    "min_lr",   "clip_norm", "accumulate",
                                      "moments",  "recompute", "patience", "autofreeze"};
  char key[64];
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    bool same;
    TARN_TRY(has_default(&same, config, names[i]));
    snprintf(key, sizeof key, "train.%s", names[i]);
    if (!same) return tarn__yaml_fail_key(root, key, "train.optimiser: ridge makes no steps; leave it out");
  }
  if (config->train.max_epochs > 1)
    return tarn__yaml_fail_key(root, "train.max_epochs",
                               "train.optimiser: ridge makes one pass; set it to 1 or leave it out");
  if (config->train.freeze_count > 0)
    return tarn__yaml_fail_key(root, "train.freeze", "train.optimiser: ridge makes no steps; leave it out");
  return TARN_STATUS_OK;
}

static tarn_status check_output(const tarn_config_model *model, const tarn__yaml_node *root) {
  if (model->embeddings != TARN_EMBEDDINGS_NONE)
    return tarn__yaml_fail_key(
        root, "model.embeddings",
        "train.optimiser: ridge computes the output layer alone; set it to none, so that the input does not "
        "share its matrix");
  if (!model->output_bias)
    return tarn__yaml_fail_key(root, "model.output_bias", "train.optimiser: ridge computes it; set it to yes");
  if (model->output_rank != 0)
    return tarn__yaml_fail_key(root, "model.output_rank", "train.optimiser: ridge computes one matrix; set it to 0");
  if (model->adaptive_softmax_cutoffs != 0)
    return tarn__yaml_fail_key(root, "model.adaptive_softmax_cutoff",
                               "train.optimiser: ridge computes one matrix; leave it out");
  if (model->output_mixtures != 0)
    return tarn__yaml_fail_key(root, "model.output_mixtures",
                               "train.optimiser: ridge computes one matrix; set it to 0");
  return TARN_STATUS_OK;
}

static tarn_status fail_dropout(const tarn__yaml_node *root, const char *key, double p) {
  char text[160];
  snprintf(text, sizeof text, "it is %g, but train.optimiser: ridge sums the states as they are; set it to 0", p);
  return tarn__yaml_fail_key(root, key, text);
}

static tarn_status check_dropout(const tarn_config *config, const tarn__yaml_node *root) {
  char key[128];
  if (config->model.embedding_dropout > 0)
    return fail_dropout(root, "model.embedding_dropout", config->model.embedding_dropout);
  if (config->decoder.layerdrop > 0) return fail_dropout(root, "decoder.layerdrop", config->decoder.layerdrop);
  double shift;
  char shifts[TARN__KIND_KEY];
  if (tarn__positions_random(shifts, config, &shift)) {
    char text[160];
    snprintf(text, sizeof text, "%s shifts them at random, but train.optimiser: ridge sums the states as they are",
             config->model.positions.part->word);
    return tarn__yaml_fail_key(root, "model.positions", text);
  }
  for (int32_t i = 0; i < config->decoder.count; i++) {
    const tarn_kind *kind = &config->kinds[config->decoder.layers[i].kind];
    double p;
    char random[TARN__KIND_KEY];
    if (!tarn__kind_random(random, kind, &p)) continue;
    snprintf(key, sizeof key, "kinds.%s.%s", kind->name, random);
    return fail_dropout(root, key, p);
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__config_check_ridge(const tarn_config *config, const tarn__yaml_node *root) {
  if (config->train.optimiser != TARN_OPTIMISER_RIDGE) {
    bool same;
    TARN_TRY(has_default(&same, config, "ridge"));
    return same ? TARN_STATUS_OK
                : tarn__yaml_fail_key(root, "train.ridge",
                                      "only train.optimiser: ridge has a penalty of this kind; leave it out");
  }
  if (!tarn__config_task(config)->readout) {
    char text[TARN__TASK_TEXT];
    snprintf(text, sizeof text, "ridge computes the output layer of language models; this is %s",
             tarn__config_task(config)->model);
    return tarn__yaml_fail_key(root, "train.optimiser", text);
  }
  TARN_TRY(check_output(&config->model, root));
  TARN_TRY(check_dropout(config, root));
  return check_steps(config, root);
}
