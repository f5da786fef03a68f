// Classifiers and regression models of text and of images against PyTorch's (make_classifier.py, make_vision.py): loss,
// every gradient, and the answers, with the fast kernels in fp32 and bf16, the reference kernels in float and double,
// and on the shadow device. Gradients in double are compared with sums of PyTorch's (golden_parameters.h), all others
// with those in double.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/threads.h"
#include "data/image_cut.h"
#include "device/devices.h"
#include "golden/golden_parameters.h"
#include "model/model.h"
#include "shadow_device.h"
#include "task/labelled.h"
#include "text/patches.h"

// How far a gradient may be from PyTorch's: the largest difference over the largest element, in double of the sums, or
// for bf16 the norm of the difference over the norm; the same of answers, and the loss relative.
typedef struct way {
  const char *name;
  const tarn__device *device;
  tarn__dtype dtype;
  double loss, gradient;
  bool by_norm;
} way;

static const way ways[] = {
    {"reference fp64", &tarn__device_reference, TARN__F64, 1e-12, 1e-11, false},
    {"fast fp32", &tarn__device_cpu, TARN__F32, 1e-6, 1e-4, false},
    {"shadow fp32", &shadow_device, TARN__F32, 1e-6, 1e-4, false},
    {"reference fp32", &tarn__device_reference, TARN__F32, 1e-6, 1e-4, false},
    {"fast bf16", &tarn__device_cpu, TARN__BF16, 2e-2, 0.2, true},
};
static const char *const cases[] = {"classifier_cls",    "classifier_mean",   "classifier_last",
                                    "classifier_number", "classifier_funnel", "classifier_funnel_mean",
                                    "vision_cls",        "vision_mean"};
enum { WAYS = sizeof ways / sizeof *ways, CASES = sizeof cases / sizeof *cases, ROWS = 64, SENTENCES = 6 };
enum { PATCH = 27, IMAGE = 162 };  // the most bytes of a patch and of an image

// The batch of a file, as the task's batcher would make it.
typedef struct made {
  int32_t positions[ROWS], segments[ROWS], selected[SENTENCES], ids[ROWS], offsets[SENTENCES + 1];
  int32_t pixels[ROWS * PATCH / 4 + 1];
  tarn__batch batch;
} made;

// The same of images, whose rows are cut here.
static void make_images(made *m, const tarn__safetensors *file, const tarn_config *config) {
  const tarn_config_image *image = &config->image;
  const tarn__image_size size = {(int32_t)image->height, (int32_t)image->width, (int32_t)image->channels};
  const int64_t bytes = tarn__image_bytes(size), first = config->head.pool == TARN_POOL_CLS;
  const int64_t rows = tarn__image_patches(size, (int32_t)image->patch) + first;
  const int64_t patch = tarn__patch_bytes(size, (int32_t)image->patch);
  const int32_t *from = need(file, "batch", "images")->data;
  assert_true(bytes <= IMAGE && patch <= PATCH && rows * SENTENCES <= ROWS && config->model.max_length == rows);
  memset(m->pixels, 0, sizeof m->pixels);
  for (int s = 0; s < SENTENCES; s++) {
    uint8_t pixels[IMAGE];
    for (int64_t i = 0; i < bytes; i++) pixels[i] = (uint8_t)from[s * bytes + i];
    tarn__image_cut((uint8_t *)m->pixels + (s * rows + first) * patch, pixels, size, (int32_t)image->patch);
    m->offsets[s + 1] = (int32_t)((s + 1) * rows);
  }
  for (int64_t r = 0; r < SENTENCES * rows; r++) m->ids[r] = first && r % rows == 0 ? TARN__PATCH_CLS : TARN__PATCH;
  tarn__packed_positions(m->positions, m->offsets, SENTENCES);
  tarn__pooled_rows(m->selected, m->offsets, SENTENCES, config->head.pool);
  m->batch = (tarn__batch){.source = {.sentences = SENTENCES},
                           .target = {.sentences = SENTENCES,
                                      .rows = SENTENCES * rows,
                                      .longest = rows,
                                      .ids = m->ids,
                                      .positions = m->positions,
                                      .offsets = m->offsets,
                                      .pixels = m->pixels},
                           .predictions = SENTENCES,
                           .selected = m->selected,
                           .targets = need(file, "batch", "labels")->data};
}

