#include "device/cpu/gemm/gemm_groups.h"

#include "device/cpu/gemm/gemm_within.h"
#include "device/cpu/isa/isa.h"

// NULL: one product after another.
static const tarn__gemm_groups_way *way_of(const tarn__gemm *g) {
#ifdef TARN_WITH_AMX
  if (g->dtype == TARN__BF16 && tarn__isa_now() == TARN__ISA_AMX) return &tarn__gemm_tiles_groups;
#endif
  (void)g;
  return NULL;
}

size_t tarn__gemm_groups_scratch(const tarn__gemm *most, int threads) {
  const tarn__gemm_groups_way *way = way_of(most);
  if (most->m == 0 || most->n == 0 || most->k == 0 || most->dtype == TARN__F64) return 0;
  return way ? way->scratch(most, threads) : tarn__gemm_scratch_within(most, threads);
}

void tarn__gemm_groups_run(const tarn__gemm_groups *groups, int threads, void *scratch, size_t bytes) {
  if (groups->count == 0) return;
  const tarn__gemm first = groups->product(groups->user, 0);
  const tarn__gemm_groups_way *way = way_of(&first);
  if (way) {
    way->run(groups, threads, scratch, bytes);
    return;
  }
  for (int64_t e = 0; e < groups->count; e++) {
    const tarn__gemm product = groups->product(groups->user, e);
    tarn__gemm_run_within(&product, threads, scratch, bytes);
  }
}
