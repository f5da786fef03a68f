#include "fit_output.h"

#include <math.h>
#include <stdio.h>

#include "json_output.h"
#include "text_table.h"

enum { CELL = 96 };

static const char *digits_of(char text[CELL], double value) {
  snprintf(text, CELL, fabs(value) >= 1e4 || (value != 0 && fabs(value) < 1e-3) ? "%.3g" : "%.4g", value);
  return text;
}

static const char *value_text(char text[CELL], const tarn_fit_value *v) {
  char value[CELL], low[CELL], high[CELL];
  if (isnan(v->value)) return "-";
  if (isnan(v->low)) return digits_of(text, v->value);
  if (isinf(v->high)) {
    snprintf(text, CELL, "%.28s (%.28s or more)", digits_of(value, v->value), digits_of(low, v->low));
    return text;
  }
  snprintf(text, CELL, "%.28s (%.28s to %.28s)", digits_of(value, v->value), digits_of(low, v->low),
           digits_of(high, v->high));
  return text;
}

static void value_cell(text_table *table, const tarn_fit_value *v) {
  char text[CELL];
  text_table_cell(table, "%s", value_text(text, v));
}

static bool print_laws(const tarn_fit *fit) {
  static const char *const heads[][2] = {{"a", "b"}, {"a'", "b'"}};
  text_table table = {0};
  text_table_row(&table);
  text_table_cell(&table, "family");
  text_table_cell(&table, "runs");
  text_table_cell(&table, "sizes");
  for (size_t k = 0; k < fit->axis_count; k++)
    for (size_t i = 0; i < 2; i++) text_table_cell(&table, "%s", heads[k][i]);
  text_table_cell(&table, "c");
  text_table_cell(&table, "residual");
  for (size_t i = 0; i < fit->law_count; i++) {
    const tarn_fit_law *law = &fit->laws[i];
    text_table_row(&table);
    text_table_cell(&table, "%s", law->family);
    text_table_cell(&table, "%zu", law->point_count);
    text_table_cell(&table, "%zu", law->size_count);
    for (size_t k = 0; k < fit->axis_count; k++) value_cell(&table, &law->a[k]), value_cell(&table, &law->b[k]);
    value_cell(&table, &law->c);
    text_table_cell(&table, "%.2f %%", 100 * law->residual);
  }
  return text_table_print(&table);
}

static void size_cell(text_table *table, const tarn_fit *fit, const double *x) {
  if (fit->axis_count > 1)
    text_table_cell(table, "%.4g, %.4g", x[0], x[1]);
  else
    text_table_cell(table, "%.4g", x[0]);
}

static bool print_predictions(const tarn_fit *fit) {
  text_table table = {0};
  text_table_row(&table);
  text_table_cell(&table, "predicted at");
  for (size_t i = 0; i < fit->law_count; i++) text_table_cell(&table, "%s", fit->laws[i].family);
  for (size_t p = 0; p < fit->prediction_count; p++) {
    text_table_row(&table);
    size_cell(&table, fit, fit->laws[0].predictions[p].x);
    for (size_t i = 0; i < fit->law_count; i++) value_cell(&table, &fit->laws[i].predictions[p].loss);
  }
  return text_table_print(&table);
}

static void print_checks(const tarn_fit *fit) {
  char text[CELL];
  for (size_t i = 0; i < fit->law_count; i++) {
    const tarn_fit_law *law = &fit->laws[i];
    if (law->at_bound)
      printf("%s: the exponent is at the end of its range, so these sizes do not determine the law\n", law->family);
    if (isnan(law->checked_x))
      printf("%s: too few sizes to leave the largest one out as a check\n", law->family);
    else
      printf("%s: the other sizes predict %s at %.4g, where it is %.4g\n", law->family, value_text(text, &law->checked),
             law->checked_x, law->checked_loss);
  }
}

static const char *judge(const tarn_fit_value *v) {
  return isnan(v->low) ? "" : v->low > 0 || v->high < 0 ? ": decided" : ": undecided";
}

static void print_pairs(const tarn_fit *fit) {
  char text[CELL];
  for (size_t i = 0; i < fit->pair_count; i++) {
    const tarn_fit_pair *pair = &fit->pairs[i];
    printf("%s minus %s\n", fit->laws[pair->second].family, fit->laws[pair->first].family);
    for (size_t k = 0; k < fit->axis_count; k++)
      printf("  exponent of %-10s  %s%s\n", tarn_fit_axis_name(fit->axes[k]), value_text(text, &pair->exponent[k]),
             judge(&pair->exponent[k]));
    printf("  constant c              %s%s\n", value_text(text, &pair->offset), judge(&pair->offset));
    if (fit->axis_count == 1)
      printf("  size for the same loss  %s%s, at %.4g\n",
             isnan(pair->size.value) ? "none" : value_text(text, &pair->size), isnan(pair->size.value) ? "" : " times",
             pair->at);
  }
}