static void make_batch(made *m, const tarn__safetensors *file, const tarn_config *config) {
  if (find(file, "batch", "images")) {
    make_images(m, file, config);
    return;
  }
  const int32_t *offsets = need(file, "batch", "offsets")->data, *second = need(file, "batch", "second")->data;
  const tarn__stored *labels = find(file, "batch", "labels"), *numbers = find(file, "batch", "numbers");
  assert_int_equal(need(file, "batch", "offsets")->shape[0], SENTENCES + 1);
  assert_true(offsets[SENTENCES] <= ROWS);
  tarn__packed_positions(m->positions, offsets, SENTENCES);
  tarn__pooled_rows(m->selected, offsets, SENTENCES, config->head.pool);
  for (int s = 0; s < SENTENCES; s++)
    for (int32_t r = offsets[s]; r < offsets[s + 1]; r++) m->segments[r] = r - offsets[s] >= second[s];
  m->batch = (tarn__batch){.source = {.sentences = SENTENCES},
                           .target = {.sentences = SENTENCES,
                                      .rows = offsets[SENTENCES],
                                      .longest = 14,
                                      .ids = need(file, "batch", "ids")->data,
                                      .positions = m->positions,
                                      .offsets = offsets,
                                      .segments = config->model.segments ? m->segments : NULL},
                           .predictions = SENTENCES,
                           .selected = m->selected,
                           .targets = labels ? labels->data : NULL,
                           .values = numbers ? numbers->data : NULL};
}

// The largest difference over the largest element, or the norms.
static double distance(const void *found, tarn__dtype dtype, const double *wanted, int64_t count, bool by_norm) {
  double worst = 0, largest = 0, square = 0, difference = 0;
  for (int64_t i = 0; i < count; i++) {
    const double f = dtype == TARN__F64 ? ((const double *)found)[i] : (double)((const float *)found)[i];
    const double w = wanted[i], d = f - w;
    worst = golden_worse(worst, d);
    largest = golden_worse(largest, w);
    difference += d * d;
    square += w * w;
  }
  return by_norm ? sqrt(difference / square) : worst / largest;
}

static golden_parameters list;
static golden_exact exact;

static void check_gradients(const tarn__model *model, const way *w) {
  for (size_t i = 0; i < model->param_count; i++) {
    const tarn__param *param = model->params[i];
    const golden_parameter *wanted = golden_find(&list, param->name);
    assert_int_equal(param->trained, wanted->trained);
    if (!param->trained) continue;
    tarn__host_room room = {0};
    void *gradient;
    const size_t size = param->dtype == TARN__F64 ? sizeof(double) : sizeof(float);
    assert_true(param->training.grad_written);
    must(tarn__device_read(param->device, &gradient, param->training.grad, (size_t)(param->rows * param->cols) * size,
                           &room));
    const double d = w->dtype == TARN__F64
                         ? golden_exact_keep(&exact, i, wanted, gradient)
                         : distance(gradient, param->dtype, exact.gradients[i], param->rows * param->cols, w->by_norm);
    if (!(d <= w->gradient)) fail_msg("%s: gradient of %s is off by %.3e", w->name, param->name, d);
    tarn__host_room_close(&room);
  }
}

// Of the last layer before a head that reads <cls> only these rows are computed, unless they are pooled before
// (model/first_rows.h).
static void check_rows(const tarn__graph *graph, const tarn_config *config, const made *m) {
  int64_t rows = 0;
  for (size_t i = 0; i < graph->node_count; i++)
    if (strcmp(graph->nodes[i]->op->name, "attention") == 0) rows = graph->nodes[i]->out[0]->rows;
  const bool few = config->head.pool == TARN_POOL_CLS && config->encoder.pool_count == 0;
  if (few)
    assert_int_equal(rows, SENTENCES);
  else
    assert_true(rows > SENTENCES && rows <= m->batch.target.rows);
}

