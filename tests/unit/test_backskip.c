// Backskipping: the gradient that each method gives, what it is compared with, what its predictor learns, and what is
// left of the layer's backward pass.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "kernels/kernel_check.h"
#include "model/model.h"
#include "ops/hadamard.h"
#include "parts/backskip.h"

enum { D = 16, ROWS = 12, SENTENCES = 4, VOCAB = 19 };

static const int32_t offsets[SENTENCES + 1] = {0, 4, 5, 5, ROWS};

// A model and the kind of its layers R.
typedef struct spec {
  tarn_config *config;
  tarn__model *model;
  int64_t update;
  bool none;  // mixer none
} spec;

static void open_spec(spec *s, const char *encoder, const char *kind, tarn__dtype dtype, const char *more) {
  char text[1024];
  snprintf(text, sizeof text,
           "model: { d_model: %d, embeddings: none, max_length: 24, dropout: 0.2 }\nencoder: { layers: \"%s\" }\n"
           "decoder: { layers: \"L F L\" }\nkinds:\n  L: { heads: 2, ffn: 24 }\n  R: { ffn: 24, frozen: yes, %s }\n"
           "  F: { mixer: none, ffn: 24, frozen: yes }\n%s\n",
           D, encoder, kind, more);
  *s = (spec){.none = strstr(kind, "mixer: none") != NULL};
  check_ok(tarn_config_parse(&s->config, "backskip", text, strlen(text), NULL, 0));
  check_ok(tarn__model_open(&s->model, s->config, VOCAB, VOCAB, dtype, true));
  check_ok(tarn__model_allocate(s->model));
  check_ok(tarn__model_initialise(s->model, 5));
}

static void close_spec(spec *s) {
  tarn__model_close(&s->model);
  tarn_config_close(&s->config);
}

// The layers of the encoder between an input and an output.
static void build(check *c, tarn__graph *graph, const void *given) {
  const spec *s = given;
  graph->update = s->update;
  tarn__stream stream = {.x = check_input(c, graph, ROWS, D, 1.0, true)};
  tarn__block_run run = {.graph = graph,
                         .d_model = D,
                         .offsets = check_ints(c, graph, offsets, SENTENCES + 1),
                         .position = &s->config->model.positions,
                         .longest = 8};
  for (int i = 0; i < s->model->encoder.count; i++) {
    graph->label = s->model->encoder.layers[i].label;
    run.sums = s->model->encoder.layers[i].sums;
    tarn__layer_build(&run, s->model->encoder.layers[i].weights, &stream);
  }
  check_output(c, tarn__stream_finish(graph, &stream, &(tarn__norm_weights){0}));
}

static const char *const places[] = {"norm: pre, heads: 2", "norm: post, heads: 2", "norm: pre, mixer: none",
                                     "norm: post, mixer: none"};
enum { PLACES = sizeof places / sizeof *places };
static const char *const methods[] = {"identity", "feedback", "predictor"};

static void open_kind(spec *s, const char *encoder, const char *place, const char *method, int refresh,
                      const char *more) {
  char kind[160];
  snprintf(kind, sizeof kind, "%s, backskip: { method: %s, refresh: %d }%s", place, method, refresh, more);
  open_spec(s, encoder, kind, TARN__F64, "");
}

// Refreshing, the layers have their true gradients.
static void refreshes_are_true(void **state) {
  (void)state;
  for (int place = 0; place < PLACES; place++)
    for (int method = 0; method < 3; method++) {
      spec s;
      open_kind(&s, place % 2 ? "R R" : "R1 R1", places[place], methods[method], 3, "");
      s.update = 4;
      check_gradients(build, &s, places[place], 1e-6);
      close_spec(&s);
    }
}

