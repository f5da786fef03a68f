#include "plan_output.h"
#include "cli.h"

#include <math.h>
#include <stdio.h>

#include "sharing_text.h"

static double mb(size_t bytes) { return (double)bytes / 1e6; }

static void print_parts(const tarn_plan *plan) {
  printf("\n%-22s %-8s %12s %12s %10s %10s %10s %9s %9s %9s\n", "part", "", "trained", "frozen", "gradients",
         "optimiser", "kept", "forward", "backward", "again");
  printf("%-22s %-8s %12s %12s %10s %10s %10s %9s %9s %9s\n", "", "", "parameters", "parameters", "MB", "MB", "MB",
         "MFLOP/tok", "MFLOP/tok", "MFLOP/tok");
  for (size_t i = 0; i < plan->part_count; i++) {
    const tarn_plan_part *part = &plan->parts[i];
    printf("%-22s %-8s %12lld %12lld %10.1f %10.1f %10.1f %9.2f %9.2f %9.2f\n", part->label,
           part->cached     ? "cached"
           : part->frozen   ? "frozen"
           : part->matrices ? "matrices"
                            : "",
           (long long)part->trained_parameters, (long long)part->frozen_parameters, mb(part->gradient_bytes),
           mb(part->optimiser_bytes), mb(part->kept_bytes), part->forward_flops / 1e6, part->backward_flops / 1e6,
           part->recompute_flops / 1e6);
  }
}

void plan_print_text(const tarn_plan *plan) {
  const struct {
    const char *name;
    size_t bytes;
  } rows[] = {{"trained parameters", plan->trained_bytes},
              {"frozen parameters", plan->frozen_bytes},
              {"gradients", plan->gradient_bytes},
              {"optimiser state", plan->optimiser_bytes},
              {"activations", plan->activation_bytes},
              {"workspace", plan->workspace_bytes},
              {"validation", plan->validation_bytes},
              {"program and data", plan->program_bytes},
              {"peak", plan->total_bytes}};
  printf("batch: %lld source and %lld target tokens (mean sentence %.1f and %.1f)\n\n", (long long)plan->source_rows,
         (long long)plan->target_rows, plan->source_length, plan->target_length);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) printf("%-22s %10.1f MB\n", rows[i].name, mb(rows[i].bytes));
  char sharing[SHARING_TEXT];
  printf("\nparameters: %lld (%lld trained, %lld frozen)%s\n",
         (long long)(plan->trained_parameters + plan->frozen_parameters), (long long)plan->trained_parameters,
         (long long)plan->frozen_parameters, sharing_text(sharing, plan->shared_uses, plan->shared_layers, false));
  printf("floating-point operations per token: %.2f M forward, %.2f M backward, %.2f M computed again\n",
         plan->forward_flops / 1e6, plan->backward_flops / 1e6, plan->recompute_flops / 1e6);
  if (plan->fp32 != TARN_FP32_EXACT) printf("products of fp32 numbers by %s\n", tarn_fp32_name(plan->fp32));
  if (plan->upper_bound) printf("this is the plan of a step in which every layer runs and learns; others take less\n");
  if (plan->cached_layers && plan->cache_bytes)
    printf("outputs of %d frozen encoder layers on disk: %.1f MB\n", plan->cached_layers, mb(plan->cache_bytes));
  else if (plan->cached_layers)
    printf("outputs of %d frozen encoder layers on disk: size not known without data.train\n", plan->cached_layers);
  print_parts(plan);
}

static json_int_t whole(double number) { return (json_int_t)llround(number); }

static json_t *part_json(const tarn_plan_part *part) {
  return json_pack("{s:s, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:b}", "label", part->label, "frozen",
                   part->frozen, "trained_parameters", (json_int_t)part->trained_parameters, "frozen_parameters",
                   (json_int_t)part->frozen_parameters, "gradient_bytes", (json_int_t)part->gradient_bytes,
                   "optimiser_bytes", (json_int_t)part->optimiser_bytes, "kept_bytes", (json_int_t)part->kept_bytes,
                   "forward_flops_per_token", whole(part->forward_flops), "backward_flops_per_token",
                   whole(part->backward_flops), "recompute_flops_per_token", whole(part->recompute_flops), "cached",
                   part->cached, "matrices", part->matrices);
}

