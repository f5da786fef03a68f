// Numbers in the types of other programs' files: F32, F16 (IEEE's half precision), BF16, and Q8_0 of GGUF, whose blocks
// of 32 numbers are a scale in F16 and 32 signed bytes. All are little-endian.
#ifndef TARN_FOREIGN_HALF_FLOATS_H
#define TARN_FOREIGN_HALF_FLOATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TARN__Q8_BLOCK = 32, TARN__Q8_BYTES = 2 + TARN__Q8_BLOCK };

float tarn__half_to_float(uint16_t bits);
// To the nearest, of two the even one; beyond the largest number infinity.
uint16_t tarn__float_to_half(float value);

// Whether numbers of a type ("F32", ...) can be read.
bool tarn__floats_known(const char *dtype);
// Numbers first .. first + count - 1 of `data`; false for a type that cannot be read.
bool tarn__floats_read(float *values, const char *dtype, const void *data, size_t first, size_t count);
// Writes `count` numbers, a multiple of 32, as blocks of Q8_0: the scale is the largest absolute value over 127.
void tarn__floats_to_q8(void *blocks, const float *values, size_t count);

#endif