static void identity_hands_it_on(void **state) {
  (void)state;
  for (int place = 0; place < PLACES; place++) {
    spec s;
    check c;
    open_kind(&s, "R R", places[place], "identity", 3, "");
    s.update = 3;
    check_open(&c);
    check_run(&c, build, &s, &tarn__device_reference, TARN__F64, true);
    assert_memory_equal(c.item[0].grad, c.output_weight[0], ROWS * D * sizeof(double));
    check_close(&c);
    close_spec(&s);
  }
}

// dy + dy Q / 2 by the dense matrix.
static void feedback_of(double *dx, const double *dy, const tarn__param *signs) {
  float sign[6 * D], q[D * D];
  tarn__hadamard_shape shape = tarn__hadamard_shape_signs(signs);
  for (int64_t i = 0; i < signs->rows * signs->cols; i++) sign[i] = (float)((const double *)signs->value)[i];
  check_ok(tarn__hadamard_dense(q, sign, &shape));
  for (int t = 0; t < ROWS; t++)
    for (int i = 0; i < D; i++) {
      dx[t * D + i] = dy[t * D + i];
      for (int k = 0; k < D; k++) dx[t * D + i] += 0.5 * dy[t * D + k] * (double)q[i * D + k];
    }
}

static void feedback_adds_a_random_image(void **state) {
  (void)state;
  for (int place = 0; place < PLACES; place++) {
    spec s;
    check c;
    double dx[ROWS * D];
    open_kind(&s, "R", places[place], "feedback", 0, "");
    s.update = 1;
    check_open(&c);
    check_run(&c, build, &s, &tarn__device_reference, TARN__F64, true);
    assert_int_equal(s.model->helper_count, 1);
    assert_false(s.model->helpers[0]->trained);
    feedback_of(dx, c.output_weight[0], s.model->helpers[0]);
    check_close_to(c.item[0].grad, dx, ROWS * D, 1e-6, places[place], "gradient", 0);
    check_close(&c);
    close_spec(&s);
  }
}

// The network in plain loops: y[t] = w x[t].
static double project(const tarn__param *w, const double *x, int t, int64_t out) {
  double sum = 0;
  for (int64_t i = 0; i < w->cols; i++) sum += ((const double *)w->value)[out * w->cols + i] * x[t * w->cols + i];
  return sum;
}

static double conv_at(const tarn__backskip_weights *w, const double *dy, int s, int t, int64_t c, int64_t width) {
  double sum = 0;
  for (int j = -1; j <= 1; j++)
    if (t + j >= offsets[s] && t + j < offsets[s + 1])
      sum += ((const double *)w->kernel->value)[(j + 1) * width + c] * project(w->down, dy, t + j, c);
  return sum;
}

static void predict(double *dx, const tarn__backskip_weights *w, const double *dy, const double *x, const double *z) {
  const int64_t width = tarn__backskip_width(D);
  for (int s = 0; s < SENTENCES; s++)
    for (int t = offsets[s]; t < offsets[s + 1]; t++) {
      double hidden[16];
      assert_int_equal(width, 16);
      for (int64_t c = 0; c < width; c++) {
        double gate =
            project(w->input, x, t, c) + ((const double *)w->input_bias->value)[c] + project(w->output, z, t, c);
        hidden[c] = conv_at(w, dy, s, t, c, width) / (1 + exp(-gate));
      }
      for (int i = 0; i < D; i++) dx[t * D + i] = dy[t * D + i] + project(w->head, hidden, 0, i);
    }
}

// The head begins at zero, so that the others' gradients would say nothing.
static void shake(const tarn__model *model) {
  tarn__random random;
  tarn__random_init(&random, 3, 1);
  for (size_t i = 0; i < model->helper_count; i++) {
    double *value = model->helpers[i]->value;
    for (int64_t k = 0; k < model->helpers[i]->rows * model->helpers[i]->cols; k++)
      value[k] = 0.4 * tarn__random_normal(&random);
  }
}

