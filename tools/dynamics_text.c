#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "dynamics_output.h"
#include "text_table.h"

enum { SHOWN = 20 };  // per model

static void cell(text_table *table, double value, int digits) {
  if (value == -INFINITY)
    text_table_cell(table, "-inf");
  else if (isnan(value))
    text_table_cell(table, "-");
  else
    text_table_cell(table, "%.*f", digits, value);
}

// A number of unknown magnitude.
static void cell_small(text_table *table, double value) {
  if (isnan(value))
    text_table_cell(table, "-");
  else
    text_table_cell(table, "%.3g", value);
}

static void cell_whole(text_table *table, int64_t value) {
  if (value < 0)
    text_table_cell(table, "-");
  else
    text_table_cell(table, "%" PRId64, value);
}

// "0.12 [0.08, 0.19]": the median and the quartiles.
static void cell_spread(text_table *table, const tarn_dynamics_spread *s, int digits) {
  if (s->count == 0)
    text_table_cell(table, "-");
  else if (s->count == 1)
    text_table_cell(table, "%.*f", digits, s->median);
  else
    text_table_cell(table, "%.*f [%.*f, %.*f]", digits, s->median, digits, s->lower, digits, s->upper);
}

static void heads(text_table *table, const char *const *names, size_t count) {
  text_table_row(table);
  for (size_t i = 0; i < count; i++) text_table_cell(table, "%s", names[i]);
}

static int finish(const cli_command *command, text_table *table) {
  const bool whole = text_table_print(table);
  printf("\n");
  return whole ? CLI_OK : cli_no_memory(command);
}

// --- a model

static void print_head(const tarn_dynamics_model *model) {
  const tarn_dynamics_info *info = model->info;
  const tarn_dynamics_result *r = model->result;
  char time[32];
  if (info->layers == 0)
    printf("model       a reservoir\n");
  else if (info->trained)
    printf("model       %s, after %" PRId64 " updates\n", info->path, info->update);
  else
    printf("model       %s, random weights\n", info->path);
  printf("map         %s", info->text);
  if (info->depth > 0) printf("; the model does %s of it", CLI_COUNT(info->depth, "iteration"));
  printf("\n");
  if (!isnan(info->spectral_radius))
    printf("reservoir   spectral radius %.4g, leak rate %.4g\n", info->spectral_radius, info->leak_rate);
  printf("computed    in %s%s%s on the device %s, perturbations by exact Jacobian-vector products; %s, %s, %.0f MB\n",
         tarn_dynamics_precision_name(info->precision), info->products == TARN_FP32_EXACT ? "" : ", products by ",
         info->products == TARN_FP32_EXACT ? "" : tarn_fp32_name(info->products), info->device,
         CLI_COUNT(r->threads, "thread"), cli_time(time, r->seconds), (double)r->memory_bytes / 1e6);
  printf("iterations  %" PRId64 ", a QR factorisation every %" PRId64 ", the first %" PRId64
         " left out of the exponents; states count as equal below a relative distance of %g\n\n",
         r->iterations, r->every, r->discard, r->tolerance);
}

static void cell_settling(text_table *table, const tarn_dynamics_sentence *s) {
  if (s->settling == TARN_DYNAMICS_SETTLING_DIVERGED)
    text_table_cell(table, "diverged at %" PRId64, s->diverged);
  else if (s->settling == TARN_DYNAMICS_SETTLING_CYCLE)
    text_table_cell(table, "cycle of %" PRId64 " at %" PRId64, s->period, s->settled);
  else if (s->settling == TARN_DYNAMICS_SETTLING_FIXED_POINT)
    text_table_cell(table, "fixed point at %" PRId64, s->settled);
  else
    text_table_cell(table, "%s", s->settling == TARN_DYNAMICS_SETTLING_NONE ? "nothing" : "-");
}

static void cell_synchrony(text_table *table, const tarn_dynamics_synchrony *s) {
  if (!s->there)
    text_table_cell(table, "-");
  else if (s->synchronised)
    text_table_cell(table, "at %" PRId64, s->iteration);
  else
    text_table_cell(table, "%.3g apart", s->offset);
}

