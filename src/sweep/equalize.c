// Equalized sizes: finds FFN widths of a variant that give it as many parameters, or operations, as the base.
//
// All kinds that the variant uses are scaled by one factor. Both measures are affine in it except for structured
// projections, so the secant method needs only a few plans. Then the widths are rounded to the largest multiple that
// keeps within half a percent, or else to the one that comes closest, because products are fastest at round widths.
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "config/config_part.h"
#include "sweep/spec.h"
#include "train/plan_config.h"

static const double NEAR = 0.01;

static double of_plan(const tarn_plan *plan, tarn_sweep_equalize what) {
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

// A configuration with trial widths.
typedef struct trial {
  const tarn_config *config;
  tarn_sweep_equalize what;
  int64_t widths[TARN_CONFIG_KINDS];  // original widths; 0: the kind is not used
} trial;

static void note_uses(trial *t, const tarn_stack *stack) {
  for (int32_t i = 0; i < stack->count; i++) {
    int32_t kind = stack->layers[i].kind;
    const int64_t *width = tarn__kind_width(&t->config->kinds[kind]);
    t->widths[kind] = width ? *width : 0;
  }
}

// Sets the widths to `factor` times the original ones, rounded to a multiple, and measures.
static tarn_status measure(const trial *t, double *value, double factor, int64_t multiple) {
  tarn__planned planned;
  tarn_plan_options options = {0};
  for (int32_t k = 0; k < t->config->kind_count; k++) {
    if (t->widths[k] == 0) continue;
    double width = round((double)t->widths[k] * factor / (double)multiple) * (double)multiple;
    *tarn__kind_width(&t->config->kinds[k]) = width < (double)multiple ? multiple
                                              : width > 1048576        ? 1048576
                                                                       : (int64_t)width;
  }
  TARN_TRY(tarn__plan_ranks(&planned, t->config, &options, 1));
  *value = of_plan(&planned.plan, t->what);
  tarn__planned_close(&planned);
  return TARN_STATUS_OK;
}

// The factor at which the measure meets the goal, or the smallest one if it never does; 1 if the widths do not affect
// the measure (all FFNs are frozen, say, and trained parameters are counted).
static tarn_status find_factor(const trial *t, double *factor, double goal) {
  double x0 = 1.0;
  double x1 = 2.0;
  double y0;
  double y1;
  TARN_TRY(measure(t, &y0, x0, 1));
  *factor = x0;
  for (int round = 0; round < 12; round++) {
    TARN_TRY(measure(t, &y1, x1, 1));
    if (round == 0 && y1 == y0) return TARN_STATUS_OK;
    if (fabs(y1 - goal) < 1e-4 * goal || y1 == y0) break;
    double next = x1 + (goal - y1) * (x1 - x0) / (y1 - y0);
    next = next < 1e-4 ? 1e-4 : next > 1e4 ? 1e4 : next;
    if (next == x1) break;
    x0 = x1;
    y0 = y1;
    x1 = next;
  }
  *factor = x1;
  return TARN_STATUS_OK;
}

static tarn_status round_widths(const trial *t, double *best, double factor, double goal) {
  static const int64_t multiples[] = {64, 32, 16, 8, 4, 2, 1};
  *best = INFINITY;
  int64_t chosen = 1;
  for (size_t i = 0; i < sizeof multiples / sizeof *multiples; i++) {
    double value;
    TARN_TRY(measure(t, &value, factor, multiples[i]));
    if (fabs(value - goal) < fabs(*best - goal)) {
      *best = value;
      chosen = multiples[i];
    }
    if (fabs(value - goal) <= 0.5 * NEAR * goal) return TARN_STATUS_OK;
  }
  return measure(t, best, factor, chosen);
}

static tarn_status add_widths(tarn_sweep *sweep, size_t index, const trial *t) {
  struct tarn__sweep_memory *m = sweep->memory;
  tarn_sweep_variant *variant = &m->variants[index];
  void *memory;
  TARN_TRY(tarn__arena_alloc(&m->arena, &memory, TARN_CONFIG_KINDS, sizeof(char *)));
  const char **widths = memory;
  for (int32_t k = 0; k < t->config->kind_count; k++) {
    if (t->widths[k] == 0) continue;
    const tarn_kind *kind = &t->config->kinds[k];
    const char **text = &widths[variant->width_count];
    char key[TARN__KIND_KEY];
    tarn__kind_width_key(key, kind, &t->config->model);
    TARN_TRY(tarn__sweep_text(sweep, text, "kinds.%s.%s=%lld", kind->name, key, (long long)*tarn__kind_width(kind)));
    TARN_TRY(tarn__sweep_add_text(&m->edits[index], *text));
    variant->width_count++;
  }
  variant->widths = widths;
  return TARN_STATUS_OK;
}

tarn_status tarn__sweep_equalize(tarn_sweep *sweep, size_t index, const tarn_plan *base) {
  struct tarn__sweep_memory *m = sweep->memory;
  tarn_sweep_variant *variant = &m->variants[index];
  tarn_config *config;
  trial t = {.what = variant->equalize};
  double factor = 1.0;
  TARN_TRY(tarn__sweep_config(sweep, &config, &m->edits[index], sweep->seeds[0]));
  t.config = config;
  note_uses(&t, &config->encoder);
  note_uses(&t, &config->decoder);
  variant->base_measure = of_plan(base, variant->equalize);
  double goal = variant->base_measure;
  tarn_status status = measure(&t, &variant->measure, 1.0, 1);
  // A variant that is close enough is not changed.
  bool changed = status == TARN_STATUS_OK && fabs(variant->measure - goal) > NEAR * goal;
  if (changed) {
    status = find_factor(&t, &factor, goal);
    changed = factor != 1.0;
    if (status == TARN_STATUS_OK && changed) status = round_widths(&t, &variant->measure, factor, goal);
    if (status == TARN_STATUS_OK && changed) status = add_widths(sweep, index, &t);
  }
  tarn_config_close(&config);
  if (status == TARN_STATUS_OK && fabs(variant->measure - goal) > NEAR * goal)
    tarn__log(TARN_LOG_WARNING, "variant %s: no width of the FFN %s the base's %s: %.4g instead of %.4g", variant->name,
              changed ? "comes within 1 % of" : "brings it nearer to", tarn_sweep_equalize_name(variant->equalize),
              variant->measure, goal);
  return status;
}
