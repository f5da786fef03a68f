// Weights rounded to INT4: a weight is the scale of its row, in fp32, times the factor of its group of 32 terms, a
// whole number from -15 to 15, times a whole number from -8 to 7. The product of the two whole numbers fits a byte, so
// a sum of products with integers is exact, as with INT8.
//
// As a device rounds them (device.h) and a file holds them, a row is [groups][17 bytes], its last group padded: the
// factor, a signed byte; then byte 1 + i has term 2 i in its low half and term 2 i + 1 in its high one, each plus 8.
#ifndef TARN_DEVICE_INT4_H
#define TARN_DEVICE_INT4_H

#include <stdint.h>

enum {
  TARN__INT4_GROUP = 32,
  TARN__INT4_GROUP_BYTES = 1 + TARN__INT4_GROUP / 2,
  TARN__INT4_ZERO = 8,  // what stands for 0
  TARN__INT4_MOST_FACTOR = 15,
  TARN__INT4_MOST_TERMS = 65536  // of a row: sums of more products with a byte might not fit 32 bits
};

// Of a row of that many terms.
static inline int64_t tarn__int4_groups(int64_t terms) { return (terms + TARN__INT4_GROUP - 1) / TARN__INT4_GROUP; }
static inline int64_t tarn__int4_bytes(int64_t terms) { return tarn__int4_groups(terms) * TARN__INT4_GROUP_BYTES; }

// The factor of a group of a row, and the whole number, from -8 to 7, of a term.
static inline int tarn__int4_factor(const unsigned char *row, int64_t group) {
  return ((const signed char *)row)[group * TARN__INT4_GROUP_BYTES];
}
static inline int tarn__int4_term(const unsigned char *row, int64_t term) {
  const int64_t at = term / TARN__INT4_GROUP * TARN__INT4_GROUP_BYTES + 1 + term % TARN__INT4_GROUP / 2;
  return (row[at] >> term % 2 * 4 & 15) - TARN__INT4_ZERO;
}
// What a term stands for, times the scale of its row.
static inline int tarn__int4_number(const unsigned char *row, int64_t term) {
  return tarn__int4_factor(row, term / TARN__INT4_GROUP) * tarn__int4_term(row, term);
}

#endif
