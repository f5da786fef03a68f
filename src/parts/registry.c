#include "parts/registry.h"

static const tarn__mixer *const mixers[] = {
    &tarn__mixer_attention,    &tarn__mixer_none, &tarn__mixer_bigru, &tarn__mixer_light_conv,
    &tarn__mixer_dynamic_conv, &tarn__mixer_gru,  &tarn__mixer_lstm,  &tarn__mixer_esn,
};

const tarn__mixer *tarn__mixer_find(tarn_mixer id) {
  for (size_t i = 0; i < sizeof mixers / sizeof *mixers; i++)
    if (mixers[i]->id == id) return mixers[i];
  return NULL;
}
