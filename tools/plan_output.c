#include "plan_output.h"

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

void plan_print_json(const tarn_plan *plan) {
  printf(
      "{\"trained_bytes\": %zu, \"frozen_bytes\": %zu, \"gradient_bytes\": %zu, \"optimiser_bytes\": %zu, "
      "\"activation_bytes\": %zu, \"workspace_bytes\": %zu, \"validation_bytes\": %zu, \"program_bytes\": %zu, "
      "\"total_bytes\": %zu, ",
      plan->trained_bytes, plan->frozen_bytes, plan->gradient_bytes, plan->optimiser_bytes, plan->activation_bytes,
      plan->workspace_bytes, plan->validation_bytes, plan->program_bytes, plan->total_bytes);
  printf("\"precision\": \"%s\", \"fp32\": \"%s\", ", plan->precision == TARN_PRECISION_BF16 ? "bf16" : "fp32",
         tarn_fp32_name(plan->fp32));
  printf(
      "\"trained_parameters\": %lld, \"frozen_parameters\": %lld, \"shared_uses\": %lld, \"shared_layers\": %lld, "
      "\"forward_flops_per_token\": %.0f, \"backward_flops_per_token\": %.0f, "
      "\"recompute_flops_per_token\": %.0f, \"source_rows\": %lld, \"target_rows\": %lld, \"cached_layers\": %d, "
      "\"cache_bytes\": %zu, \"upper_bound\": %s, \"parts\": [",
      (long long)plan->trained_parameters, (long long)plan->frozen_parameters, (long long)plan->shared_uses,
      (long long)plan->shared_layers, plan->forward_flops, plan->backward_flops, plan->recompute_flops,
      (long long)plan->source_rows, (long long)plan->target_rows, plan->cached_layers, plan->cache_bytes,
      plan->upper_bound ? "true" : "false");
  for (size_t i = 0; i < plan->part_count; i++) {
    const tarn_plan_part *part = &plan->parts[i];
    printf(
        "%s{\"label\": \"%s\", \"frozen\": %s, \"trained_parameters\": %lld, "
        "\"frozen_parameters\": %lld, "
        "\"gradient_bytes\": %zu, \"optimiser_bytes\": %zu, \"kept_bytes\": %zu, \"forward_flops_per_token\": %.0f, "
        "\"backward_flops_per_token\": %.0f, \"recompute_flops_per_token\": %.0f, \"cached\": %s, \"matrices\": %s}",
        i ? ", " : "", part->label, part->frozen ? "true" : "false", (long long)part->trained_parameters,
        (long long)part->frozen_parameters, part->gradient_bytes, part->optimiser_bytes, part->kept_bytes,
        part->forward_flops, part->backward_flops, part->recompute_flops, part->cached ? "true" : "false",
        part->matrices ? "true" : "false");
  }
  printf("]}\n");
}