static int print_sentences(const cli_command *command, const tarn_dynamics_result *r) {
  static const char *const names[] = {"line",    "tokens",     "largest",    "KY dim",     "growth",   "ends",
                                      "verdict", "settles on", "two starts", "its tokens", "distance", "dims"};
  text_table table = {0};
  heads(&table, names, sizeof names / sizeof *names);
  for (int64_t i = 0; i < r->count && i < SHOWN; i++) {
    const tarn_dynamics_sentence *s = &r->sentences[i];
    const bool measured = r->exponents > 0;
    text_table_row(&table);
    cell_whole(&table, s->line);
    cell_whole(&table, s->tokens);
    cell(&table, measured ? s->exponents[0] : NAN, 4);
    if (measured && s->kaplan_yorke_least)
      text_table_cell(&table, ">= %.2f", s->kaplan_yorke);
    else
      cell(&table, measured ? s->kaplan_yorke : NAN, 2);
    cell(&table, measured ? s->growth : NAN, 2);
    cell_whole(&table, measured ? s->expansion_end : -1);
    text_table_cell(&table, "%s", tarn_dynamics_verdict_name(s->verdict));
    cell_settling(&table, s);
    cell_synchrony(&table, &s->starts);
    cell_synchrony(&table, &s->between_tokens);
    cell_small(&table, s->token_distance[s->iterations]);
    cell(&table, s->participation[s->iterations], 2);
  }
  const int code = finish(command, &table);
  if (r->count > SHOWN) printf("and %" PRId64 " more (--json and --output have all)\n\n", r->count - (int64_t)SHOWN);
  return code;
}

// The exponents of all sentences, as many as fit on a line.
static int print_spectrum(const cli_command *command, const tarn_dynamics_result *r) {
  enum { MOST = 12 };
  text_table table = {0};
  const int64_t shown = r->exponents < MOST ? r->exponents : MOST;
  if (shown == 0) return CLI_OK;
  text_table_row(&table);
  text_table_cell(&table, "spectrum");
  for (int64_t k = 1; k <= shown; k++) text_table_cell(&table, "%" PRId64, k);
  for (int64_t i = 0; i < r->count && i < SHOWN; i++) {
    text_table_row(&table);
    text_table_cell(&table, "line %" PRId64, r->sentences[i].line);
    for (int64_t k = 0; k < shown; k++) cell(&table, r->sentences[i].exponents[k], 4);
  }
  return finish(command, &table);
}

static void print_spread(const char *what, const tarn_dynamics_spread *s, int digits) {
  if (s->count == 0) return;
  printf("  %-34s %.*f", what, digits, s->median);
  if (s->count > 1)
    printf("  [%.*f, %.*f], %.*f .. %.*f, mean %.*f", digits, s->lower, digits, s->upper, digits, s->least, digits,
           s->most, digits, s->mean);
  printf("\n");
}

static void print_small(const char *what, const tarn_dynamics_spread *s) {
  if (s->count == 0) return;
  printf("  %-34s %.3g", what, s->median);
  if (s->count > 1) printf("  [%.3g, %.3g], %.3g .. %.3g, mean %.3g", s->lower, s->upper, s->least, s->most, s->mean);
  printf("\n");
}

static void print_tally(const char *what, const int64_t *counts, int words, const char *(*name)(int)) {
  const char *before = "";
  printf("  %-34s ", what);
  for (int w = 0; w < words; w++) {
    if (counts[w] == 0) continue;
    printf("%s%" PRId64 " %s", before, counts[w], name(w));
    before = ", ";
  }
  printf("\n");
}

static const char *verdict_word(int word) { return tarn_dynamics_verdict_name((tarn_dynamics_verdict)word); }

static const char *settling_word(int word) {
  return word == TARN_DYNAMICS_SETTLING_NONE      ? "nothing"
         : word == TARN_DYNAMICS_SETTLING_UNKNOWN ? "not asked"
                                                  : tarn_dynamics_settling_name((tarn_dynamics_settling)word);
}

static void print_synchrony(const char *what, int64_t all, int64_t ones, const tarn_dynamics_spread *when,
                            const tarn_dynamics_spread *offset) {
  if (all == 0) return;
  printf("  %-34s %" PRId64 " of %" PRId64, what, ones, all);
  if (when->count > 0) printf(", at iteration %.0f (median)", when->median);
  if (offset->count > 0) printf("; the others are %.3g apart (median, relative)", offset->median);
  printf("\n");
}