// z of parts/backskip.h from what can be seen outside.
static void last_branch(double *z, const spec *s, const check *c) {
  for (int i = 0; i < ROWS * D; i++) z[i] = c->output_value[0][i];
  if (s->config->kinds[1].norm == TARN_NORM_PRE)
    for (int i = 0; i < ROWS * D; i++) z[i] -= c->item[0].value[i];
}

static void open_predictor(spec *s, check *c, int place, int64_t update) {
  open_kind(s, "R", places[place], "predictor", 3, ", dropout: 0");
  shake(s->model);
  s->update = update;
  check_open(c);
  check_run(c, build, s, &tarn__device_reference, TARN__F64, true);
}

// In pre-norm with attention the last branch is not to be seen outside.
static void predictor_predicts(void **state) {
  (void)state;
  for (int place = 1; place < PLACES; place++) {
    spec s;
    check c;
    double z[ROWS * D], dx[ROWS * D];
    open_predictor(&s, &c, place, 2);
    last_branch(z, &s, &c);
    predict(dx, s.model->encoder.layers[0].weights->backskip, c.output_weight[0], c.item[0].value, z);
    check_close_to(c.item[0].grad, dx, ROWS * D, 1e-9, places[place], "gradient", 0);
    for (size_t i = 0; i < s.model->helper_count; i++) assert_false(s.model->helpers[i]->training.grad_written);
    check_close(&c);
    close_spec(&s);
  }
}

static void assert_sums(const tarn__stand_in_sums *sums, const double *approximation, const double *truth) {
  double dot = 0, aa = 0, bb = 0;
  for (int i = 0; i < ROWS * D; i++) {
    dot += approximation[i] * truth[i];
    aa += approximation[i] * approximation[i];
    bb += truth[i] * truth[i];
  }
  assert_true(aa > 0 && bb > 0);
  assert_true(fabs(sums->dot / sqrt(sums->approximation * sums->truth) - dot / sqrt(aa * bb)) < 1e-6);
  assert_true(fabs(sums->truth - bb) < 1e-9 * bb);
}

static void add_measured(const tarn__graph *graph) { check_ok(tarn__backskip_measured(graph)); }

static void compares_with_the_truth(void **state) {
  (void)state;
  for (int place = 1; place < PLACES; place++)
    for (int method = 0; method < 3; method++) {
      spec s;
      check c;
      double z[ROWS * D], dx[ROWS * D];
      open_kind(&s, "R", places[place], methods[method], 3, ", dropout: 0");
      if (method == 2) shake(s.model);
      s.update = 1;
      check_open(&c);
      c.after = add_measured;
      check_run(&c, build, &s, &tarn__device_reference, TARN__F64, true);
      last_branch(z, &s, &c);
      const double *dy = c.output_weight[0];
      memcpy(dx, dy, sizeof dx);
      if (method == 1) feedback_of(dx, dy, s.model->helpers[0]);
      if (method == 2) predict(dx, s.model->encoder.layers[0].weights->backskip, dy, c.item[0].value, z);
      assert_sums(s.model->encoder.layers[0].sums, dx, c.item[0].grad);
      check_close(&c);
      close_spec(&s);
    }
}

static double relative_error(const spec *s, const check *c, const double *z, const double *truth) {
  double dx[ROWS * D], error = 0, norm = 0;
  predict(dx, s->model->encoder.layers[0].weights->backskip, c->output_weight[0], c->item[0].value, z);
  for (int i = 0; i < ROWS * D; i++) {
    error += (dx[i] - truth[i]) * (dx[i] - truth[i]);
    norm += truth[i] * truth[i];
  }
  return error / norm;
}

