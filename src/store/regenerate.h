// What it costs to compute the frozen values of a model again (tarn/process.h).
#ifndef TARN_STORE_REGENERATE_H
#define TARN_STORE_REGENERATE_H

#include "model/model.h"

// Steps of arithmetic, each about a nanosecond, and bytes that are taken for a while.
typedef struct tarn__regenerate_cost {
  double operations, bytes;
} tarn__regenerate_cost;

// Of one parameter's values, and of those of all frozen parameters that do not lie in a file that is mapped, by as many
// threads as the pool has: bytes are those of the hungriest that can be at work at the same time.
tarn__regenerate_cost tarn__regenerate_param(const tarn__param *param);
tarn__regenerate_cost tarn__regenerate_all(const tarn__model *model);

// Whether a model from a file stays within the limits of the process. `recipes`: frozen values must be computed. Fails
// with MEMORY or DATA and a line that begins with the file, says the cost and names the option that raises the limit.
tarn_status tarn__regenerate_check(const tarn__model *model, const char *file, bool recipes) TARN_CHECKED;

// tarn__model_initialise_frozen() with the progress that the limits ask for.
tarn_status tarn__regenerate(tarn__model *model, uint64_t seed, const char *file) TARN_CHECKED;

#endif
