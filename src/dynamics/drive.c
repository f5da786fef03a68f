#include "dynamics/drive.h"

#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/threads.h"
#include "dynamics/trajectory.h"
#include "model/layers.h"
#include "ops/recurrence.h"
#include "states/states.h"

static tarn_status take(tarn__drive *drive, const tarn_dynamics *d, void *out, int64_t count) {
  void *memory;
  drive->bytes += (size_t)count * sizeof(double);
  const size_t most = d->options.max_memory;
  TARN_REQUIRE(most == 0 || drive->bytes <= most, MEMORY,
               "what drives the recurrence needs more than the %.1f MB that are allowed: allow more, or take a shorter "
               "text",
               (double)most / 1e6);
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)count, sizeof(double)));
  memcpy(out, &memory, sizeof memory);
  return TARN_STATUS_OK;
}

// The first `width` columns of a tensor, in double.
static tarn_status copy_columns(double *out, const tarn__graph *graph, const tarn__tensor *x, int64_t width) {
  tarn__host_room room = {0};
  void *values;
  const tarn_status status = tarn__graph_read(graph, &values, x, &room);
  for (int64_t r = 0; r < x->rows && status == TARN_STATUS_OK; r++)
    for (int64_t c = 0; c < width; c++) {
      const int64_t at = r * x->cols + c;
      out[r * width + c] = x->dtype == TARN__F64 ? ((const double *)values)[at] : (double)((const float *)values)[at];
    }
  tarn__host_room_close(&room);
  return status;
}

// The inputs of the layer's recurrence. Later nodes are computed too, but ignored.
static tarn_status compute_inputs(tarn__drive *drive, const tarn_dynamics *d, tarn__graph *graph,
                                  const tarn__packed *packed) {
  const tarn__model *model = d->checkpoint->model;
  const tarn__model_stack *stack = tarn__model_stack_at(model, tarn__model_first_stack(model)->id);
  const char *label = stack->layers[d->info.first_layer - 1].label;
  tarn__tensor *x = NULL;
  void *workspace;
  tarn__model_begin(model, graph, false, tarn__threads());
  tarn__model_build_layers(model, graph, packed, NULL, 0, d->info.first_layer);
  for (size_t i = 0; i < graph->node_count && !x; i++)
    if (graph->nodes[i]->op->id == TARN__OP_RECURRENCE && graph->nodes[i]->label == label)
      x = graph->nodes[i]->in[TARN__RECURRENCE_X];
  TARN_TRY(graph->status);
  TARN_REQUIRE(x, INTERNAL, "%s has no recurrence", label);
  x->keep = true;
  TARN_TRY(tarn__graph_plan(graph));
  const size_t most = d->options.max_memory;
  TARN_REQUIRE(
      most == 0 || drive->bytes + graph->workspace_bytes <= most, MEMORY,
      "the layers below the recurrence need %.1f MB for this text, and %.1f MB are allowed: allow more, or take "
      "a shorter text",
      (double)graph->workspace_bytes / 1e6, (double)most / 1e6);
  if (d->planned) return TARN_STATUS_OK;
  TARN_TRY(tarn__device_allocate(model->device, &workspace, TARN__MEMORY_ACTIVATION, graph->workspace_bytes, 1));
  tarn__graph_bind(graph, workspace);
  tarn_status status = tarn__graph_run(graph, &(tarn__exec){.threads = tarn__threads()});
  if (status == TARN_STATUS_OK)
    status = copy_columns(drive->inputs, graph, x, tarn__cell_gates(&d->cell) * d->cell.spec.hidden);
  tarn__device_free(model->device, workspace);
  return status;
}

static tarn_status open_text(tarn__drive *drive, const tarn_dynamics *d) {
  tarn__packed packed;
  tarn__graph graph = {0};
  void *memory;
  TARN_TRY(tarn__dynamics_pack(d, &packed, &memory));
  drive->systems = packed.sentences;
  tarn_status status = take(drive, d, &drive->inputs, packed.rows * tarn__cell_gates(&d->cell) * d->cell.spec.hidden);
  if (status == TARN_STATUS_OK) status = take(drive, d, &drive->offsets, packed.sentences + 1);
  if (status == TARN_STATUS_OK) status = take(drive, d, &drive->lengths, packed.sentences);
  for (int64_t i = 0; i < packed.sentences && status == TARN_STATUS_OK; i++) {
    drive->offsets[i + 1] = packed.offsets[i + 1];
    drive->lengths[i] = packed.offsets[i + 1] - packed.offsets[i];
  }
  if (status == TARN_STATUS_OK) status = compute_inputs(drive, d, &graph, &packed);
  tarn__graph_close(&graph);
  tarn__free(memory);
  TARN_TRY(status);
  return take(drive, d, &drive->start, drive->systems * drive->width);
}

