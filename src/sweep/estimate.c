// How long the trainings of a sweep will take, from their operations and from what a product of matrices reaches here.
#include <math.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/threads.h"
#include "device/cpu/gemm.h"
#include "sweep/spec.h"

enum { ROWS = 1024, WIDEST = 2048 };          // of the product: rows of a usual batch; d_model at the most
static const double SECONDS = 0.05;           // that a measurement takes, about
static const double SHARE_OF_PRODUCTS = 0.8;  // of a product's speed that whole updates reach (docs/performance.md)

// Operations a second of C [ROWS, 4 d] = A [ROWS, d] B [d, 4 d], the first product of a usual FFN.
static tarn_status measure(double *rate, int64_t d, tarn__dtype dtype, int threads) {
  void *memory[4] = {0};
  tarn__gemm product = {
      .m = ROWS, .n = 4 * d, .k = d, .lda = d, .ldb = 4 * d, .ldc = 4 * d, .dtype = dtype, .c_dtype = dtype};
  const size_t sizes[] = {(size_t)(product.m * product.k), (size_t)(product.k * product.n),
                          (size_t)(product.m * product.n)};
  tarn_status status = TARN_STATUS_OK;
  for (int i = 0; i < 3 && status == TARN_STATUS_OK; i++)
    status = tarn__alloc(&memory[i], TARN__MEMORY_OTHER, sizes[i], tarn__dtype_size(dtype));
  if (status == TARN_STATUS_OK)
    status = tarn__alloc(&memory[3], TARN__MEMORY_OTHER, tarn__gemm_scratch(&product, threads), 1);
  if (status == TARN_STATUS_OK) {
    product.a = memory[0];
    product.b = memory[1];
    product.c = memory[2];
    tarn__gemm_run(&product, threads, memory[3]);  // pages, and the clock frequency of the wide instructions
    double least = HUGE_VAL;                       // other work on the machine makes some products slower
    double begun = tarn__seconds();
    for (double last = begun, now; last - begun < SECONDS; last = now) {
      tarn__gemm_run(&product, threads, memory[3]);
      now = tarn__seconds();
      if (now - last < least) least = now - last;
    }
    *rate = 2.0 * (double)product.m * (double)product.n * (double)product.k / least;
  }
  for (int i = 0; i < 4; i++) tarn__free(memory[i]);
  return status;
}

// Tokens of both sides that a training reads at the most; 0: it has no limit of updates or epochs, or no data to count.
static double tokens_of_run(const tarn_config *config, const tarn_plan *plan) {
  const tarn_config_train *train = &config->train;
  double tokens = train->max_epochs > 0 ? (double)train->max_epochs * plan->epoch_tokens : 0;
  if (train->max_updates == 0) return tokens;
  double update = (double)(plan->source_rows + plan->target_rows);
  double sentences = (double)train->max_sentences * (plan->source_length + plan->target_length);
  if (train->max_sentences > 0 && sentences < update) update = sentences;
  update *= (double)train->max_updates * (double)train->accumulate;
  return tokens > 0 && tokens < update ? tokens : update;
}

tarn_status tarn_sweep_estimate(tarn_sweep *sweep) {
  // More threads than processors reach no more, and the system may not give that many.
  tarn__threads_set(0);
  int threads = sweep->threads < tarn__threads() ? (int)sweep->threads : tarn__threads();
  double rate = 0;
  int64_t last_d = 0;
  tarn__dtype last_dtype = TARN__F32;
  for (size_t i = 0; i < sweep->variant_count; i++) {
    tarn_sweep_variant *v = &sweep->memory->variants[i];
    const tarn_plan *plan = &v->plan;
    int64_t d = v->config->model.d_model < WIDEST ? v->config->model.d_model : WIDEST;
    tarn__dtype dtype = v->config->train.precision == TARN_PRECISION_BF16 ? TARN__BF16 : TARN__F32;
    if (d != last_d || dtype != last_dtype) TARN_TRY(measure(&rate, d, dtype, threads));
    last_d = d;
    last_dtype = dtype;
    double token = (plan->forward_flops + plan->backward_flops + plan->recompute_flops) / (SHARE_OF_PRODUCTS * rate);
    v->epoch_seconds = plan->epoch_tokens * token;
    v->run_seconds = sweep->budget_seconds > 0 ? sweep->budget_seconds : tokens_of_run(v->config, plan) * token;
  }
  return TARN_STATUS_OK;
}

double tarn_sweep_training_left(const tarn_sweep *sweep, double run_seconds) {
  double sum = 0;
  double longest = 0;
  for (size_t i = 0; i < sweep->run_count; i++) {
    const tarn_sweep_run *run = &sweep->runs[i];
    bool open = run->state == TARN_SWEEP_WAITING || run->state == TARN_SWEEP_BEGUN;
    double all = run_seconds > 0 ? run_seconds : sweep->variants[run->variant].run_seconds;
    if (!open || run->reuse) continue;
    if (all <= 0) return -1;
    double left = fmax(all - run->seconds, 0);
    sum += left;
    longest = fmax(longest, left);
  }
  return fmax(sum / (double)sweep->parallel, longest);
}
