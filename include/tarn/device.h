// The devices that models compute on, as built into the library, by name. "cpu" uses the best instruction set of the
// processor; "reference" is plain C, slow, for comparison.
#ifndef TARN_DEVICE_H
#define TARN_DEVICE_H

#include <stddef.h>

#include "tarn/export.h"
#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Chooses the device of all models opened from now on. NULL, the initial state, takes the one that the environment
// variable TARN_DEVICE names or, if it is not set, the first that computes in the model's precision. Fails with USAGE
// for an unknown name; the message gives the nearest one and all that there are. Opening a model in a precision that
// the device does not support then fails with UNSUPPORTED. Must not be called while models are opened.
TARN_API tarn_status tarn_device_set(const char *name) TARN_CHECKED;

// The names, numbered from 0; NULL after the last.
TARN_API const char *tarn_device_name(size_t index);

#ifdef __cplusplus
}
#endif

#endif
