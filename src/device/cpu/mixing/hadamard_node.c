#include "device/cpu/cpu_kernels.h"
#include "device/cpu/isa/isa.h"
#include "device/cpu/isa/row_cpu.h"
#include "device/cpu/mixing/hadamard_kernels.h"

static tarn__hadamard_job job_of(const tarn__node *node) {
  const tarn__hadamard_attr *attr = node->attr;
  return (tarn__hadamard_job){.shape = attr->shape, .relu = attr->relu, .dtype = node->in[0]->dtype};
}

static bool by_tiles(const tarn__hadamard_job *job) {
#ifdef TARN_WITH_AMX
  return tarn__isa_now() == TARN__ISA_AMX && tarn__hadamard_amx_can(job);
#else
  (void)job;
  return false;
#endif
}

// Floats of scratch per thread.
static size_t scratch(const tarn__hadamard_job *job) {
  const tarn__hadamard_shape *shape = &job->shape;
  if (by_tiles(job))
    return TARN__HADAMARD_AMX_FLOATS + (size_t)(shape->blocks * shape->parts) * TARN__HADAMARD_AMX_TABLE;
  int64_t rows = shape->blocks * shape->out;
  int64_t longest = rows > shape->in ? rows : shape->in;
  // The transform; the input, the sum of transforms and the previous contents as floats.
  return tarn__row_floats(shape->width) + 3 * tarn__row_floats(longest);
}

size_t tarn__cpu_hadamard_scratch(const tarn__node *node, int threads) {
  const tarn__hadamard_job job = job_of(node);
  return scratch(&job) * sizeof(float) * (size_t)threads;
}

static void run_rows(const tarn__hadamard_job *job, int64_t first, int64_t last, float *memory) {
#ifdef TARN_WITH_AMX
  if (by_tiles(job)) {
    tarn__hadamard_amx_run(job, first, last, memory);
    return;
  }
#endif
  TARN__TABLE_NOW(tarn__hadamard_kernels)->run(job, first, last, memory);
}

// Maximum that each thread may write for its next reader to find it in a private cache.
enum { CACHED_BYTES = 2 << 20 };

static tarn_status run(const tarn__exec *exec, const tarn__node *node, tarn__hadamard_job job) {
  const tarn__tensor *from = node->in[0], *to = node->out[0];
  job.signs = node->in[1]->data;
  job.from = from->data;
  job.to = to->data;
  job.from_cols = from->cols;
  job.to_cols = to->cols;
  const int64_t bytes = to->rows * to->cols * (int64_t)sizeof(uint16_t);
  job.past = bytes > (int64_t)exec->threads * CACHED_BYTES && (uintptr_t)to->data % 64 == 0;
  size_t each = scratch(&job);
#pragma omp parallel for schedule(static) num_threads(exec->threads)
  for (int part = 0; part < exec->threads; part++)
    run_rows(&job, from->rows * part / exec->threads, from->rows * (part + 1) / exec->threads,
             (float *)node->scratch + (size_t)part * each);
  return TARN_STATUS_OK;
}

tarn_status tarn__cpu_hadamard(const tarn__exec *exec, const tarn__node *node) {
  tarn__hadamard_job job = job_of(node);
  if (node->in[2] != NULL) job.bias = node->in[2]->data;
  return run(exec, node, job);
}

tarn_status tarn__cpu_hadamard_dx(const tarn__exec *exec, const tarn__node *node) {
  tarn__hadamard_job job = job_of(node);
  job.transposed = true;
  if (node->in[2] != NULL) job.mask = node->in[2]->data;
  job.accumulate = node->in[3] != NULL;
  return run(exec, node, job);
}
