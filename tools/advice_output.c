#include "advice_output.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tarn/lab/results.h"
#include "text_table.h"

// --- text

static double millions(double number) { return number / 1e6; }

static void print_model(const tarn_advice_model *model) {
  printf("d_model %lld", (long long)model->d_model);
  if (model->encoder) printf(", encoder %s", model->encoder);
  if (model->decoder) printf(", decoder %s", model->decoder);
  printf(", norm %s", model->norm);
}

static void print_head(const tarn_advice_record *r) {
  printf("%s: %s%s against %s (", r->folder, r->title, r->less ? " (less is better)" : "", r->baseline);
  print_model(&r->model);
  printf("), trained for %.0f updates, %.1f epochs", r->updates, r->epochs);
  if (r->equalized) printf("; sizes were made equal to the baseline's");
  printf("\n");
  if (r->distant_count == 0)
    printf("its model is near to yours: the same d_model, layers, norm and text, and a training of like length\n");
  for (size_t i = 0; i < r->distant_count; i++) printf("%s%s", i ? "; " : "warning: yours differs: ", r->distant[i]);
  printf("%s\n", r->distant_count ? "\n" : "");
}

static void cell_number(text_table *table, int digits, double value) {
  if (isnan(value))
    text_table_cell(table, "-");
  else
    text_table_cell(table, "%.*f", digits, value);
}

static double known(int64_t count) { return count < 0 ? NAN : (double)count; }

static void cell_p(text_table *table, double p) {
  char text[TARN_RESULTS_P_TEXT];
  tarn_results_p(text, p);
  text_table_cell(table, "%s", *text ? text : "-");
}

static void add_form(text_table *table, const tarn_advice_record *r, const tarn_advice_form *f) {
  text_table_row(table);
  text_table_cell(table, "%s", f->variant);
  cell_number(table, 2, millions(known(f->trained_parameters)));
  if (isnan(f->frozen_share))
    text_table_cell(table, "-");
  else
    text_table_cell(table, "%.2f (%.0f %%)", millions((double)f->frozen_parameters), 100 * f->frozen_share);
  cell_number(table, 2, f->trained_share);
  cell_number(table, 1, millions(f->optimiser_bytes));
  cell_number(table, 2, f->update_share);
  text_table_cell(table, "%zu", f->runs);
  if (isnan(f->difference))
    text_table_cell(table, "-");
  else
    text_table_cell(table, "%+.*f", r->digits, f->difference);
  if (isnan(f->low))
    text_table_cell(table, "-");
  else
    text_table_cell(table, "[%+.*f, %+.*f]", r->digits, f->low, r->digits, f->high);
  cell_p(table, f->p);
  if (r->margin > 0) cell_p(table, f->p_equal);
  text_table_cell(table, "%s", f->words);
}

static bool print_forms(const tarn_advice_record *r) {
  static const char *const heads[] = {"form",        "trained M", "frozen M",   "trained/base", "optimiser MB",
                                      "update/base", "runs",      "difference", "interval",     "p"};
  text_table table = {0};
  if (r->form_count == 0) return true;
  text_table_row(&table);
  for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) text_table_cell(&table, "%s", heads[i]);
  if (r->margin > 0) text_table_cell(&table, "p equal");
  text_table_cell(&table, "verdict");
  for (size_t i = 0; i < r->form_count; i++) add_form(&table, r, &r->forms[i]);
  const bool whole = text_table_print(&table);
  for (size_t i = 0; i < r->form_count; i++) {
    const tarn_advice_form *f = &r->forms[i];
    printf("%s: %s", f->variant, f->what ? f->what : "");
    if (f->also) printf("; it also changes %s", f->also);
    if (f->equalized) printf("; to be equal in size: %s", f->equalized);
    printf("\n");
  }
  printf(
      "(trained/base, update/base: trained parameters and time of an update, divided by the baseline's; times are "
      "medians of the logs by the %s clock)\n\n",
      r->clock);
  return whole;
}

static void print_lines(const tarn_advice_record *r) {
  for (size_t i = 0; i < r->line_count; i++) printf("- %s\n", r->lines[i]);
  printf("\n");
}

// In single quotes for a shell.
static void print_quoted(const char *text) {
  putchar('\'');
  for (; *text; text++) {
    if (*text == '\'')
      fputs("'\\''", stdout);
    else
      putchar(*text);
  }
  putchar('\'');
}

static bool is_applied(const tarn_advice_form *f) { return f->override_count > 0 && f->decision != TARN_ADVICE_WORSE; }

static void add_plan(text_table *table, const char *name, const char *verdict, const tarn_advice_plan *plan) {
  text_table_row(table);
  text_table_cell(table, "%s", name);
  text_table_cell(table, "%.2f", millions((double)plan->trained_parameters));
  text_table_cell(table, "%.2f", millions((double)plan->frozen_parameters));
  text_table_cell(table, "%.1f", millions((double)plan->optimiser_bytes));
  text_table_cell(table, "%.1f", millions((double)plan->total_bytes));
  text_table_cell(table, "%s", verdict);
}

