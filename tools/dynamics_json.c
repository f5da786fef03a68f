#include <math.h>

#include "dynamics_output.h"
#include "json_output.h"

enum { FLAGS = JSON_COMPACT | JSON_REAL_PRECISION(17) };

static json_t *whole(int64_t value) { return value < 0 ? json_null() : json_integer((json_int_t)value); }

static int set(json_t *object, const char *key, json_t *value) { return json_object_set_new(object, key, value); }

// NULL: out of memory.
static json_t *reals(const double *values, int64_t count) {
  json_t *list = json_array();
  for (int64_t i = 0; i < count && list; i++) {
    if (json_array_append_new(list, json_output_real(values[i])) == 0) continue;
    json_decref(list);
    list = NULL;
  }
  return list;
}

static json_t *spread(const tarn_dynamics_spread *s) {
  return json_pack("{s:I, s:o?, s:o?, s:o?, s:o?, s:o?, s:o?, s:o?}", "count", (json_int_t)s->count, "median",
                   json_output_real(s->median), "lower", json_output_real(s->lower), "upper",
                   json_output_real(s->upper), "least", json_output_real(s->least), "most", json_output_real(s->most),
                   "mean", json_output_real(s->mean), "sd", json_output_real(s->deviation));
}

static json_t *synchrony(const tarn_dynamics_synchrony *s) {
  if (!s->there) return json_null();
  return json_pack("{s:b, s:o, s:o?, s:o?, s:o}", "synchronised", (int)s->synchronised, "iteration",
                   whole(s->iteration), "offset", json_output_real(s->offset), "wander", json_output_real(s->wander),
                   "lag", whole(s->lag));
}

// `failed` counts the fields that could not be allocated; an incomplete object is not printed.
static int print(const cli_command *command, json_t *object, int failed) {
  if (!failed) return json_output_print(command, stdout, object, FLAGS);
  json_decref(object);
  return cli_no_memory(command);
}

static int print_map(const cli_command *command, const tarn_dynamics_model *model) {
  const tarn_dynamics_info *info = model->info;
  const tarn_dynamics_result *r = model->result;
  json_t *o =
      json_pack("{s:s, s:o, s:o, s:o, s:s, s:s, s:s, s:b}", "kind", "map", "model", json_output_text(model->name),
                "path", json_output_text(info->path), "text", json_output_text(info->text), "map",
                tarn_dynamics_map_name(info->map), "precision", tarn_dynamics_precision_name(info->precision), "device",
                info->device, "trained", (int)info->trained);
  int failed = !o;
  if (info->map == TARN_DYNAMICS_MAP_RECURRENCE)
    failed |= set(o, "drive", json_string(tarn_dynamics_drive_name(info->drive)));
  failed |= set(o, "products", json_string(tarn_fp32_name(info->products)));
  failed |= set(o, "update", json_integer((json_int_t)info->update));
  failed |= set(o, "first_layer", json_integer(info->first_layer));
  failed |= set(o, "last_layer", json_integer(info->last_layer));
  failed |= set(o, "depth", json_integer((json_int_t)info->depth));
  failed |= set(o, "width", json_integer((json_int_t)info->width));
  failed |= set(o, "spectral_radius", json_output_real(info->spectral_radius));
  failed |= set(o, "leak_rate", json_output_real(info->leak_rate));
  failed |= set(o, "iterations", json_integer((json_int_t)r->iterations));
  failed |= set(o, "exponents", json_integer((json_int_t)r->exponents));
  failed |= set(o, "every", json_integer((json_int_t)r->every));
  failed |= set(o, "discard", json_integer((json_int_t)r->discard));
  failed |= set(o, "tolerance", json_output_real(r->tolerance));
  failed |= set(o, "longest_period", json_integer((json_int_t)r->longest_period));
  failed |= set(o, "apart", json_output_real(r->apart));
  failed |= set(o, "threads", json_integer(r->threads));
  failed |= set(o, "seconds", json_output_real(r->seconds));
  failed |= set(o, "memory_bytes", json_integer((json_int_t)r->memory_bytes));
  return print(command, o, failed);
}

static int print_sentence(const cli_command *command, const tarn_dynamics_model *model,
                          const tarn_dynamics_sentence *s) {
  const int64_t exponents = model->result->exponents, end = s->iterations;
  json_t *o = json_pack("{s:s, s:o, s:I, s:I, s:I, s:I, s:o, s:o}", "kind", "sentence", "model",
                        json_output_text(model->name), "line", (json_int_t)s->line, "tokens", (json_int_t)s->tokens,
                        "dimensions", (json_int_t)s->dimensions, "iterations", (json_int_t)s->iterations, "diverged",
                        whole(s->diverged), "exponents", reals(s->exponents, exponents));
  int failed = !o;
  failed |= set(o, "counted", json_integer((json_int_t)s->counted));
  failed |= set(o, "kaplan_yorke", json_output_real(exponents > 0 ? s->kaplan_yorke : NAN));
  failed |= set(o, "kaplan_yorke_least", exponents > 0 ? json_boolean(s->kaplan_yorke_least) : json_null());
  failed |= set(o, "state_growth", json_output_real(exponents > 0 ? s->state_growth : NAN));
  failed |= set(o, "growth", json_output_real(exponents > 0 ? s->growth : NAN));
  failed |= set(o, "expansion_end", whole(exponents > 0 ? s->expansion_end : -1));
  failed |= set(o, "verdict", json_string(tarn_dynamics_verdict_name(s->verdict)));
  failed |= set(o, "settling", json_string(tarn_dynamics_settling_name(s->settling)));
  failed |= set(o, "period", s->period > 0 ? json_integer((json_int_t)s->period) : json_null());
  failed |= set(o, "settled", whole(s->settled));
  failed |= set(o, "residual", json_output_real(s->residual));
  failed |= set(o, "starts", synchrony(&s->starts));
  failed |= set(o, "between_tokens", synchrony(&s->between_tokens));
  failed |= set(o, "norm", json_output_real(s->norm[end]));
  failed |= set(o, "token_distance", json_output_real(s->token_distance[end]));
  failed |= set(o, "token_cosine", json_output_real(s->token_cosine[end]));
  failed |= set(o, "participation", json_output_real(s->participation[end]));
  failed |= set(o, "rank_collapse", json_output_real(s->rank_collapse[end]));
  return print(command, o, failed);
}

