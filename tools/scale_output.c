#include "scale_output.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Parses a number of ranks at *at and advances it; 0 if there is no valid one.
static int number_at(const char **at) {
  char *end;
  if (**at < '0' || **at > '9') return 0;
  errno = 0;
  const long value = strtol(*at, &end, 10);
  *at = end;
  return errno == 0 && value >= 1 && value <= TARN_SCALE_RANKS ? (int)value : 0;
}

// Parses "1,2,64" and "1-1024", which doubles. False if it is not such a list.
static bool read_list(int ranks[SCALE_MOST], size_t *count, const char *list) {
  for (const char *at = list;; at++) {
    const int first = number_at(&at);
    int last = first;
    if (*at == '-') {
      at++;
      last = number_at(&at);
    }
    if (first == 0 || last < first || (*at && *at != ',')) return false;
    for (int64_t now = first; now <= last; now *= 2) {
      if (*count == SCALE_MOST) return false;
      ranks[(*count)++] = (int)now;
    }
    if (!*at) return true;
  }
}

int scale_options(tarn_scale_options *options, int ranks[SCALE_MOST], const cli_command *command,
                  const scale_wanted *wanted) {
  const struct {
    const char *name;
    double value, *to;
  } given[] = {{"bandwidth", wanted->bandwidth, &options->bandwidth},
               {"latency", wanted->latency, &options->latency},
               {"step-seconds", wanted->step_seconds, &options->step_seconds},
               {"optimiser-seconds", wanted->optimiser_seconds, &options->optimiser_seconds},
               {"adding", wanted->adding, &options->adding}};
  tarn_scale_default(options);
  for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
    if (isnan(given[i].value)) continue;
    if (!wanted->ranks) return cli_usage(command, "--%s needs --ranks", given[i].name);
    *given[i].to = given[i].value;
  }
  if (wanted->one_machine && !wanted->ranks) return cli_usage(command, "--one-machine needs --ranks");
  if (wanted->one_machine && !(isnan(wanted->bandwidth) && isnan(wanted->latency)))
    return cli_usage(command, "--bandwidth and --latency describe a link; with --one-machine there is none");
  options->one_machine = wanted->one_machine;
  if (!wanted->ranks) return CLI_OK;
  if (options->optimiser_seconds > 0 && options->step_seconds <= 0)
    return cli_usage(command, "--optimiser-seconds needs --step-seconds");
  if (options->optimiser_seconds > 0 && options->optimiser_seconds >= options->step_seconds)
    return cli_usage(command, "--optimiser-seconds is a part of --step-seconds, and less");
  options->ranks = ranks;
  options->count = 0;
  if (read_list(ranks, &options->count, wanted->ranks)) return CLI_OK;
  return cli_usage(command, "--ranks expects numbers from 1 to %d such as 1,2,64 or 1-1024, %d at most, not \"%s\"",
                   TARN_SCALE_RANKS, SCALE_MOST, wanted->ranks);
}

static double mb(double bytes) { return bytes / 1e6; }

static double value_bytes(const tarn_scale *s) { return s->reduce == TARN_PRECISION_BF16 ? 2 : 4; }

static const char *precision(const tarn_scale *s) { return s->reduce == TARN_PRECISION_BF16 ? "bf16" : "fp32"; }

static const char *made_from(const tarn_scale *s) {
  if (s->given) return "as given";
  return s->source == TARN_DURATION_PROBE ? "measured by updates" : "estimated from operations";
}

static void print_way(const tarn_scale_point *point, const tarn_scale_way *way) {
  printf("%8d %10.1f %10.1f %10.1f %10.1f %10.1f %14.0f %10.3f %10.1f\n", point->ranks, 1e3 * way->step_seconds,
         1e3 * way->network_seconds, 1e3 * way->adding_seconds, 1e3 * way->waiting_seconds, mb(way->sent_bytes),
         way->tokens_per_second, way->efficiency, mb((double)way->memory_bytes));
}

static void print_ways(const tarn_scale *s, bool sharded) {
  printf("\n%s:\n%8s %10s %10s %10s %10s %10s %14s %10s %10s\n",
         sharded ? "each rank with its part of the moments (train.shard_optimiser: yes)"
                 : "each rank with all moments (train.shard_optimiser: no)",
         "ranks", "step", "network", "adding", "waiting", "sent", "tokens/s", "efficiency", "memory");
  printf("%8s %10s %10s %10s %10s %10s %14s %10s %10s\n", "", "ms", "ms", "ms", "ms", "MB", "", "", "MB");
  for (size_t i = 0; i < s->count; i++) print_way(&s->points[i], sharded ? &s->points[i].sharded : &s->points[i].whole);
}