// The predictor's gradients against finite differences of the plain loops.
static void predictor_learns(void **state) {
  (void)state;
  for (int place = 1; place < PLACES; place++) {
    spec s;
    check c;
    double z[ROWS * D];
    const double h = 1e-4;
    open_predictor(&s, &c, place, 4);
    last_branch(z, &s, &c);
    assert_int_equal(s.model->helper_count, 6);
    for (size_t p = 0; p < s.model->helper_count; p++) {
      tarn__param *param = s.model->helpers[p];
      assert_true(param->training.grad_written);
      for (int64_t i = 0; i < param->rows * param->cols; i += 5) {
        double *value = (double *)param->value + i, kept = *value, expected = 0;
        static const double at[4] = {1, -1, 2, -2}, weight[4] = {8, -8, -1, 1};
        for (int k = 0; k < 4; k++) {
          *value = kept + at[k] * h;
          expected += weight[k] * relative_error(&s, &c, z, c.item[0].grad) / (12 * h);
        }
        *value = kept;
        double found = ((const double *)param->training.grad)[i];
        if (fabs(found - expected) > 1e-8 + 1e-6 * fabs(expected))
          fail_msg("%s: %s: %g where %g was expected", places[place], param->name, found, expected);
      }
    }
    check_close(&c);
    close_spec(&s);
  }
}

// A whole model: the graph of one batch.
typedef struct whole {
  spec s;
  tarn__graph graph;
  tarn__tensor *loss;
  void *workspace;
  int32_t ids[3][ROWS], positions[ROWS];
  double scale;
} whole;

static void run_whole(whole *w, const char *kind, const char *encoder, tarn__dtype dtype, const char *recompute,
                      int64_t update) {
  char more[200];
  snprintf(more, sizeof more, "train: { recompute: %s }\n", recompute);
  *w = (whole){.scale = 0.1};
  open_spec(&w->s, encoder, kind, dtype, more);
  for (int r = 0; r < ROWS; r++)
    for (int k = 0; k < 3; k++) w->ids[k][r] = 3 + r * (5 + 2 * k) % (VOCAB - 3);
  tarn__packed_positions(w->positions, offsets, SENTENCES);
  tarn__packed source = {.sentences = SENTENCES, .rows = ROWS, .longest = 8, .ids = w->ids[0]};
  source.positions = w->positions;
  source.offsets = offsets;
  tarn__packed target = source;
  target.ids = w->ids[1];
  const tarn__device *device = dtype == TARN__F64 ? &tarn__device_reference : &tarn__device_cpu;
  tarn__graph_begin(&w->graph, device, dtype, true, 2);
  w->graph.update = update;
  const tarn__batch batch = {.source = source, .target = target, .predictions = target.rows, .targets = w->ids[2]};
  w->loss = tarn__model_build_loss(w->s.model, &w->graph, &batch, NULL, 0.1, w->scale, NULL);
  tarn__model_differentiate(w->s.model, &w->graph, w->loss);
  check_ok(tarn__graph_plan(&w->graph));
  w->workspace = check_alloc(w->graph.workspace_bytes, 1);
  memset(w->workspace, 0xFF, w->graph.workspace_bytes);
  tarn__graph_bind(&w->graph, w->workspace);
  tarn__exec exec = {.threads = 2, .seed = 9, .step = 3};
  check_ok(tarn__graph_run(&w->graph, &exec));
  check_ok(tarn__backskip_measured(&w->graph));
}

static void close_whole(whole *w) {
  tarn__graph_close(&w->graph);
  tarn__free(w->workspace);
  close_spec(&w->s);
}

static void assert_same_gradients(const whole *a, const whole *b, const char *name) {
  assert_memory_equal(a->loss->data, b->loss->data, 2 * sizeof(double));
  for (size_t p = 0; p < a->s.model->param_count; p++) {
    const tarn__param *x = a->s.model->params[p], *y = b->s.model->params[p];
    size_t size = x->dtype == TARN__F64 ? sizeof(double) : sizeof(float);
    assert_string_equal(x->name, y->name);
    if (x->trained && memcmp(x->training.grad, y->training.grad, (size_t)(x->rows * x->cols) * size) != 0)
      fail_msg("%s: the gradient of %s has other bits", name, x->name);
  }
}

