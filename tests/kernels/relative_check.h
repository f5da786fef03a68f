// A graph of attention with relative keys and values, for kernel_check.h.
#ifndef TARN_TESTS_RELATIVE_CHECK_H
#define TARN_TESTS_RELATIVE_CHECK_H

#include "kernels/attention_check.h"

typedef struct relative_shape {
  attention_shape shape;  // self
  int kv_heads;
  int64_t reach;
  bool apart;     // queries are a tensor of their own
  bool keys;      // relative keys alone
  bool frozen;    // the tables are
  int64_t spare;  // columns that are nobody's
  int uses;       // 2: both results count, so that gradients add up
} relative_shape;

// Small ones, forms 0 to 7, in which one thing each is otherwise.
static inline relative_shape relative_small(int form) {
  return (relative_shape){.shape = {.d = 12,
                                    .heads = 3,
                                    .sequences = 5,
                                    .queries = {3, 0, 1, 5, 2},
                                    .self = true,
                                    .causal = form % 2,
                                    .query_grad = form != 6,
                                    .key_grad = form != 4,
                                    .dropout = form == 3 ? 0.4 : 0.0},
                          .kv_heads = form / 4 ? 1 : 3,
                          .reach = form == 5 ? 7 : 2,
                          .apart = form / 4,
                          .keys = form == 2,
                          .frozen = form == 7,
                          .spare = form == 1 ? 4 : 0,
                          .uses = form == 0 ? 2 : 1};
}

static inline void relative_build(check *c, tarn__graph *graph, const void *spec) {
  const relative_shape *e = spec;
  const attention_shape *s = &e->shape;
  int32_t offsets[ATTENTION_SEQUENCES + 1], longest = 0;
  const int64_t rows = attention_offsets(offsets, s->queries, s->sequences, &longest), width = s->d / s->heads;
  const int64_t kv = width * e->kv_heads, q = e->apart ? 0 : s->d + e->spare;
  tarn__tensor *queries =
      check_input(c, graph, rows, e->apart ? s->d + e->spare : q + 2 * (kv + e->spare), 1.0, s->query_grad);
  tarn__tensor *keys = e->apart ? check_input(c, graph, rows, 2 * (kv + e->spare), 1.0, s->key_grad) : queries;
  tarn__relative relative = {.keys = check_param(c, 2 * e->reach + 1, width, 1.0, !e->frozen)};
  if (!e->keys) relative.values = check_param(c, 2 * e->reach + 1, width, 1.0, !e->frozen);
  tarn__tensor *at = check_ints(c, graph, offsets, s->sequences + 1);
  tarn__attention_spec attention = {.heads = s->heads,
                                    .d = s->d,
                                    .key_column = q,
                                    .value_column = q + kv + e->spare,
                                    .causal = s->causal,
                                    .longest = longest,
                                    .dropout = s->dropout};
  const tarn__attention_extras extras = {.kv_heads = e->kv_heads, .relative = relative};
  check_output(c, tarn__attention_with(graph, queries, keys, at, at, attention, extras));
  if (e->uses < 2) return;
  attention.causal = !s->causal;
  check_output(c, tarn__attention_with(graph, queries, keys, at, at, attention, extras));
}

#endif
