// The fast kernels of output_top. A row of logits is processed in visits of TARN__TOP_VISIT words, the last one
// shorter, so that no more of it need exist at a time; sums are joined in the order of the visits, whoever computed
// them.
#ifndef TARN_DEVICE_CPU_OUTPUT_OUTPUT_TOP_KERNELS_H
#define TARN_DEVICE_CPU_OUTPUT_OUTPUT_TOP_KERNELS_H

#include "device/variant.h"
#include "ops/output_top.h"

enum { TARN__TOP_VISIT = 512 };

static inline int64_t tarn__top_visits(int64_t words) { return (words + TARN__TOP_VISIT - 1) / TARN__TOP_VISIT; }

// Of a visit: the sum of exp(logit - shift).
typedef struct tarn__top_part {
  float shift, sum;
} tarn__top_part;

// The best words so far, in no order that matters.
typedef struct tarn__top_found {
  float *values;
  int32_t *ids;
  int64_t count, limit;
} tarn__top_found;

typedef struct tarn__output_top_kernels {
  // One row: values [best + 1] and ids [best] from logits [words]. `parts` is scratch for all visits.
  void (*row)(float *values, int32_t *ids, const float *logits, int64_t words, const tarn__output_top_attr *attr,
              tarn__top_part *parts);
  // log sum exp of logits [words].
  float (*log_sum)(const float *logits, int64_t words, tarn__top_part *parts);
  // The same as `row` in steps: a visit of n words, whose first has the id `first`; what others have found; and the
  // end, where `always` is the logit of attr->always.
  tarn__top_part (*visit)(tarn__top_found *found, const float *logits, int64_t first, int64_t n);
  void (*join)(tarn__top_found *found, const tarn__top_found *other);
  void (*finish)(float *values, int32_t *ids, tarn__top_found *found, const tarn__top_part *parts, int64_t visits,
                 float always);
} tarn__output_top_kernels;
TARN__TABLES(tarn__output_top_kernels);

#endif
