#include "sequential_text.h"

#include <math.h>
#include <stdio.h>

#include "tarn/lab/results.h"

void sequential_text_heads(text_table *table, const char *first) {
  static const char *const heads[] = {"looks", "seeds", "difference", "interval", "p", "p equal", "verdict"};
  text_table_row(table);
  text_table_cell(table, "%s", first);
  for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) text_table_cell(table, "%s", heads[i]);
}

typedef struct number {
  char text[64];
} number;

static number signed_number(double value, int digits) {
  number n = {"-"};
  if (!isnan(value) && digits < 0)
    snprintf(n.text, sizeof n.text, "%+.3g", value);
  else if (!isnan(value))
    snprintf(n.text, sizeof n.text, "%+.*f", digits, value);
  return n;
}

static void p_cell(text_table *table, double p) {
  char text[TARN_RESULTS_P_TEXT];
  tarn_results_p(text, p);
  text_table_cell(table, "%s", *text ? text : "-");
}

void sequential_text_row(text_table *table, const char *name, const tarn_sequential_verdict *v,
                         const tarn_sequential_design *design, int digits, const char *words) {
  text_table_row(table);
  text_table_cell(table, "%s", name);
  text_table_cell(table, "%zu of %zu", v->looks, design->look_count);
  text_table_cell(table, "%lld", (long long)v->seeds);
  text_table_cell(table, "%s", signed_number(v->difference, digits).text);
  if (isnan(v->low))
    text_table_cell(table, "-");
  else
    text_table_cell(table, "[%s, %s]", signed_number(v->low, digits).text, signed_number(v->high, digits).text);
  p_cell(table, v->looks > 0 ? v->p : NAN);
  p_cell(table, v->looks > 0 ? v->p_equal : NAN);
  text_table_cell(table, "%s", words);
}