static json_t *tally(const int64_t *counts, int words, const char *(*name)(int)) {
  json_t *o = json_object();
  for (int w = 0; w < words && o; w++) {
    if (set(o, name(w), json_integer((json_int_t)counts[w])) == 0) continue;
    json_decref(o);
    o = NULL;
  }
  return o;
}

static const char *verdict_word(int word) { return tarn_dynamics_verdict_name((tarn_dynamics_verdict)word); }
static const char *settling_word(int word) { return tarn_dynamics_settling_name((tarn_dynamics_settling)word); }

static int fill_summary(json_t *o, const tarn_dynamics_summary *s) {
  const struct {
    const char *key;
    const tarn_dynamics_spread *spread;
  } spreads[] = {{"exponent", &s->exponent},
                 {"kaplan_yorke", &s->kaplan_yorke},
                 {"growth", &s->growth},
                 {"expansion_end", &s->expansion_end},
                 {"settled", &s->settled},
                 {"starts_iteration", &s->starts_iteration},
                 {"starts_offset", &s->starts_offset},
                 {"tokens_iteration", &s->tokens_iteration},
                 {"tokens_offset", &s->tokens_offset},
                 {"participation_start", &s->participation_start},
                 {"participation", &s->participation},
                 {"rank_collapse_start", &s->rank_collapse_start},
                 {"rank_collapse", &s->rank_collapse},
                 {"token_distance_start", &s->token_distance_start},
                 {"token_distance", &s->token_distance},
                 {"token_cosine", &s->token_cosine}};
  int failed = 0;
  failed |= set(o, "sentences", json_integer((json_int_t)s->sentences));
  failed |= set(o, "vanished", json_integer((json_int_t)s->vanished));
  failed |= set(o, "kaplan_yorke_least", json_integer((json_int_t)s->kaplan_yorke_least));
  for (size_t i = 0; i < sizeof spreads / sizeof *spreads; i++)
    failed |= set(o, spreads[i].key, spread(spreads[i].spread));
  failed |= set(o, "verdicts", tally(s->verdicts, TARN_DYNAMICS_VERDICT_COUNT, verdict_word));
  failed |= set(o, "settlings", tally(s->settlings, TARN_DYNAMICS_SETTLING_COUNT, settling_word));
  failed |= set(o, "starts", json_integer((json_int_t)s->starts));
  failed |= set(o, "starts_synchronised", json_integer((json_int_t)s->starts_synchronised));
  failed |= set(o, "tokens", json_integer((json_int_t)s->tokens));
  failed |= set(o, "tokens_synchronised", json_integer((json_int_t)s->tokens_synchronised));
  return failed;
}

int dynamics_print_json(const cli_command *command, const tarn_dynamics_model *model,
                        const tarn_dynamics_summary *summary) {
  int code = print_map(command, model);
  for (int64_t i = 0; i < model->result->count && code == CLI_OK; i++)
    code = print_sentence(command, model, &model->result->sentences[i]);
  if (code != CLI_OK) return code;
  json_t *o = json_pack("{s:s, s:o}", "kind", "summary", "model", json_output_text(model->name));
  const int failed = !o || fill_summary(o, summary);
  return print(command, o, failed);
}

int dynamics_print_moments_json(const cli_command *command, const tarn_dynamics_moment *moments, size_t count) {
  int code = CLI_OK;
  for (size_t i = 0; i < count && code == CLI_OK; i++) {
    json_t *o = json_pack("{s:s, s:I}", "kind", "checkpoint", "update", (json_int_t)moments[i].update);
    const int failed = !o || fill_summary(o, &moments[i].summary);
    code = print(command, o, failed);
  }
  return code;
}

int dynamics_print_scan_json(const cli_command *command, const tarn_dynamics_scan *scan) {
  int code = CLI_OK;
  for (size_t i = 0; i < scan->count && code == CLI_OK; i++) {
    const tarn_dynamics_point *p = &scan->points[i];
    json_t *o = json_pack("{s:s, s:f, s:f, s:o?, s:o?, s:o?, s:o?, s:I, s:I}", "kind", "radius", "spectral_radius",
                          p->spectral_radius, "leak_rate", p->leak_rate, "free", json_output_real(p->free), "driven",
                          json_output_real(p->driven), "share_synchronised", json_output_real(p->share_synchronised),
                          "memory_capacity", json_output_real(p->memory_capacity), "diverged", (json_int_t)p->diverged,
                          "units", (json_int_t)scan->units);
    code = print(command, o, !o);
  }
  return code;
}
