// The shortest way from one sequence of integers to another by deletions and insertions alone: the Levenshtein distance
// without substitutions, as the expert of the Levenshtein Transformer takes it (Gu et al. 2019). What is neither
// deleted nor inserted is a longest common subsequence.
//
// The columns of the table of lengths are bits (Hyyro 2004): after row i, bit j of V is 0 if the longest common
// subsequence of a[0 .. i] and b[0 .. j] is longer than that of a[0 .. i] and b[0 .. j - 1]. All rows are kept, n words
// of 64 bits for every 64 tokens of b, and the way back from the last one takes a pair of equal tokens wherever it can,
// and deletes only where it cannot insert. So of several shortest ways every device takes the same.
#ifndef TARN_BASE_EDIT_PATH_H
#define TARN_BASE_EDIT_PATH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/host_device.h"

// Words of scratch for sequences of n and m tokens.
static inline TARN__HOST_DEVICE int64_t tarn__edit_path_words(int64_t n, int64_t m) { return n * ((m + 63) / 64); }

// The tokens of b from `first` on, up to 64, that equal a token: a bit for each.
static inline TARN__HOST_DEVICE uint64_t tarn__edit_path_equal(const int32_t *b, int64_t first, int64_t m,
                                                               int32_t token) {
  const int64_t count = m - first < 64 ? m - first : 64;
  uint64_t equal = 0;
  for (int64_t j = 0; j < count; j++) equal |= (uint64_t)(b[first + j] == token) << j;
  return equal;
}

// Fills the rows of bits.
static inline TARN__HOST_DEVICE void tarn__edit_path_rows(uint64_t *rows, const int32_t *a, int64_t n, const int32_t *b,
                                                          int64_t m) {
  const int64_t words = (m + 63) / 64;
  for (int64_t i = 0; i < n; i++) {
    const uint64_t *before = rows + (i - 1) * words;
    uint64_t carry = 0;
    for (int64_t w = 0; w < words; w++) {
      const uint64_t v = i > 0 ? before[w] : ~(uint64_t)0;
      const uint64_t both = v & tarn__edit_path_equal(b, 64 * w, m, a[i]);
      const uint64_t part = v + both, sum = part + carry;
      carry = (part < v) | (sum < part);
      rows[i * words + w] = sum | (v & ~both);
    }
  }
}

// From a[0 .. n - 1] to b[0 .. m - 1]: sets deleted[i] to whether a[i] is deleted, and inserted[j] to whether b[j] is
// inserted, 0 or 1. Either may be NULL. scratch: tarn__edit_path_words(n, m) words.
static inline TARN__HOST_DEVICE void tarn__edit_path(int32_t *deleted, int32_t *inserted, const int32_t *a, int64_t n,
                                                     const int32_t *b, int64_t m, uint64_t *scratch) {
  const int64_t words = (m + 63) / 64;
  tarn__edit_path_rows(scratch, a, n, b, m);
  int64_t i = n, j = m;
  while (i > 0 || j > 0) {
    const bool equal = i > 0 && j > 0 && a[i - 1] == b[j - 1];
    const bool insert = !equal && j > 0 && (i == 0 || (scratch[(i - 1) * words + (j - 1) / 64] >> (j - 1) % 64 & 1));
    if (equal || !insert) {
      i--;
      if (deleted) deleted[i] = !equal;
    }
    if (equal || insert) {
      j--;
      if (inserted) inserted[j] = !equal;
    }
  }
}

#endif