int fit_print_text(const cli_command *command, const tarn_fit *fit) {
  printf("L = a x^-b %s+ c   L: %s   x: %s", fit->axis_count > 1 ? "+ a' y^-b' " : "", fit->metric,
         tarn_fit_axis_name(fit->axes[0]));
  if (fit->axis_count > 1) printf("   y: %s", tarn_fit_axis_name(fit->axes[1]));
  printf("\n\n");
  if (!print_laws(fit)) return cli_no_memory(command);
  printf("\n");
  if (!print_predictions(fit)) return cli_no_memory(command);
  printf("\n");
  print_checks(fit);
  print_pairs(fit);
  for (size_t i = 0; i < fit->note_count; i++) printf("note: %s\n", fit->notes[i]);
  return CLI_OK;
}

// --- JSON

static json_t *value_object(const tarn_fit_value *v) {
  return json_pack("{s:o?, s:o?, s:o?}", "value", json_output_real(v->value), "low", json_output_real(v->low), "high",
                   json_output_real(v->high));
}

static json_t *values(const tarn_fit_value *v, size_t count) {
  json_t *list = json_array();
  for (size_t k = 0; k < count; k++) json_array_append_new(list, value_object(&v[k]));
  return list;
}

static json_t *sizes(const double *x, size_t count) {
  json_t *list = json_array();
  for (size_t k = 0; k < count; k++) json_array_append_new(list, json_output_real(x[k]));
  return list;
}

static json_t *law_object(const tarn_results *results, const tarn_fit *fit, const tarn_fit_law *law) {
  json_t *points = json_array(), *predictions = json_array();
  for (size_t i = 0; i < law->point_count; i++)
    json_array_append_new(
        points, json_pack("{s:o?, s:o?, s:o?}", "run", json_output_text(results->runs[law->points[i].run].path), "x",
                          sizes(law->points[i].x, fit->axis_count), "loss", json_output_real(law->points[i].loss)));
  for (size_t i = 0; i < fit->prediction_count; i++)
    json_array_append_new(predictions, json_pack("{s:o?, s:o?}", "x", sizes(law->predictions[i].x, fit->axis_count),
                                                 "loss", value_object(&law->predictions[i].loss)));
  return json_pack("{s:o?, s:I, s:o?, s:o?, s:o?, s:o?, s:b, s:o?, s:o?, s:{s:o?, s:o?, s:o?}}", "family",
                   json_output_text(law->family), "sizes", (json_int_t)law->size_count, "a",
                   values(law->a, fit->axis_count), "b", values(law->b, fit->axis_count), "c", value_object(&law->c),
                   "residual", json_output_real(law->residual), "at_bound", law->at_bound, "runs", points,
                   "predictions", predictions, "check", "x", json_output_real(law->checked_x), "loss",
                   json_output_real(law->checked_loss), "predicted", value_object(&law->checked));
}

static json_t *pair_object(const tarn_fit *fit, const tarn_fit_pair *pair) {
  return json_pack("{s:o?, s:o?, s:o?, s:o?, s:o?, s:o?}", "first", json_output_text(fit->laws[pair->first].family),
                   "second", json_output_text(fit->laws[pair->second].family), "exponent",
                   values(pair->exponent, fit->axis_count), "offset", value_object(&pair->offset), "at",
                   json_output_real(pair->at), "size", value_object(&pair->size));
}

int fit_print_json(const cli_command *command, const tarn_results *results, const tarn_fit *fit) {
  json_t *axes = json_array(), *laws = json_array(), *pairs = json_array(), *notes = json_array();
  for (size_t k = 0; k < fit->axis_count; k++)
    json_array_append_new(axes, json_string(tarn_fit_axis_name(fit->axes[k])));
  for (size_t i = 0; i < fit->law_count; i++) json_array_append_new(laws, law_object(results, fit, &fit->laws[i]));
  for (size_t i = 0; i < fit->pair_count; i++) json_array_append_new(pairs, pair_object(fit, &fit->pairs[i]));
  for (size_t i = 0; i < fit->note_count; i++) json_array_append_new(notes, json_output_text(fit->notes[i]));
  return json_output_print(
      command, stdout,
      json_pack("{s:o?, s:s, s:I, s:o?, s:o?, s:o?}", "axes", axes, "metric", fit->metric, "resamples",
                (json_int_t)fit->resamples, "laws", laws, "pairs", pairs, "notes", notes),
      JSON_COMPACT | JSON_REAL_PRECISION(12));
}