static void print_summary(const tarn_dynamics_summary *s) {
  printf("over %s: median [quartiles], range, mean\n", CLI_COUNT(s->sentences, "sentence"));
  print_spread("largest exponent", &s->exponent, 4);
  if (s->vanished > 0) printf("  %-34s %" PRId64 "\n", "perturbations vanish in", s->vanished);
  print_spread("Kaplan-Yorke dimension", &s->kaplan_yorke, 2);
  print_spread("growth of perturbations (log)", &s->growth, 2);
  print_spread("expansion ends at iteration", &s->expansion_end, 0);
  print_tally("perturbations", s->verdicts, TARN_DYNAMICS_VERDICT_COUNT, verdict_word);
  print_tally("settles on", s->settlings, TARN_DYNAMICS_SETTLING_COUNT, settling_word);
  print_spread("settled from iteration", &s->settled, 0);
  print_synchrony("two starts became one", s->starts, s->starts_synchronised, &s->starts_iteration, &s->starts_offset);
  print_synchrony("tokens became one", s->tokens, s->tokens_synchronised, &s->tokens_iteration, &s->tokens_offset);
  print_small("distance of tokens at the start", &s->token_distance_start);
  print_small("distance of tokens at the end", &s->token_distance);
  print_spread("cosine of tokens at the end", &s->token_cosine, 4);
  print_spread("participation ratio at the start", &s->participation_start, 2);
  print_spread("participation ratio at the end", &s->participation, 2);
  print_small("rank collapse at the start", &s->rank_collapse_start);
  print_small("rank collapse at the end", &s->rank_collapse);
  printf("\n");
}

int dynamics_print_text(const cli_command *command, const tarn_dynamics_model *model,
                        const tarn_dynamics_summary *summary) {
  print_head(model);
  int code = print_sentences(command, model->result);
  if (code == CLI_OK) code = print_spectrum(command, model->result);
  if (code == CLI_OK) print_summary(summary);
  return code;
}

// --- a training, spectral radii

int dynamics_print_moments(const cli_command *command, const tarn_dynamics_moment *moments, size_t count) {
  static const char *const names[] = {"update",      "largest exponent", "KY dimension", "growth",   "expansion ends",
                                      "contracting", "transient",        "expanding",    "drifting", "diverged"};
  static const tarn_dynamics_verdict verdicts[] = {TARN_DYNAMICS_VERDICT_CONTRACTING, TARN_DYNAMICS_VERDICT_TRANSIENT,
                                                   TARN_DYNAMICS_VERDICT_EXPANDING, TARN_DYNAMICS_VERDICT_DRIFTING,
                                                   TARN_DYNAMICS_VERDICT_DIVERGED};
  text_table table = {0};
  heads(&table, names, sizeof names / sizeof *names);
  for (size_t i = 0; i < count; i++) {
    const tarn_dynamics_summary *s = &moments[i].summary;
    text_table_row(&table);
    cell_whole(&table, moments[i].update);
    cell_spread(&table, &s->exponent, 4);
    cell_spread(&table, &s->kaplan_yorke, 2);
    cell_spread(&table, &s->growth, 2);
    cell_spread(&table, &s->expansion_end, 0);
    for (size_t v = 0; v < sizeof verdicts / sizeof *verdicts; v++) cell_whole(&table, s->verdicts[verdicts[v]]);
  }
  return finish(command, &table);
}

int dynamics_print_scan(const cli_command *command, const tarn_dynamics_scan *scan) {
  static const char *const names[] = {"leak rate",         "spectral radius", "free",    "driven",
                                      "starts became one", "memory",          "diverged"};
  text_table table = {0};
  heads(&table, names, sizeof names / sizeof *names);
  for (size_t i = 0; i < scan->count; i++) {
    const tarn_dynamics_point *p = &scan->points[i];
    text_table_row(&table);
    text_table_cell(&table, "%g", p->leak_rate);
    text_table_cell(&table, "%g", p->spectral_radius);
    cell(&table, p->free, 4);
    cell(&table, p->driven, 4);
    cell(&table, p->share_synchronised, 2);
    cell(&table, p->memory_capacity, 2);
    cell_whole(&table, p->diverged);
  }
  return finish(command, &table);
}
