// Equal sizes by FFN widths.
//
// All kinds that the variant uses are scaled by one factor. Both measures are affine in it except for structured
// projections, so the secant method needs only a few plans. Then the widths are rounded to the largest multiple that
// keeps within half a percent, or else to the one that comes closest, because products are fastest at round widths.
#include <math.h>
#include <string.h>

#include "config/config_part.h"
#include "sweep/spec.h"
#include "train/plan_config.h"

enum { MOST = 1048576 };  // width

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
                                              : width > MOST           ? MOST
                                                                       : (int64_t)width;
  }
  TARN_TRY(tarn__plan_ranks(&planned, t->config, &options, 1));
  *value = tarn__sweep_measure(&planned.plan, t->what);
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
    next = next < 1.0 / MOST ? 1.0 / MOST : next > MOST ? MOST : next;
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
    if (fabs(value - goal) <= 0.5 * TARN__SWEEP_NEAR * goal) return TARN_STATUS_OK;
  }
  return measure(t, best, factor, chosen);
}

static tarn_status add_widths(tarn_sweep *sweep, size_t index, const trial *t) {
  for (int32_t k = 0; k < t->config->kind_count; k++) {
    if (t->widths[k] == 0) continue;
    const tarn_kind *kind = &t->config->kinds[k];
    const char *text;
    char key[TARN__KIND_KEY];
    tarn__kind_width_key(key, kind, &t->config->model);
    TARN_TRY(tarn__sweep_text(sweep, &text, "kinds.%s.%s=%lld", kind->name, key, (long long)*tarn__kind_width(kind)));
    TARN_TRY(tarn__sweep_adjust(sweep, index, text, TARN_CONFIG_KINDS));
  }
  return TARN_STATUS_OK;
}

// Which bound keeps the variant from its goal.
static const char *bound_of(const trial *t, bool depends) {
  bool any = false, least = true, most = true;
  for (int32_t k = 0; k < t->config->kind_count; k++) {
    if (t->widths[k] == 0) continue;
    const int64_t width = *tarn__kind_width(&t->config->kinds[k]);
    any = true;
    least = least && width == 1;
    most = most && width == MOST;
  }
  if (!any) return "it has no FFN with a width to change";
  if (!depends) return "the widths of its FFNs do not change that";
  if (least) return "its FFNs have the least width, 1";
  if (most) return "its FFNs have the greatest width, 1048576";
  return "widths are whole numbers, and the next ones are no nearer";
}

tarn_status tarn__sweep_trade_ffn(tarn_sweep *sweep, const tarn__sweep_goal *goal) {
  tarn_sweep_variant *variant = &sweep->memory->variants[goal->variant];
  trial t = {.config = goal->config, .what = goal->by};
  double factor = 1.0;
  note_uses(&t, &goal->config->encoder);
  note_uses(&t, &goal->config->decoder);
  TARN_TRY(find_factor(&t, &factor, goal->base));
  const bool changed = factor != 1.0;
  if (changed) {
    TARN_TRY(round_widths(&t, &variant->measure, factor, goal->base));
    TARN_TRY(add_widths(sweep, goal->variant, &t));
  }
  if (fabs(variant->measure - goal->base) > TARN__SWEEP_NEAR * goal->base) variant->bound = bound_of(&t, changed);
  return TARN_STATUS_OK;
}