static const char *const encoders[] = {"L R R L", "L R1 L R1 R1 L", "R L R"};
static const tarn__dtype dtypes[] = {TARN__F64, TARN__F32, TARN__BF16};
static const char *const recomputes[] = {"none", "cheap", "block"};

// Updates that refresh have the bits of a model without backskipping, with every way of recomputation.
static void refreshes_change_no_bit(void **state) {
  (void)state;
  for (int i = 0; i < 3 * 3 * 3 * 3 * 2; i++) {
    whole without, with;
    char kind[160];
    const char *place = places[i % 3], *encoder = encoders[i / 3 % 3], *method = methods[i / 9 % 3];
    tarn__dtype dtype = dtypes[i / 27 % 3];
    run_whole(&without, place, encoder, dtype, "none", 1);
    snprintf(kind, sizeof kind, "%s, backskip: { method: %s, refresh: %d }", place, method, i % 2 ? 1 : 5);
    run_whole(&with, kind, encoder, dtype, recomputes[i / 54], 1);
    assert_same_gradients(&without, &with, kind);
    assert_true(with.s.model->encoder.layers[2].sums == NULL || with.s.model->encoder.layers[2].sums->truth > 0);
    close_whole(&without);
    close_whole(&with);
  }
}

static void recomputation_changes_no_bit(void **state) {
  (void)state;
  for (int i = 0; i < 3 * 3 * 3 * 2; i++) {
    whole kept, again;
    char kind[160];
    snprintf(kind, sizeof kind, "%s, backskip: { method: %s, refresh: 5 }", places[i % 3], methods[i / 3 % 3]);
    run_whole(&kept, kind, encoders[i / 9 % 3], dtypes[1 + i % 2], "none", 2);
    run_whole(&again, kind, encoders[i / 9 % 3], dtypes[1 + i % 2], recomputes[1 + i / 27], 2);
    assert_same_gradients(&kept, &again, kind);
    close_whole(&kept);
    close_whole(&again);
  }
}

static int backward_nodes(const whole *w, const char *label) {
  int found = 0;
  for (size_t n = w->graph.forward_count; n < w->graph.node_count; n++)
    found += strcmp(w->graph.nodes[n]->label, label) == 0;
  return found;
}

static int forward_nodes(const whole *w, const char *label) {
  int found = 0;
  for (size_t n = 0; n < w->graph.forward_count; n++) found += strcmp(w->graph.nodes[n]->label, label) == 0;
  return found;
}

// Nodes of a layer that is skipped, by method: none, one transform and one sum, four of the predictor.
static void nothing_is_left_of_the_layer(void **state) {
  (void)state;
  static const int nodes[] = {0, 2, 4};
  for (int i = 0; i < 3 * 3 * 3; i++) {
    whole without, with;
    char kind[160];
    const char *place = places[i % 3];
    run_whole(&without, place, "L R R L", TARN__F32, recomputes[i / 9], 2);
    snprintf(kind, sizeof kind, "%s, backskip: { method: %s, refresh: 5 }", place, methods[i / 3 % 3]);
    run_whole(&with, kind, "L R R L", TARN__F32, recomputes[i / 9], 2);
    assert_true(backward_nodes(&without, "encoder 3 R") > 2);
    assert_true(forward_nodes(&with, "encoder 3 R") > 2);
    assert_int_equal(backward_nodes(&with, "encoder 2 R"), nodes[i / 3 % 3]);
    assert_int_equal(backward_nodes(&with, "encoder 3 R"), nodes[i / 3 % 3]);
    if (i < 3) assert_true(with.graph.activation_bytes < without.graph.activation_bytes);
    assert_memory_equal(with.loss->data, without.loss->data, 2 * sizeof(double));
    close_whole(&without);
    close_whole(&with);
  }
}