static bool print_applied(const tarn_advice *advice, const tarn_advice_record *r) {
  static const char *const heads[] = {"your model", "trained M", "frozen M", "optimiser MB", "peak MB", "verdict"};
  text_table table = {0};
  size_t count = 0;
  for (size_t i = 0; i < r->form_count; i++) count += is_applied(&r->forms[i]);
  if (count == 0) return true;
  text_table_row(&table);
  for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) text_table_cell(&table, "%s", heads[i]);
  add_plan(&table, "as it stands", "-", &advice->planned);
  for (size_t i = 0; i < r->form_count; i++)
    if (is_applied(&r->forms[i])) add_plan(&table, r->forms[i].variant, r->forms[i].words, &r->forms[i].planned);
  const bool whole = text_table_print(&table);
  for (size_t i = 0; i < r->form_count; i++) {
    const tarn_advice_form *f = &r->forms[i];
    if (!is_applied(f)) continue;
    printf("%s:", f->variant);
    for (size_t k = 0; k < f->override_count; k++) {
      printf(" --set ");
      print_quoted(f->overrides[k]);
    }
    printf("\n");
  }
  printf("\n");
  return whole;
}

// A line for each obstacle, with the forms that have it.
static void print_obstacles(const tarn_advice_record *r) {
  bool any = false;
  for (size_t i = 0; i < r->form_count; i++) {
    const char *why = r->forms[i].obstacle;
    bool told = !why;
    for (size_t k = 0; k < i && !told; k++) told = r->forms[k].obstacle && strcmp(r->forms[k].obstacle, why) == 0;
    if (told) continue;
    printf("not applied to your model, because %s: %s", why, r->forms[i].variant);
    for (size_t k = i + 1; k < r->form_count; k++)
      if (r->forms[k].obstacle && strcmp(r->forms[k].obstacle, why) == 0) printf(", %s", r->forms[k].variant);
    printf("\n");
    any = true;
  }
  if (any) printf("\n");
}

// --- in short

static const char *name_of(const tarn_advice_record *r) {
  const char *slash = strrchr(r->folder, '/');
  return slash && slash[1] ? slash + 1 : r->folder;
}

static void print_forms_of(const tarn_advice_record *r, const size_t *forms, size_t count) {
  for (size_t i = 0; i < count; i++) printf("%s%s", i ? ", " : "", r->forms[forms[i]].variant);
}

// The recommended forms of a record, each once.
static size_t recommended(size_t forms[3], const tarn_advice_record *r) {
  const size_t all[] = {r->shallower, r->fewest, r->fastest};
  size_t count = 0;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    bool listed = all[i] >= r->form_count;
    for (size_t k = 0; k < count; k++) listed = listed || forms[k] == all[i];
    if (!listed) forms[count++] = all[i];
  }
  return count;
}

static void print_worse(const tarn_advice_record *const *records, size_t count) {
  bool any = false;
  for (size_t i = 0; i < count; i++) {
    const tarn_advice_record *r = records[i];
    bool here = false;
    for (size_t k = 0; k < r->form_count; k++) {
      if (r->forms[k].decision != TARN_ADVICE_WORSE) continue;
      if (!here) printf("%s%s: ", any ? "; " : "- decided to be worse than the baseline: ", name_of(r));
      printf("%s%s", here ? ", " : "", r->forms[k].variant);
      any = here = true;
    }
  }
  if (any) printf("\n");
}

static void print_conclusion(const tarn_advice_record *const *records, size_t count) {
  bool any = false;
  if (count == 0) return;
  printf("in short, by %zu record%s, those nearest to your model first:\n", count, count == 1 ? "" : "s");
  for (size_t i = 0; i < count; i++) {
    size_t forms[3];
    const size_t good = recommended(forms, records[i]);
    if (good == 0) continue;
    printf("- %s recommends ", name_of(records[i]));
    print_forms_of(records[i], forms, good);
    printf("%s\n", records[i]->distant_count ? ", for another model than yours" : "");
    any = true;
  }
  if (!any) printf("- nothing is recommended; each record says why\n");
  print_worse(records, count);
  printf("\n");
}

// The records that are used, by the number of differences from the model.
static size_t by_distance(const tarn_advice_record **records, const tarn_advice *advice) {
  size_t count = 0;
  for (size_t i = 0; i < advice->record_count; i++) {
    if (advice->records[i].left_out) continue;
    size_t at = count++;
    for (; at > 0 && records[at - 1]->distant_count > advice->records[i].distant_count; at--)
      records[at] = records[at - 1];
    records[at] = &advice->records[i];
  }
  return count;
}

int advice_print_text(const cli_command *command, const tarn_advice *advice) {
  bool whole = true;
  const tarn_advice_record **records = calloc(advice->record_count + 1, sizeof(tarn_advice_record *));
  if (!records) return cli_no_memory(command);
  const size_t count = by_distance(records, advice);
  printf("\nrecords of experiments, for this model of the task %s (", advice->task);
  print_model(&advice->model);
  printf(")\n\n");
  print_conclusion(records, count);
  for (size_t i = 0; i < count; i++) {
    const tarn_advice_record *r = records[i];
    print_head(r);
    whole = print_forms(r) && whole;
    print_lines(r);
    whole = print_applied(advice, r) && whole;
    print_obstacles(r);
  }
  for (size_t i = 0; i < advice->record_count; i++)
    if (advice->records[i].left_out)
      printf("not used: %s: %s\n", advice->records[i].folder, advice->records[i].left_out);
  free(records);
  return whole ? CLI_OK : cli_no_memory(command);
}