static double between(tarn__random *random) { return 2.0 * tarn__random_uniform(random) - 1.0; }

static tarn_status open_starts(tarn__drive *drive, const tarn_dynamics *d, bool noisy) {
  tarn__random random;
  drive->systems = d->options.starts;
  TARN_TRY(take(drive, d, &drive->start, drive->systems * drive->width));
  tarn__random_init(&random, d->options.seed, 0x44595354u);
  for (int64_t i = 0; i < drive->systems * drive->width; i++) drive->start[i] = between(&random);
  if (!noisy) return TARN_STATUS_OK;
  const int64_t count = drive->systems * drive->iterations;
  TARN_TRY(take(drive, d, &drive->noise, count));
  tarn__random_init(&random, d->options.seed, 0x44594e4fu);
  for (int64_t i = 0; i < count; i++) drive->noise[i] = between(&random);
  return TARN_STATUS_OK;
}

tarn_status tarn__drive_open(tarn__drive *drive, const tarn_dynamics *d, int64_t iterations, tarn_dynamics_drive kind) {
  *drive = (tarn__drive){.width = tarn__cell_width(&d->cell), .iterations = iterations};
  if (kind == TARN_DYNAMICS_DRIVE_TEXT)
    TARN_TRY(open_text(drive, d));
  else
    TARN_TRY(open_starts(drive, d, kind == TARN_DYNAMICS_DRIVE_NOISE));
  TARN_TRY(take(drive, d, &drive->rows, drive->systems + 1));
  for (int64_t i = 0; i <= drive->systems; i++) drive->rows[i] = i;
  return TARN_STATUS_OK;
}

void tarn__drive_close(tarn__drive *drive) {
  void *const memories[] = {drive->inputs, drive->noise, drive->start, drive->offsets, drive->rows, drive->lengths};
  for (size_t i = 0; i < sizeof memories / sizeof *memories; i++) tarn__free(memories[i]);
  *drive = (tarn__drive){0};
}

// The trajectories of a cell, without the memory of `run`.
typedef struct trajectories {
  tarn__cell_run run;
  tarn__iterated map;
  size_t numbers, bytes;  // of run.work; of all
} trajectories;

static tarn_status prepare(trajectories *t, const tarn__drive *drive, const tarn__cell_map *cell,
                           const tarn_dynamics_options *options) {
  const int64_t all = tarn__cell_gates(cell) * cell->spec.hidden;
  const size_t most = options->max_memory;
  *t = (trajectories){.run = {.cell = cell,
                              .inputs = drive->inputs,
                              .offsets = drive->offsets,
                              .noise = drive->noise,
                              .iterations = drive->iterations,
                              .systems = drive->systems},
                      .map = {.self = &t->run,
                              .systems = drive->systems,
                              .width = drive->width,
                              .offsets = drive->rows,
                              .lengths = drive->lengths,
                              .autonomous = !drive->inputs && !drive->noise,
                              .step = tarn__cell_step},
                      .numbers = (size_t)((2 + options->exponents) * drive->systems * all)};
  t->bytes = drive->bytes + t->numbers * sizeof(double);
  TARN_REQUIRE(
      most == 0 || t->bytes <= most, MEMORY,
      "the recurrence alone needs %.1f MB, and %.1f MB are allowed: allow more, or take fewer sentences, starts "
      "or exponents",
      (double)t->bytes / 1e6, (double)most / 1e6);
  return TARN_STATUS_OK;
}

tarn_status tarn__drive_run(const tarn__drive *drive, tarn_dynamics_result **result, const tarn__cell_map *cell,
                            const tarn_dynamics_options *options) {
  trajectories t;
  void *work;
  TARN_TRY(prepare(&t, drive, cell, options));
  TARN_TRY(tarn__alloc(&work, TARN__MEMORY_OTHER, t.numbers, sizeof(double)));
  t.run.work = work;
  const tarn_status status = tarn__trajectory_run(result, &t.map, drive->start, options, t.bytes);
  tarn__free(work);
  return status;
}

tarn_status tarn__drive_check(const tarn__drive *drive, const tarn__cell_map *cell,
                              const tarn_dynamics_options *options) {
  trajectories t;
  TARN_TRY(prepare(&t, drive, cell, options));
  return tarn__trajectory_check(&t.map, options, t.bytes);
}
