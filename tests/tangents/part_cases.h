// What the ops of parts are built of in the tests of tangents, of rules and of kernels. Include it after cmocka.h.
#ifndef TARN_TESTS_PART_CASES_H
#define TARN_TESTS_PART_CASES_H

#include <math.h>

#include "kernels/hadamard_check.h"
#include "kernels/recurrence_check.h"
#include "kernels/synthesis_check.h"
#include "ops/fourier.h"
#include "ops/grouped.h"
#include "ops/linear_transposed.h"
#include "ops/product_keys.h"
#include "ops/route.h"
#include "ops/sentence_product.h"
#include "ops/token_linear.h"
#include "ops/weighted_rows.h"
#include "tangents/tangent_check.h"

enum { ROWS = 9, SENTENCES = 4, D = 6 };
static const int32_t sentence_ends[] = {0, 5, 6, 6, 9};

static inline tarn__tensor *places(check *c, tarn__graph *graph) {
  return check_ints(c, graph, sentence_ends, SENTENCES + 1);
}

// Ops that are linear in all that moves, one behind the other.
static inline void build_linear_ops(check *c, tarn__graph *graph, const void *spec) {
  static const int32_t positions[ROWS] = {0, 1, 2, 3, 40, 0, 0, 1, 1000}, chosen[] = {5, 0, 5, 8};
  const bool relu = *(const bool *)spec;
  tarn__tensor *x = check_input(c, graph, ROWS, D, 1.0, true), *at = places(c, graph);
  tarn__tensor *rows = check_ints(c, graph, positions, ROWS), *few = check_ints(c, graph, chosen, 4);
  tarn__tensor *y = tarn__pooling(graph, x, at, (tarn__pooling_spec){3, 1});
  y = tarn__channel_conv(graph, y, at, check_param(c, 1, 3 * D, 0.5, true), (tarn__taps){3, 2});
  tarn__tensor *near = tarn__neighbours(graph, y, at, (tarn__taps){2, 0});
  check_output(c, tarn__widen(graph, near, y, 2 * D));
  check_output(c, tarn__widen(graph, NULL, y, D + 1));
  y = tarn__rotary(graph, y, rows, (tarn__rotary_spec){.column = 1, .heads = 1, .width = 4, .rotated = 4, .base = 1e4});
  y = tarn__fourier(graph, y, at, 5);
  check_output(c, y);
  // One after the other: compilers differ in the order of arguments.
  tarn__param *bias = check_param(c, 1, 5, 0.5, false), *signs = check_signs(c, 5, D, 1);
  y = tarn__hadamard(graph, y, signs, bias, relu ? TARN__RELU : TARN__GELU);
  check_output(c, tarn__tanh(graph, y));
  y = tarn__linear_transposed(graph, y, check_param(c, 5, D, 0.5, true));
  check_output(c, tarn__sentence_mean(graph, y, at));
  check_output(c, tarn__select_rows(graph, y, few));
}

typedef struct products {
  tarn__sentence_spec spec;
  bool a_moves, x_moves;
} products;

static inline void build_products(check *c, tarn__graph *graph, const void *spec) {
  const products *p = spec;
  tarn__tensor *a = check_input(c, graph, ROWS, 4, 1.0, p->a_moves);
  tarn__tensor *x = check_input(c, graph, ROWS, p->spec.column + D + 1, 1.0, p->x_moves), *at = places(c, graph);
  tarn__sentence_spec later = p->spec;
  later.column = 0;
  tarn__tensor *z = tarn__sentence_outer(graph, a, x, at, p->spec);
  check_output(c, z);
  check_output(c, tarn__sentence_product(graph, a, z, at, later));
}

typedef struct tokens {
  tarn__token_spec spec;
  bool gate, added, x_moves, gate_moves, added_moves;
} tokens;

static inline void build_tokens(check *c, tarn__graph *graph, const void *spec) {
  enum { HIDDEN = 4, TOKENS = 7 };
  const tokens *t = spec;
  const bool in = t->spec.form == TARN__TOKENS_IN, out = t->spec.form == TARN__TOKENS_OUT;
  tarn__tensor *x = check_input(c, graph, out ? SENTENCES * HIDDEN : ROWS, D, 1.0, t->x_moves), *at = places(c, graph);
  tarn__param *weight = check_param(c, in ? HIDDEN : TOKENS, out ? HIDDEN : TOKENS, 0.5, true);
  tarn__param *bias = check_param(c, 1, in ? HIDDEN : TOKENS, 0.5, true);
  tarn__token_gate with = {0};
  if (t->gate) with.gate = check_input(c, graph, ROWS, D, 1.0, t->gate_moves);
  if (t->added) with.added = check_input(c, graph, ROWS, D, 1.0, t->added_moves);
  check_output(c, tarn__token_linear(graph, x, at, weight, bias, with, t->spec));
}

typedef struct conv {
  int64_t width, before;
  double dropout;
  bool dynamic, x_moves, logits_move;
} conv;

static inline void build_conv(check *c, tarn__graph *graph, const void *spec) {
  enum { HEADS = 2 };
  const conv *s = spec;
  tarn__tensor *x = check_input(c, graph, ROWS, D, 1.0, s->x_moves);
  tarn__tensor *logits = s->dynamic ? check_input(c, graph, ROWS, HEADS * s->width, 1.0, s->logits_move)
                                    : tarn__graph_param(graph, check_param(c, 1, HEADS * s->width, 1.0, true));
  const tarn__conv_spec form = {.heads = HEADS, .width = s->width, .before = s->before};
  check_output(c, tarn__depthwise_conv(graph, x, logits, places(c, graph), form, s->dropout));
}

