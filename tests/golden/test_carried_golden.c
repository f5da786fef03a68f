// Truncated backpropagation through time against PyTorch's LSTM and GRU with detached states (make_carried.py): the
// loss and every gradient of windows that begin with the states of those before them.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "device/devices.h"
#include "model/model.h"
#include "store/safetensors.h"

static const char description[] =
    "model: { d_model: 8, norm: none, positions: none, embeddings: none, embedding_scale: no, dropout: 0,\n"
    "         output_bias: yes }\n"
    "decoder: { layers: C G }\n"
    "kinds:\n"
    "  C: { mixer: lstm, residual: no, ffn: 0 }\n"
    "  G: { mixer: gru, residual: no, ffn: 0 }\n"
    "train: { carry_state: yes }\n";

enum { D = 8, LAYERS = 2, MOST_TRACKS = 4, MOST_ROWS = 32 };

static void must(tarn_status status) {
  if (status != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

static const tarn__stored *need(const tarn__safetensors *file, const char *group, const char *name) {
  char full[160];
  snprintf(full, sizeof full, "%s%s", group, name);
  const tarn__stored *tensor = tarn__safetensors_find(file, full);
  if (!tensor) fail_msg("%s has no tensor %s", file->path, full);
  return tensor;
}

typedef struct bounds {
  const char *name;
  const tarn__device *device;
  tarn__dtype dtype;
  double loss, gradient;  // of the largest element
} bounds;
static const bounds ways[] = {{"reference fp64", &tarn__device_reference, TARN__F64, 1e-12, 1e-6},
                              {"reference fp32", &tarn__device_reference, TARN__F32, 1e-6, 1e-4},
                              {"fast fp32", &tarn__device_cpu, TARN__F32, 1e-6, 1e-4},
                              {"fast bf16", &tarn__device_cpu, TARN__BF16, 1e-2, 0.1}};

static void compare(const tarn__param *param, const tarn__stored *wanted, const bounds *way) {
  double worst = 0, largest = 0;
  assert_true(param->training.grad_written);
  for (int64_t i = 0; i < param->rows * param->cols; i++) {
    const double w = (double)((const float *)wanted->data)[i];
    const double g = param->dtype == TARN__F64 ? ((const double *)param->training.grad)[i]
                                               : (double)((const float *)param->training.grad)[i];
    if (!isnan(worst) && !(fabs(g - w) <= worst)) worst = fabs(g - w);
    largest = fmax(largest, fabs(w));
  }
  if (!(worst <= way->gradient * largest))
    fail_msg("%s: %s is off by %.3g of %.3g", way->name, wanted->name, worst, largest);
}

static void run_window(const tarn__model *model, const tarn__batch *batch, const tarn__model_carried *carried,
                       const tarn__safetensors *file, int window, const bounds *way) {
  const tarn__model_shortcuts shortcuts = {.carried = carried};
  tarn__graph graph = {0};
  char group[32];
  tarn__model_begin(model, &graph, true, 1);
  tarn__tensor *loss =
      tarn__model_build_loss(model, &graph, batch, &shortcuts, 0.0, 1.0 / (double)batch->predictions, NULL);
  tarn__model_differentiate(model, &graph, loss);
  must(tarn__graph_plan(&graph));
  void *workspace;
  must(tarn__device_allocate(way->device, &workspace, TARN__MEMORY_ACTIVATION, graph.workspace_bytes, 1));
  must(tarn__device_fill(way->device, workspace, 0xFF, graph.workspace_bytes));
  tarn__graph_bind(&graph, workspace);
  for (size_t i = 0; i < model->param_count; i++) model->params[i]->training.grad_written = false;
  must(tarn__graph_run(&graph, &(tarn__exec){.threads = 1, .seed = 1, .step = 1}));
  snprintf(group, sizeof group, "%d/", window);
  const double wanted = *(const double *)need(file, group, "loss")->data, found = *(const double *)loss->data;
  if (!(fabs(found - wanted) <= way->loss * wanted)) fail_msg("%s: loss %.9g, not %.9g", way->name, found, wanted);
  snprintf(group, sizeof group, "%d/gradient/", window);
  for (size_t i = 0; i < model->param_count; i++)
    compare(model->params[i], need(file, group, model->params[i]->name), way);
  tarn__graph_close(&graph);
  tarn__device_free(way->device, workspace);
}

static void run_text(const tarn__model *model, const tarn__safetensors *file, const bounds *way) {
  static double states[2][LAYERS][MOST_TRACKS * 2 * D];
  const tarn__stored *ids = need(file, "", "ids"), *targets = need(file, "", "targets");
  const int64_t tracks = ids->shape[1], length = ids->shape[2], rows = tracks * length;
  int32_t offsets[MOST_TRACKS + 1], positions[MOST_ROWS];
  assert_true(tracks <= MOST_TRACKS && rows <= MOST_ROWS);
  for (int64_t t = 0; t <= tracks; t++) offsets[t] = (int32_t)(t * length);
  tarn__packed_positions(positions, offsets, tracks);
  memset(states, 0, sizeof states);
  for (int w = 0; w < ids->shape[0]; w++) {
    void *const start[] = {states[w % 2][0], states[w % 2][1]}, *const end[] = {states[1 - w % 2][0],
                                                                                states[1 - w % 2][1]};
    const tarn__model_carried carried = {.rows = tracks, .start = start, .end = end};
    const tarn__batch batch = {.target = {.sentences = tracks,
                                          .rows = rows,
                                          .longest = length,
                                          .ids = (const int32_t *)ids->data + w * rows,
                                          .positions = positions,
                                          .offsets = offsets},
                               .predictions = rows,
                               .targets = (const int32_t *)targets->data + w * rows};
    run_window(model, &batch, &carried, file, w, way);
  }
}

static void windows_are_those_of_pytorch(void **state) {
  const bounds *way = *state;
  tarn__safetensors file = {0};
  tarn_config *config;
  tarn__model *model;
  must(tarn__safetensors_open(&file, TARN_SOURCE_DIR "/tests/golden/carried.safetensors"));
  must(tarn_config_parse(&config, "carried", description, strlen(description), NULL, 0));
  const int64_t words = need(&file, "weight/", "embeddings.input.weight")->shape[0];
  must(tarn__model_open(&model, config, words, words, way->dtype, true));
  model->device = way->device;
  must(tarn__model_allocate(model));
  for (size_t i = 0; i < model->param_count; i++)
    must(tarn__param_set(model->params[i], need(&file, "weight/", model->params[i]->name)->data));
  run_text(model, &file, way);
  tarn__model_close(&model);
  tarn_config_close(&config);
  tarn__safetensors_close(&file);
}

int main(void) {
  enum { WAYS = sizeof ways / sizeof *ways };
  struct CMUnitTest tests[WAYS];
  for (size_t i = 0; i < WAYS; i++)
    tests[i] = (struct CMUnitTest){ways[i].name, windows_are_those_of_pytorch, NULL, NULL, (void *)(uintptr_t)&ways[i]};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
