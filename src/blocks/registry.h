// The registered token mixers, one line each; a new mixer adds its line here and in registry.c.
#ifndef TARN_BLOCKS_REGISTRY_H
#define TARN_BLOCKS_REGISTRY_H

#include "blocks/block.h"

extern const tarn__mixer tarn__mixer_attention;
extern const tarn__mixer tarn__mixer_none;

#endif
