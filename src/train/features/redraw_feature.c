// Redraws the random features of Performers (kinds.NAME.redraw; parts/mixer/performer_mixer.c).
#include "train/feature.h"
#include "train/trainer.h"

static tarn_status before_update(tarn_train *t, void *state, int64_t update) {
  (void)state;
  return tarn__model_redraw(t->model, update);
}

extern const tarn__feature tarn__feature_redraw;
const tarn__feature tarn__feature_redraw = {.name = "redraw", .before_update = before_update};
