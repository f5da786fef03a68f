// Pruning of a trained model: which of its layers there are (tarn_prune in tarn/checkpoint.h).
#ifndef TARN_STORE_PRUNE_H
#define TARN_STORE_PRUNE_H

#include "description/description.h"
#include "tarn/checkpoint.h"

// Replaces *config, which `text` describes, by the description of the pruned model, or leaves it as it is where nothing
// is left out. Fails with USAGE, and *config stays valid then.
tarn_status tarn__prune_config(tarn_config **config, const char *text, const tarn_prune *prune) TARN_CHECKED;

#endif