// One step, of training or of an evaluation.
static void run(tarn__model *model, const tarn__safetensors *file, const made *m, const way *w, bool training) {
  const double smoothing = strtod(tarn__safetensors_text(file, "label_smoothing"), NULL), scale = 1.0 / SENTENCES;
  tarn__graph graph = {0};
  tarn__tensor *answers = NULL;
  void *workspace, *read;
  tarn__host_room room = {0};
  tarn__graph_begin(&graph, w->device, w->dtype, training, 2);
  tarn__tensor *loss =
      tarn__model_build_loss(model, &graph, &m->batch, NULL, smoothing, scale, training ? NULL : &answers);
  check_rows(&graph, model->config, m);
  if (training) tarn__graph_differentiate(&graph, loss);
  must(tarn__graph_plan(&graph));
  must(tarn__device_allocate(w->device, &workspace, TARN__MEMORY_ACTIVATION, graph.workspace_bytes, 1));
  must(tarn__device_fill(w->device, workspace, 0xFF, graph.workspace_bytes));  // nothing is read that was not written
  tarn__graph_bind(&graph, workspace);
  must(tarn__graph_run(&graph, &(tarn__exec){.threads = 2, .seed = 1, .step = 1}));
  must(tarn__graph_read(&graph, &read, loss, &room));
  const double *sums = read;
  for (int i = 0; i < 2; i++) {
    const double wanted = *(const double *)need(file, "result", i ? "nll" : "loss")->data;
    if (!(fabs(sums[i] - wanted) <= w->loss * fabs(wanted)))
      fail_msg("%s: loss %.9f, not %.9f", w->name, sums[i], wanted);
  }
  if (training) check_gradients(model, w);
  if (!training) {
    must(tarn__graph_read(&graph, &read, answers, &room));
    const tarn__stored *wanted = need(file, "answer", "value");
    const int64_t count = SENTENCES * (wanted->dims == 2 ? wanted->shape[1] : 1);
    const double d = distance(read, answers->dtype, wanted->data, count, w->by_norm);
    if (!(d <= w->gradient)) fail_msg("%s: answers are off by %.3e", w->name, d);
  }
  tarn__host_room_close(&room);
  tarn__graph_close(&graph);
  tarn__device_free(w->device, workspace);
}

static void run_case(const char *name, const way *w) {
  char path[512];
  tarn__safetensors file = {0};
  tarn_config *config;
  tarn__model *model;
  static made m;
  snprintf(path, sizeof path, "%s/tests/golden/%s.safetensors", TARN_SOURCE_DIR, name);
  must(tarn__safetensors_open(&file, path));
  golden_list(&list, &file);
  const char *text = tarn__safetensors_text(&file, "config");
  assert_non_null(text);
  must(tarn_config_parse(&config, name, text, strlen(text), NULL, 0));
  const golden_parameter *table =
      golden_find(&list, config->image.height ? "embeddings.input.weight" : "embeddings.weight");
  assert_non_null(table);
  const int64_t words = table->rows;
  must(tarn__model_open(&model, config, words, words, w->dtype, true));
  model->device = w->device;
  must(tarn__model_allocate(model));
  golden_set(model, &list);
  make_batch(&m, &file, config);
  for (int round = 0; round < 2; round++) {  // the second run must overwrite the gradients of the first
    for (size_t i = 0; i < model->param_count; i++) model->params[i]->training.grad_written = false;
    run(model, &file, &m, w, true);
  }
  run(model, &file, &m, w, false);
  tarn__model_close(&model);
  tarn_config_close(&config);
  tarn__safetensors_close(&file);
}

static void golden(void **state) {
  (void)state;
  for (int c = 0; c < CASES; c++) {
    for (int w = 0; w < WAYS; w++) run_case(cases[c], &ways[w]);  // the first of them in double
    golden_exact_close(&exact);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(golden)};
  tarn__threads_set(2);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
