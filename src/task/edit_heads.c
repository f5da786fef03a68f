#include "task/edit_heads.h"

#include <math.h>

#include "ops/fold.h"

tarn_status tarn__edit_heads_declare(const tarn__task_site *site, tarn__task_weights *weights) {
  tarn__declare *declare = site->declare;
  const int64_t d = declare->d_model;
  const tarn__init one = {TARN__INIT_NORMAL, 1.0 / sqrt((double)d), 1};
  const tarn__init two = {TARN__INIT_NORMAL, 1.0 / sqrt(2.0 * (double)d), 1};
  weights->deletion = tarn__declare_param(declare, "deletion.weight", 2, d, true, one);
  weights->placeholders =
      tarn__declare_param(declare, "placeholders.weight", site->levenshtein->max_placeholders + 1, 2 * d, true, two);
  return declare->status;
}

int64_t tarn__edit_inner_rows(int32_t *list, const int32_t *offsets, int64_t sentences) {
  int64_t count = 0;
  for (int64_t s = 0; s < sentences; s++)
    for (int32_t r = offsets[s] + 1; r + 1 < offsets[s + 1]; r++) list[count++] = r;
  return count;
}

int64_t tarn__edit_pair_rows(int32_t *list, const int32_t *offsets, int64_t sentences) {
  int64_t count = 0;
  for (int64_t s = 0; s < sentences; s++)
    for (int32_t r = offsets[s]; r + 1 < offsets[s + 1]; r++) {
      list[count++] = r;
      list[count++] = r + 1;
    }
  return count;
}

tarn__tensor *tarn__deletion_input(tarn__graph *graph, tarn__tensor *states, tarn__tensor *rows) {
  graph->label = "output";
  return tarn__select_rows(graph, states, rows);
}

tarn__tensor *tarn__placeholder_input(tarn__graph *graph, tarn__tensor *states, tarn__tensor *rows) {
  graph->label = "output";
  return tarn__fold(graph, tarn__select_rows(graph, states, rows));
}
