// The registered token mixers, one line each. A new mixer adds its line here and in registry.c, and its word to
// TARN_MIXER_MAP in tarn/config.h.
#ifndef TARN_PARTS_REGISTRY_H
#define TARN_PARTS_REGISTRY_H

#include "parts/block.h"

extern const tarn__mixer tarn__mixer_attention;
extern const tarn__mixer tarn__mixer_none;
extern const tarn__mixer tarn__mixer_bigru;
extern const tarn__mixer tarn__mixer_light_conv;
extern const tarn__mixer tarn__mixer_dynamic_conv;
extern const tarn__mixer tarn__mixer_gru;
extern const tarn__mixer tarn__mixer_lstm;
extern const tarn__mixer tarn__mixer_esn;

const tarn__mixer *tarn__mixer_find(tarn_mixer id);

#endif
