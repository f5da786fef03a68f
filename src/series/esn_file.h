// Tensors of an echo state network in a safetensors file.
#ifndef TARN_SERIES_ESN_FILE_H
#define TARN_SERIES_ESN_FILE_H

#include "series/esn.h"
#include "store/safetensors.h"

// Reads W, Win and bias (zero if missing) into a network of W's number of units; all must be finite.
tarn_status tarn__esn_load_reservoir(tarn_esn *esn, const tarn__safetensors *file, const char *path) TARN_CHECKED;

#endif