static json_t *bytes_json(const tarn_plan *plan) {
  return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "trained_bytes", (json_int_t)plan->trained_bytes,
                   "frozen_bytes", (json_int_t)plan->frozen_bytes, "gradient_bytes", (json_int_t)plan->gradient_bytes,
                   "optimiser_bytes", (json_int_t)plan->optimiser_bytes, "activation_bytes",
                   (json_int_t)plan->activation_bytes, "workspace_bytes", (json_int_t)plan->workspace_bytes,
                   "validation_bytes", (json_int_t)plan->validation_bytes, "program_bytes",
                   (json_int_t)plan->program_bytes, "total_bytes", (json_int_t)plan->total_bytes);
}

json_t *plan_json(const tarn_plan *plan) {
  json_t *parts = json_array();
  int failed = 0;
  for (size_t i = 0; i < plan->part_count; i++) failed |= json_array_append_new(parts, part_json(&plan->parts[i])) != 0;
  json_t *object = bytes_json(plan);
  json_t *rest =
      json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:i, s:I, s:b, s:o}", "precision",
                plan->precision == TARN_PRECISION_BF16 ? "bf16" : "fp32", "fp32", tarn_fp32_name(plan->fp32),
                "trained_parameters", (json_int_t)plan->trained_parameters, "frozen_parameters",
                (json_int_t)plan->frozen_parameters, "shared_uses", (json_int_t)plan->shared_uses, "shared_layers",
                (json_int_t)plan->shared_layers, "forward_flops_per_token", whole(plan->forward_flops),
                "backward_flops_per_token", whole(plan->backward_flops), "recompute_flops_per_token",
                whole(plan->recompute_flops), "source_rows", (json_int_t)plan->source_rows, "target_rows",
                (json_int_t)plan->target_rows, "cached_layers", plan->cached_layers, "cache_bytes",
                (json_int_t)plan->cache_bytes, "upper_bound", plan->upper_bound, "parts", parts);
  failed |= !rest || json_object_update(object, rest) != 0;
  json_decref(rest);
  if (!failed) return object;
  json_decref(object);
  return NULL;
}

static const char *made_from(tarn_duration_source source) {
  switch (source) {
    case TARN_DURATION_RUN:
      return "from the run's own log";
    case TARN_DURATION_PROBE:
      return "from two seconds of its updates";
    case TARN_DURATION_OPERATIONS:
      return "from its operations and the speed of one product";
  }
  return "";
}

void plan_print_duration(const tarn_duration *d) {
  char time[32], low[32], high[32];
  if (d->seconds < 0) {
    printf("\ntime: not known, because nothing limits the training (%.0f tokens/s, %s)\n", d->tokens_per_second,
           made_from(d->source));
    return;
  }
  printf("\ntime: %s (%s to %s)", cli_time(time, d->seconds), cli_time(low, d->low), cli_time(high, d->high));
  if (d->validation_seconds > 0)
    printf(", %s of it validation%s", cli_time(time, d->validation_seconds),
           d->source == TARN_DURATION_RUN ? "" : " without translations");
  if (d->dynamics_seconds > 0) printf(", %s of it exponents", cli_time(time, d->dynamics_seconds));
  if (d->source == TARN_DURATION_RUN) printf(", %s left", cli_time(time, d->seconds_left));
  printf("; %.0f updates, ", d->updates);
  if (d->epochs > 0) printf("%.1f epochs, ", d->epochs);
  printf("%.0f tokens/s; %s\n", d->tokens_per_second, made_from(d->source));
}

static json_t *known(double number) { return number < 0 ? json_null() : json_output_real(number); }

json_t *plan_duration_json(const tarn_duration *d) {
  return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "source", tarn_duration_source_name(d->source),
                   "seconds", known(d->seconds), "low", known(d->low), "high", known(d->high), "seconds_left",
                   known(d->seconds_left), "updates", known(d->updates), "epochs", known(d->epochs),
                   "tokens_per_second", known(d->tokens_per_second), "validation_seconds", known(d->validation_seconds),
                   "dynamics_seconds", known(d->dynamics_seconds));
}