typedef struct variant {
  const char *name;
  tarn__route_spec route;
  tarn__activation activation;
} variant;

static const variant variants[] = {
    {"top-1", {.choices = 1, .capacity = INFINITY, .share = 1}, TARN__RELU},
    {"top-2", {.choices = 2, .normalise = 1, .capacity = INFINITY, .share = 1}, TARN__GELU},
    {"top-3 with noise", {.choices = 3, .normalise = 1, .capacity = INFINITY, .noise = 0.3}, TARN__SWISH},
    {"top-2 with little room", {.choices = 2, .normalise = 1, .capacity = 0.6}, TARN__IDENTITY},
    {"top-1 with little room", {.choices = 1, .capacity = 0.7}, TARN__RELU},
};

static inline void build_experts(check *c, tarn__graph *graph, const void *spec) {
  enum { EXPERTS = 4, WIDTH = 5 };
  const variant *v = spec;
  tarn__tensor *x = check_input(c, graph, 13, D, 1.0, true);
  tarn__param *router = check_param(c, EXPERTS, D, 1.0, true);
  tarn__param *in = check_param(c, EXPERTS * WIDTH, D, 0.6, true);
  tarn__param *in_bias = check_param(c, 1, EXPERTS * WIDTH, 0.5, true);
  tarn__param *out = check_param(c, EXPERTS * D, WIDTH, 0.6, false);
  in->out = WIDTH;
  out->out = D;
  const tarn__routed routed = tarn__route(graph, x, router, v->route);
  tarn__tensor *rows = tarn__gather_rows(graph, x, &routed);
  rows = tarn__grouped_linear(graph, rows, routed.offsets, in, in_bias, v->activation);
  rows = tarn__grouped_linear(graph, rows, routed.offsets, out, NULL, TARN__IDENTITY);
  check_output(c, tarn__weighted_rows(graph, rows, routed.places, routed.gates));
}

// Rows of a table that is a parameter, whose numbers and gates are those of the nearest keys.
static inline void build_memory(check *c, tarn__graph *graph, const void *spec) {
  enum { HEADS = 2, KEYS = 5, WIDTH = 3 };
  tarn__tensor *queries = check_input(c, graph, ROWS, 2 * HEADS * WIDTH, 1.0, true);
  tarn__param *keys = check_param(c, 2 * HEADS * KEYS, WIDTH, 1.0, true);
  keys->out = KEYS;
  const tarn__nearest nearest = tarn__product_keys(graph, queries, keys, *(const tarn__product_keys_spec *)spec);
  tarn__param *table = check_param(c, KEYS * KEYS, D, 1.0, true);
  check_output(c, nearest.gates);
  check_output(c, tarn__weighted_rows(graph, tarn__graph_param(graph, table), nearest.ids, nearest.gates));
}

// States that move at the beginning of sentences, with or without the input: gradients end there.
typedef struct window {
  tarn__recurrence_spec spec;
  bool x_moves;
} window;

static inline void build_window(check *c, tarn__graph *graph, const void *spec) {
  const window *w = spec;
  const int64_t n = w->spec.hidden, width = tarn__recurrence_cache_width(w->spec.cell, n);
  const int64_t gates = w->spec.cell == TARN__CELL_GRU ? 3 : w->spec.cell == TARN__CELL_LSTM ? 4 : 1;
  tarn__tensor *x = check_input(c, graph, ROWS, gates * n, 1.0, w->x_moves);
  tarn__tensor *start = check_input(c, graph, SENTENCES + 1, width, 0.6, true);
  tarn__tensor *end = check_input(c, graph, SENTENCES + 1, width, 0.6, false), *at = places(c, graph);
  const tarn__recurrent weights = {.weight = check_param(c, gates * n, n, 0.4, true),
                                   .bias = check_param(c, 1, gates * n, 0.5, true)};
  check_output(c, tarn__recurrence_carried(graph, x, at, weights, w->spec, start, end));
}

static const int32_t words[] = {3, 0, 6, 2, 2, 5, 1, 0, 4};

static inline void build_output_loss(check *c, tarn__graph *graph, const void *spec) {
  tarn__tensor *x = check_input(c, graph, ROWS, D, 1.0, true);
  tarn__param *table = check_param(c, 7, D, 0.7, true), *bias = check_param(c, 1, 7, 0.5, true);
  tarn__tensor *targets = check_ints(c, graph, words, ROWS);
  check_output(c, tarn__output_loss(graph, x, table, bias, targets, *(const double *)spec, 1.0));
  check_output(c, tarn__output_token_loss(graph, x, table, NULL, targets));
  check_output(c, tarn__output_log_probabilities(graph, x, table, bias));
}

static inline void build_squares(check *c, tarn__graph *graph, const void *spec) {
  (void)spec;
  static const float values[] = {0.5f, -2.0f, 3.0f};
  int32_t bits[3];
  memcpy(bits, values, sizeof bits);
  tarn__tensor *x = check_input(c, graph, 3, D, 1.0, true), *numbers;
  tarn__param *weight = check_param(c, 1, D, 0.5, true), *bias = check_param(c, 1, 1, 0.5, true);
  check_output(c, tarn__squared_error(graph, x, weight, bias, check_ints(c, graph, bits, 3), 1.0, &numbers));
  check_output(c, numbers);
}

#endif
