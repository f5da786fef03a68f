#include "train/features/layerdrop.h"

#include "base/random.h"
#include "train/feature.h"
#include "train/trainer.h"

// Separates these blocks of the generator from other uses of the same key ("drop").
static const uint32_t TAG = 0x64726F70u;

void tarn__layerdrop_draw(bool *skip, int layers, double p, uint64_t seed, uint32_t step, tarn__stack_id stack) {
  const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
  for (int i = 0; i < layers; i++) {
    const uint32_t counter[4] = {step, (uint32_t)i, (uint32_t)stack, TAG};
    uint32_t words[4];
    tarn__philox(words, counter, key);
    uint64_t bits = ((uint64_t)words[1] << 32 | words[0]) >> 11;
    skip[i] = (double)bits * 0x1p-53 < p;
  }
}

// --- the feature

static bool wanted(const tarn_config *config) { return config->encoder.layerdrop > 0 || config->decoder.layerdrop > 0; }

static tarn_status shorten(tarn_train *t, void *state, const tarn__batch *batch, tarn__step_kind kind,
                           tarn__model_shortcuts *shortcuts) {
  tarn__layerdrop *d = state;
  const tarn__exec *exec = &t->stepper.exec;
  (void)batch;
  for (int id = 0; id < TARN__STACKS && kind == TARN__STEP_TRAIN; id++) {
    const tarn_stack *stack = tarn__config_stack(t->config, (tarn__stack_id)id);
    if (stack->layerdrop == 0) continue;
    tarn__layerdrop_draw(d->skip[id], stack->count, stack->layerdrop, exec->seed, exec->step, (tarn__stack_id)id);
    shortcuts->skip[id] = d->skip[id];
  }
  return TARN_STATUS_OK;
}

extern const tarn__feature tarn__feature_layerdrop;
const tarn__feature tarn__feature_layerdrop = {
    .name = "layerdrop", .state_bytes = sizeof(tarn__layerdrop), .wanted = wanted, .shorten = shorten};
