// Equalized sizes: gives a variant as many parameters, or operations, as the base, by what it is told to change.
#include <math.h>

#include "base/log.h"
#include "sweep/spec.h"
#include "train/plan_config.h"

double tarn__sweep_measure(const tarn_plan *plan, tarn_sweep_equalize what) {
  switch (what) {
    case TARN_SWEEP_EQUALIZE_PARAMETERS:
      return (double)(plan->trained_parameters + plan->frozen_parameters);
    case TARN_SWEEP_EQUALIZE_TRAINED:
      return (double)plan->trained_parameters;
    case TARN_SWEEP_EQUALIZE_FLOPS:
      return plan->forward_flops + plan->backward_flops;
    default:
      return 0;
  }
}

tarn_status tarn__sweep_adjust(tarn_sweep *sweep, size_t variant, const char *text, size_t most) {
  struct tarn__sweep_memory *m = sweep->memory;
  tarn_sweep_variant *v = &m->variants[variant];
  if (!v->adjusted) {
    void *memory;
    TARN_TRY(tarn__arena_alloc(&m->arena, &memory, most, sizeof(char *)));
    v->adjusted = memory;
  }
  // The list is this file's own, and only the public form is constant.
  ((const char **)(uintptr_t)v->adjusted)[v->adjusted_count++] = text;
  return tarn__sweep_add_text(&m->edits[variant], text);
}

static tarn_status trade(tarn_sweep *sweep, const tarn__sweep_goal *goal) {
  switch (sweep->memory->variants[goal->variant].trade) {
    case TARN_SWEEP_TRADE_LAYERS:
      return tarn__sweep_trade_layers(sweep, goal);
    case TARN_SWEEP_TRADE_HEADS:
      return tarn__sweep_trade_heads(sweep, goal);
    default:
      return tarn__sweep_trade_ffn(sweep, goal);
  }
}

tarn_status tarn__sweep_equalize(tarn_sweep *sweep, size_t index, const tarn_plan *base) {
  struct tarn__sweep_memory *m = sweep->memory;
  tarn_sweep_variant *variant = &m->variants[index];
  tarn_config *config;
  tarn__planned planned;
  tarn_plan_options options = {0};
  TARN_TRY(tarn__sweep_config(sweep, &config, &m->edits[index], sweep->seeds[0]));
  tarn_status status = tarn__plan_ranks(&planned, config, &options, 1);
  if (status == TARN_STATUS_OK) {
    const tarn__sweep_goal goal = {.variant = index,
                                   .by = variant->equalize,
                                   .config = config,
                                   .now = tarn__sweep_measure(&planned.plan, variant->equalize),
                                   .base = tarn__sweep_measure(base, variant->equalize)};
    tarn__planned_close(&planned);
    variant->measure = goal.now;
    variant->base_measure = goal.base;
    // A variant that is close enough is not changed.
    if (fabs(goal.now - goal.base) > TARN__SWEEP_NEAR * goal.base) status = trade(sweep, &goal);
  }
  tarn_config_close(&config);
  if (status == TARN_STATUS_OK && variant->bound)
    tarn__log(TARN_LOG_WARNING, "variant %s cannot come within 1 %% of the base's %s: %.4g instead of %.4g; %s",
              variant->name, tarn_sweep_equalize_name(variant->equalize), variant->measure, variant->base_measure,
              variant->bound);
  return status;
}
