// Checks of tangents (graph/tangents.h), on the models that kernel_check.h describes by a build function: every
// check_input() that wants a gradient moves, in TANGENT_DIRECTIONS random directions, and J v is wanted of every
// check_output().
//
//   check_tangents(build, spec, "linear 17 x 24");                 // reference in double: differences, gradient rules
//   check_tangent_kernels(build, spec, "linear 17 x 24", 1e-5);    // fast kernels in F32 against it, bits recorded
//
// An op whose gradient is not the true one, on purpose, or that has none is checked by check_tangents_alone(). Include
// it after cmocka.h.
#ifndef TARN_TESTS_TANGENT_CHECK_H
#define TARN_TESTS_TANGENT_CHECK_H

#include "graph/tangents.h"
#include "kernels/kernel_check.h"

enum { TANGENT_DIRECTIONS = 3 };

typedef struct tangent_check {
  check c;
  double *direction[CHECK_MAX];  // of item i [directions * rows, cols]; NULL: it does not move
  void *data[CHECK_MAX];         // the same in the dtype of the run
  double *found[CHECK_MAX];      // J v of output k [directions * rows, cols]; zeros where it does not move
  size_t size[CHECK_MAX];        // of found
} tangent_check;

static inline void tangent_close(tangent_check *t) {
  for (int i = 0; i < CHECK_MAX; i++) {
    tarn__free(t->direction[i]);
    check_shared_free(t->data[i]);
    tarn__free(t->found[i]);
  }
  check_close(&t->c);
}

static inline bool tangent_moves(const check_item *item) { return item->kind == CHECK_INPUT && item->wants_grad; }

// Gives input `i` its directions, the same ones in every run.
static inline void tangent_seed(tangent_check *t, tarn__graph *graph, int i) {
  check_item *item = &t->c.item[i];
  const size_t n = (size_t)(TANGENT_DIRECTIONS * item->rows * item->cols);
  if (!t->direction[i]) {
    t->direction[i] = check_alloc(n, sizeof(double));
    t->data[i] = check_shared(n * sizeof(double));
    for (size_t e = 0; e < n; e++)
      t->direction[i][e] = tarn__bf16_to_f32(tarn__bf16_from_f32((float)tarn__random_normal(&t->c.random)));
  }
  for (size_t e = 0; e < n; e++) check_store(t->data[i], graph->dtype, e, t->direction[i][e]);
  item->tensor->tangent = tarn__graph_external(graph, graph->dtype, TANGENT_DIRECTIONS * item->rows, item->cols,
                                               t->data[i], "check directions");
}

static inline void tangent_read(tangent_check *t, int k) {
  const tarn__tensor *y = t->c.output[k];
  const size_t n = t->size[k] = (size_t)(TANGENT_DIRECTIONS * y->rows * y->cols);
  if (!t->found[k]) t->found[k] = check_alloc(n, sizeof(double));
  for (size_t e = 0; e < n; e++) t->found[k][e] = y->tangent ? check_load(y->tangent->data, y->tangent->dtype, e) : 0.0;
}

// Builds, pushes, plans and runs the model; J v is in found[].
static inline void tangent_run(tangent_check *t, check_build build, const void *spec, const tarn__device *device,
                               tarn__dtype dtype, bool training) {
  tarn__graph graph = {0};
  check *c = &t->c;
  c->next = c->outputs = 0;
  c->dtype = dtype;
  tarn__graph_begin(&graph, device, dtype, training, CHECK_THREADS);
  build(c, &graph, spec);
  int moving = 0, moved = 0;
  for (int i = 0; i < c->items; i++)
    if (tangent_moves(&c->item[i])) tangent_seed(t, &graph, i), moving++;
  if (moving == 0) fail_msg("nothing in it moves");
  tarn__graph_push(&graph, TANGENT_DIRECTIONS);
  for (int k = 0; k < c->outputs; k++)
    if (c->output[k]->tangent) c->output[k]->tangent->keep = true, moved++;
  check_ok(tarn__graph_plan(&graph));
  if (moved == 0) fail_msg("no output moves");
  uint8_t *workspace = check_shared(graph.workspace_bytes);
  memset(workspace, 0xFF, graph.workspace_bytes);
  tarn__graph_bind(&graph, workspace);
  tarn__exec exec = {.threads = CHECK_THREADS, .spread = true, .seed = 7, .step = 3};
  for (int run = 0; run < 2; run++) check_ok(tarn__graph_run(&graph, &exec));  // a graph may be run again
  check_ok(tarn__device_synchronise(check_device()));
  for (int k = 0; k < c->outputs; k++) tangent_read(t, k);
  for (int i = 0; i < c->items; i++) c->item[i].tensor = NULL;
  check_shared_free(workspace);
  tarn__graph_close(&graph);
}

static inline void tangent_step(tangent_check *t, int direction, double by) {
  for (int i = 0; i < t->c.items; i++) {
    check_item *item = &t->c.item[i];
    const size_t n = (size_t)(item->rows * item->cols);
    for (size_t e = 0; t->direction[i] && e < n; e++) item->value[e] += by * t->direction[i][(size_t)direction * n + e];
  }
}

