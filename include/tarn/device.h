// On what models compute: the devices that are built into the library, by name. "cpu" is the processor with the best of
// its instruction sets, "reference" plain C, slow, with which others are compared.
#ifndef TARN_DEVICE_H
#define TARN_DEVICE_H

#include <stddef.h>

#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Models that are opened from now on live on the device of that name. NULL, as at the start: on that of the environment
// variable TARN_DEVICE or, where that is not set, on the first device that computes in the model's precision. Fails
// with USAGE, a line that names the nearest device and all there are, where none has the name. Opening a model whose
// precision the device does not compute in fails with UNSUPPORTED. Not to be called while models are opened.
tarn_status tarn_device_set(const char *name) TARN_CHECKED;

// The names, from 0 on; NULL behind the last.
const char *tarn_device_name(size_t index);

#ifdef __cplusplus
}
#endif

#endif
