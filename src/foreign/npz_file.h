// Archives of NumPy (.npz, https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html): a zip file with a
// file NAME.npy for each array, stored or deflated. Arrays are of numbers, little-endian and row by row; those of
// Python objects are pickles, which are refused. Zip is read by minizip.
#ifndef TARN_FOREIGN_NPZ_FILE_H
#define TARN_FOREIGN_NPZ_FILE_H

#include "base/memory.h"
#include "foreign/hf_tensors.h"

// The names and values of the tensors.
typedef struct tarn__npz_file {
  const char *path;
  tarn__arena arena;
} tarn__npz_file;

// Zero-initialise both. Opens a file and fills in its tensors: single floats are F32, halves F16, bytes I8 or U8, and
// others have NumPy's word, such as "<f8". Every name, size, type and checksum is checked. Fails with IO, MEMORY, DATA,
// or UNSUPPORTED if tarn was built without minizip. Close it even after a failure.
tarn_status tarn__npz_open(tarn__npz_file *file, tarn__hf_tensors *tensors, const char *path) TARN_CHECKED;
void tarn__npz_close(tarn__npz_file *file);

// Reads the header of one array, its values following to the last of `size` bytes: fills in all but the name.
tarn_status tarn__npy_read(tarn__stored *tensor, tarn__arena *arena, const char *path, const uint8_t *bytes,
                           size_t size) TARN_CHECKED;

#endif