// J v against 4-point central differences along v.
static inline void tangent_differences(tangent_check *t, check_build build, const void *spec, const char *name,
                                       bool training, double tolerance) {
  enum { POINTS = 4 };
  static const double at[POINTS] = {1.0, -1.0, 2.0, -2.0}, weight[POINTS] = {8.0, -8.0, -1.0, 1.0};
  const double h = 1e-5;
  check *c = &t->c;
  for (int direction = 0; direction < TANGENT_DIRECTIONS; direction++) {
    double *expected[CHECK_MAX] = {NULL}, *kept[CHECK_MAX] = {NULL};
    for (int i = 0; i < c->items; i++) {
      const size_t n = (size_t)(c->item[i].rows * c->item[i].cols);
      kept[i] = check_alloc(n, sizeof(double));
      memcpy(kept[i], c->item[i].value, n * sizeof(double));
    }
    for (int p = 0; p < POINTS; p++) {
      tangent_step(t, direction, at[p] * h);
      check_run(c, build, spec, &tarn__device_reference, TARN__F64, training);
      for (int k = 0; k < c->outputs; k++) {
        if (!expected[k]) expected[k] = check_alloc(c->output_size[k], sizeof(double));
        for (size_t e = 0; e < c->output_size[k]; e++) expected[k][e] += weight[p] * c->output_value[k][e] / (12.0 * h);
      }
      for (int i = 0; i < c->items; i++)
        memcpy(c->item[i].value, kept[i], (size_t)(c->item[i].rows * c->item[i].cols) * sizeof(double));
    }
    for (int k = 0; k < c->outputs; k++) {
      check_close_to(t->found[k] + (size_t)direction * c->output_size[k], expected[k], c->output_size[k], tolerance,
                     name, "tangent of output", k);
      tarn__free(expected[k]);
    }
    for (int i = 0; i < c->items; i++) tarn__free(kept[i]);
  }
}

// (w, J v) = (J' w, v), w the random weights of outputs in the loss.
static inline void tangent_gradients(tangent_check *t, check_build build, const void *spec, const char *name,
                                     double tolerance) {
  check *c = &t->c;
  check_run(c, build, spec, &tarn__device_reference, TARN__F64, true);
  for (int direction = 0; direction < TANGENT_DIRECTIONS; direction++) {
    double forward = 0.0, backward = 0.0, size = 0.0;
    for (int k = 0; k < c->outputs; k++)
      for (size_t e = 0; e < c->output_size[k]; e++) {
        const double term = c->output_weight[k][e] * t->found[k][(size_t)direction * c->output_size[k] + e];
        forward += term;
        size += fabs(term);
      }
    for (int i = 0; i < c->items; i++) {
      const size_t n = (size_t)(c->item[i].rows * c->item[i].cols);
      for (size_t e = 0; t->direction[i] && e < n; e++)
        backward += c->item[i].grad[e] * t->direction[i][(size_t)direction * n + e];
    }
    if (!(fabs(forward - backward) <= tolerance * size))
      fail_msg("%s: direction %d: (w, J v) is %.15g, (J' w, v) is %.15g", name, direction, forward, backward);
  }
}

// The rules of tangents, on the reference; not when another device is under test.
static inline void check_tangents_alone(check_build build, const void *spec, const char *name) {
  if (check_device() != &tarn__device_cpu) return;
  tangent_check t = {0};
  check_open(&t.c);
  tangent_run(&t, build, spec, &tarn__device_reference, TARN__F64, false);
  tangent_differences(&t, build, spec, name, false, 1e-7);
  tangent_close(&t);
}

// Without and with dropout, which training has.
static inline void check_tangents(check_build build, const void *spec, const char *name) {
  tangent_check t = {0};
  if (check_device() != &tarn__device_cpu) return;
  check_tangents_alone(build, spec, name);
  check_open(&t.c);
  tangent_run(&t, build, spec, &tarn__device_reference, TARN__F64, true);
  tangent_gradients(&t, build, spec, name, 1e-10);
  tangent_differences(&t, build, spec, name, true, 1e-7);
  tangent_close(&t);
}

static inline void tangent_same(const tangent_check *tried, const tangent_check *exact, double tolerance,
                                const char *name) {
  for (int k = 0; k < exact->c.outputs; k++)
    check_close_to(tried->found[k], exact->found[k], exact->size[k], tolerance, name, "tangent of output", k);
}

// The reference in float and the fast kernels in F32 against the reference in double, in one mode.
static inline void check_tangent_kernels_mode(check_build build, const void *spec, const char *name, bool training,
                                              double tolerance) {
  if (check_elsewhere()) return;
  tangent_check exact = {0}, tried = {0};
  char text[160];
  check_open(&exact.c);
  check_open(&tried.c);
  tangent_run(&tried, build, spec, check_device(), TARN__F32, training);
  const bool on_record = check_device() == &tarn__device_cpu;
  for (int k = 0; on_record && k < tried.c.outputs; k++) bits_add(tried.found[k], tried.size[k]);
  if (on_record) bits_trace("f32");
  if (!check_proven()) {
    tangent_run(&exact, build, spec, &tarn__device_reference, TARN__F64, training);
    snprintf(text, sizeof text, "%s, %s f32", name, check_device()->name);
    tangent_same(&tried, &exact, tolerance, text);
    if (on_record) tangent_run(&tried, build, spec, &tarn__device_reference, TARN__F32, training);
    snprintf(text, sizeof text, "%s, reference f32", name);
    tangent_same(&tried, &exact, tolerance, text);
  }
  tangent_close(&exact);
  tangent_close(&tried);
}

static inline void check_tangent_kernels(check_build build, const void *spec, const char *name, double tolerance) {
  check_tangent_kernels_mode(build, spec, name, false, tolerance);
  check_tangent_kernels_mode(build, spec, name, true, tolerance);
}

#endif