void scale_print_text(const tarn_scale *s) {
  const tarn_scale_point *last = &s->points[s->count - 1];
  if (s->one_machine)
    printf("\nranks: on one machine, through shared memory");
  else
    printf("\nranks: %.3g bytes a second and %.3g s a message between them", s->bandwidth, s->latency);
  printf("; sums in %s, %s the backward pass\n", precision(s), s->overlap ? "during" : "after");
  printf("an update of one rank: %.1f ms (%s), %.0f tokens; of one of several: %.1f ms", 1e3 * s->alone_seconds,
         made_from(s), s->update_tokens, 1e3 * s->step_seconds);
  if (s->optimiser_seconds > 0) printf(", %.1f ms of it the optimiser", 1e3 * s->optimiser_seconds);
  printf("; adds %.3g bytes a second\n\n%-22s %12s %12s\n", s->adding, "summed in an update", "gradients", "MB");
  for (size_t i = 0; i < s->part_count; i++)
    if (s->parts[i].values > 0)
      printf("%-22s %12lld %12.2f\n", s->parts[i].label, (long long)s->parts[i].values,
             mb(last->part_values[i] * value_bytes(s)));
  printf("%-22s %12lld %12.2f\n", "all", (long long)s->values, mb(last->used_values * value_bytes(s)));
  print_ways(s, false);
  print_ways(s, true);
}

static json_int_t whole(double number) { return (json_int_t)llround(number); }

static json_t *way_json(const tarn_scale_way *w) {
  return json_pack("{s:o, s:o, s:o, s:o, s:I, s:o, s:o, s:I, s:I}", "step_seconds", json_output_real(w->step_seconds),
                   "network_seconds", json_output_real(w->network_seconds), "adding_seconds",
                   json_output_real(w->adding_seconds), "waiting_seconds", json_output_real(w->waiting_seconds),
                   "sent_bytes", whole(w->sent_bytes), "efficiency", json_output_real(w->efficiency),
                   "tokens_per_second", json_output_real(w->tokens_per_second), "memory_bytes",
                   (json_int_t)w->memory_bytes, "optimiser_bytes", (json_int_t)w->optimiser_bytes);
}

static json_t *point_json(const tarn_scale *s, const tarn_scale_point *p) {
  json_t *parts = json_array();
  int failed = 0;
  for (size_t i = 0; i < s->part_count; i++)
    failed |= json_array_append_new(parts, json_integer(whole(p->part_values[i] * value_bytes(s))));
  json_t *object =
      json_pack("{s:i, s:I, s:o, s:o, s:o}", "ranks", p->ranks, "summed_bytes", whole(p->used_values * value_bytes(s)),
                "part_bytes", parts, "whole", way_json(&p->whole), "sharded", way_json(&p->sharded));
  if (failed == 0) return object;
  json_decref(object);
  return NULL;
}

static json_t *part_json(const tarn_scale_part *part) {
  return json_pack("{s:s, s:I, s:o, s:o}", "label", part->label, "values", (json_int_t)part->values, "forward_seconds",
                   json_output_real(part->forward_seconds), "backward_seconds",
                   json_output_real(part->backward_seconds));
}

json_t *scale_json(const tarn_scale *s) {
  json_t *parts = json_array(), *points = json_array();
  int failed = 0;
  for (size_t i = 0; i < s->part_count; i++) failed |= json_array_append_new(parts, part_json(&s->parts[i]));
  for (size_t i = 0; i < s->count; i++) failed |= json_array_append_new(points, point_json(s, &s->points[i]));
  json_t *object =
      json_pack("{s:o, s:o, s:b, s:s, s:b, s:b, s:s, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:o, s:o}", "bandwidth",
                json_output_real(s->bandwidth), "latency", json_output_real(s->latency), "one_machine", s->one_machine,
                "reduce", precision(s), "shard_optimiser", s->shards, "overlap", s->overlap, "source",
                s->given ? "given" : tarn_duration_source_name(s->source), "alone_seconds",
                json_output_real(s->alone_seconds), "step_seconds", json_output_real(s->step_seconds),
                "optimiser_seconds", json_output_real(s->optimiser_seconds), "adding", json_output_real(s->adding),
                "update_tokens", json_output_real(s->update_tokens), "values", (json_int_t)s->values, "weight_bytes",
                whole(s->weight_bytes), "bucket", (json_int_t)s->bucket, "parts", parts, "points", points);
  if (failed == 0) return object;
  json_decref(object);
  return NULL;
}