// --- JSON

static json_t *whole_json(int64_t value) { return value < 0 ? json_null() : json_integer(value); }

static json_t *texts_json(const char *const *texts, size_t count) {
  json_t *list = json_array();
  for (size_t i = 0; i < count; i++) json_array_append_new(list, json_output_text(texts[i]));
  return list;
}

static json_t *model_json(const tarn_advice_model *model) {
  return json_pack("{s:I, s:o, s:o, s:s, s:o}", "d_model", (json_int_t)model->d_model, "encoder",
                   json_output_text(model->encoder), "decoder", json_output_text(model->decoder), "norm", model->norm,
                   "data", json_output_text(model->data));
}

static json_t *planned_json(const tarn_advice_plan *plan) {
  return json_pack("{s:I, s:I, s:I, s:I}", "trained_parameters", (json_int_t)plan->trained_parameters,
                   "frozen_parameters", (json_int_t)plan->frozen_parameters, "optimiser_bytes",
                   (json_int_t)plan->optimiser_bytes, "total_bytes", (json_int_t)plan->total_bytes);
}

static json_t *form_json(const tarn_advice_form *f) {
  json_t *applied = f->override_count ? json_pack("{s:o, s:o}", "set", texts_json(f->overrides, f->override_count),
                                                  "plan", planned_json(&f->planned))
                                      : json_null();
  json_t *costs =
      json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I}", "parameters", whole_json(f->parameters),
                "trained_parameters", whole_json(f->trained_parameters), "frozen_parameters",
                whole_json(f->frozen_parameters), "frozen_share", json_output_real(f->frozen_share), "trained_share",
                json_output_real(f->trained_share), "optimiser_bytes", json_output_real(f->optimiser_bytes),
                "update_share", json_output_real(f->update_share), "runs", (json_int_t)f->runs);
  json_t *form = json_pack("{s:o, s:o, s:b, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "variant",
                           json_output_text(f->variant), "what", json_output_text(f->what), "freezes", (int)f->freezes,
                           "also", json_output_text(f->also), "equalized", json_output_text(f->equalized), "decision",
                           tarn_advice_decision_name(f->decision), "words", json_output_text(f->words), "difference",
                           json_output_real(f->difference), "low", json_output_real(f->low), "high",
                           json_output_real(f->high), "p", json_output_real(f->p), "p_equal",
                           json_output_real(f->p_equal), "applied", applied, "obstacle", json_output_text(f->obstacle));
  const bool whole = form && costs && json_object_update(form, costs) == 0;
  json_decref(costs);
  if (whole) return form;
  json_decref(form);
  return NULL;
}

// The name of a recommended form; null for none.
static json_t *choice_json(const tarn_advice_record *r, size_t index) {
  return index < r->form_count ? json_output_text(r->forms[index].variant) : json_null();
}

static json_t *record_json(const tarn_advice_record *r) {
  if (r->left_out)
    return json_pack("{s:o, s:o}", "folder", json_output_text(r->folder), "left_out", json_output_text(r->left_out));
  json_t *forms = json_array();
  for (size_t i = 0; i < r->form_count; i++) json_array_append_new(forms, form_json(&r->forms[i]));
  json_t *record = json_pack("{s:o, s:n, s:o, s:b, s:b, s:o, s:f, s:f, s:s, s:s, s:s, s:b, s:f, s:f, s:b}", "folder",
                             json_output_text(r->folder), "left_out", "baseline", json_output_text(r->baseline),
                             "baseline_freezes", (int)r->baseline_freezes, "equalized", (int)r->equalized, "model",
                             model_json(&r->model), "updates", r->updates, "epochs", r->epochs, "clock", r->clock,
                             "measure", r->measure, "title", r->title, "less_is_better", (int)r->less, "alpha",
                             r->alpha, "margin", r->margin, "sequential", (int)r->sequential);
  json_t *rest =
      json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "distant", texts_json(r->distant, r->distant_count), "forms", forms,
                "fewest", choice_json(r, r->fewest), "fastest", choice_json(r, r->fastest), "shallower",
                choice_json(r, r->shallower), "recommendation", texts_json(r->lines, r->line_count));
  const bool whole = record && rest && json_object_update(record, rest) == 0;
  json_decref(rest);
  if (whole) return record;
  json_decref(record);
  return NULL;
}

json_t *advice_json(const tarn_advice *advice) {
  json_t *records = json_array();
  for (size_t i = 0; i < advice->record_count; i++) json_array_append_new(records, record_json(&advice->records[i]));
  return json_pack("{s:s, s:o, s:o, s:o}", "task", advice->task, "model", model_json(&advice->model), "planned",
                   planned_json(&advice->planned), "records", records);
}
