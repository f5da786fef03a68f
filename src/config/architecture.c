#include "config/architecture.h"

#include "base/status.h"
#include "task/task.h"

static const char KEY[] = "model.architecture";

static tarn_status fail(const tarn__yaml_node *root, const char *text) {
  return tarn__yaml_fail(tarn__yaml_nearest(root, KEY), "%s: %s", KEY, text);
}

tarn_status tarn__config_check_architecture(const tarn_config *config, const tarn__yaml_node *root) {
  const tarn_architecture architecture = config->model.architecture;
  if (architecture == TARN_ARCHITECTURE_COUNT || tarn__task_of(architecture)) return TARN_STATUS_OK;
  return fail(root, "nothing is learnt by an encoder alone yet; choose encoder-decoder or decoder");
}

tarn_status tarn__config_resolve_architecture(tarn_config *config, const tarn__yaml_node *root) {
  const tarn_stack *encoder = &config->encoder;
  const tarn_architecture found = encoder->count > 0 ? TARN_ARCHITECTURE_ENCODER_DECODER : TARN_ARCHITECTURE_DECODER;
  tarn_architecture *architecture = &config->model.architecture;
  if (*architecture == TARN_ARCHITECTURE_COUNT) *architecture = found;
  if (*architecture == found) return TARN_STATUS_OK;
  return fail(root, found == TARN_ARCHITECTURE_DECODER
                        ? "encoder-decoder needs encoder.layers, or encoder.place; a language model is a decoder"
                        : "a decoder has no encoder; leave out the section encoder, or choose encoder-decoder");
}
