// Pruning of a trained model: the choice of its layers (tarn_prune in tarn/checkpoint.h).
#ifndef TARN_STORE_PRUNE_H
#define TARN_STORE_PRUNE_H

#include "description/description.h"
#include "tarn/checkpoint.h"

// Replaces *config, the description in `text`, by that of the pruned model, or leaves it if nothing is dropped. Fails
// with USAGE, and *config stays valid.
tarn_status tarn__prune_config(tarn_config **config, const char *text, const tarn_prune *prune) TARN_CHECKED;

#endif