// Whatever the token mixer.
static void every_mixer_is_skipped(void **state) {
  (void)state;
  static const char *const mixers[] = {"light_conv", "dynamic_conv", "bigru"};
  for (int i = 0; i < 3 * 2; i++) {
    whole without, refreshed, skipped;
    char kind[160];
    snprintf(kind, sizeof kind, "mixer: %s, norm: %s", mixers[i / 2], i % 2 ? "pre" : "post");
    run_whole(&without, kind, "L R R L", TARN__F32, "none", 1);
    size_t used = strlen(kind);
    snprintf(kind + used, sizeof kind - used, ", backskip: { method: identity, refresh: 5 }");
    run_whole(&refreshed, kind, "L R R L", TARN__F32, "none", 1);
    run_whole(&skipped, kind, "L R R L", TARN__F32, "none", 2);
    assert_same_gradients(&without, &refreshed, kind);
    assert_true(backward_nodes(&without, "encoder 3 R") > 2);
    assert_int_equal(backward_nodes(&skipped, "encoder 3 R"), 0);
    assert_true(skipped.graph.activation_bytes < without.graph.activation_bytes);
    close_whole(&without);
    close_whole(&refreshed);
    close_whole(&skipped);
  }
}

// Nothing trained below: nothing to skip, nothing to compare.
static void at_the_bottom_nothing_is_done(void **state) {
  (void)state;
  spec s;
  tarn__graph graph = {0};
  static const double scale = 1.0;
  open_spec(&s, "R R L R L", "heads: 2, backskip: { method: predictor, refresh: 2 }", TARN__F32,
            "train: { recompute: none }");
  s.model->weights.source_table->trained = false;
  tarn__packed side = {.sentences = SENTENCES, .rows = ROWS, .longest = 8, .offsets = offsets};
  for (int64_t update = 1; update <= 2; update++) {
    int marks = 0;
    tarn__graph_begin(&graph, &tarn__device_cpu, TARN__F32, true, 1);
    graph.update = update;
    const tarn__batch batch = {.source = side, .target = side, .predictions = ROWS};
    tarn__tensor *loss = tarn__model_build_loss(s.model, &graph, &batch, NULL, 0.1, scale, NULL);
    tarn__model_differentiate(s.model, &graph, loss);
    check_ok(tarn__graph_plan(&graph));
    for (size_t n = 0; n < graph.node_count; n++) {
      if (strncmp(graph.nodes[n]->op->name, "backskip", 8) == 0) {
        marks++;
        assert_string_equal(graph.nodes[n]->label, "encoder 4 R");
      }
      if (n >= graph.forward_count) assert_string_not_equal(graph.nodes[n]->label, "encoder 2 R");
    }
    assert_int_equal(marks, update == 1 ? 2 : 1);
  }
  tarn__graph_close(&graph);
  close_spec(&s);
}

// A model that only translates has none of it.
static void only_training_has_helpers(void **state) {
  (void)state;
  spec s;
  tarn__model *model;
  open_spec(&s, "L R1 L R1", "backskip: { method: predictor }", TARN__F32, "");
  assert_int_equal(s.model->helper_count, 6);
  check_ok(tarn__model_open(&model, s.config, VOCAB, VOCAB, TARN__F32, false));
  assert_int_equal(model->helper_count, 0);
  assert_int_equal(model->param_count, s.model->param_count);
  tarn__model_close(&model);
  close_spec(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(refreshes_are_true),
                                     cmocka_unit_test(identity_hands_it_on),
                                     cmocka_unit_test(feedback_adds_a_random_image),
                                     cmocka_unit_test(predictor_predicts),
                                     cmocka_unit_test(compares_with_the_truth),
                                     cmocka_unit_test(predictor_learns),
                                     cmocka_unit_test(refreshes_change_no_bit),
                                     cmocka_unit_test(recomputation_changes_no_bit),
                                     cmocka_unit_test(nothing_is_left_of_the_layer),
                                     cmocka_unit_test(every_mixer_is_skipped),
                                     cmocka_unit_test(at_the_bottom_nothing_is_done),
                                     cmocka_unit_test(only_training_has_helpers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
