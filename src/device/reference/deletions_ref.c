#include "ops/deletions.h"

#include <string.h>

#include "device/reference/reference_kernels.h"

tarn_status TARN__REF(tarn__deletions_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__deletions_view v = tarn__deletions_see(node);
  memcpy(v.filled, v.ids, (size_t)v.count * sizeof *v.ids);
  memcpy(v.whole, v.ids, (size_t)v.count * sizeof *v.ids);
  for (int64_t k = 0; k < v.placeholders; k++) tarn__deletions_put(&v, k);
  for (int64_t s = 0; s < v.sentences; s++) tarn__deletions_find(&v, s);
  return TARN_STATUS_OK;
}
