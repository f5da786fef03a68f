// Integers only, so this kernel has a single version for all instruction sets.
#include "ops/deletions.h"

#include <string.h>

#include "device/cpu/cpu_kernels.h"

tarn_status tarn__cpu_deletions(const tarn__exec *exec, const tarn__node *node) {
  const tarn__deletions_view v = tarn__deletions_see(node);
  memcpy(v.filled, v.ids, (size_t)v.count * sizeof *v.ids);
  memcpy(v.whole, v.ids, (size_t)v.count * sizeof *v.ids);
  for (int64_t k = 0; k < v.placeholders; k++) tarn__deletions_put(&v, k);
#pragma omp parallel for num_threads(exec->threads) schedule(dynamic)
  for (int64_t s = 0; s < v.sentences; s++) tarn__deletions_find(&v, s);
  return TARN_STATUS_OK;
}
