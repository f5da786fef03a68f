#include "dynamics/stack_map.h"

#include "base/memory.h"
#include "base/threads.h"
#include "graph/tangents.h"
#include "model/layers.h"

static int64_t numbers_of(const tarn__stack_map *map) { return map->packed->rows * map->model->config->model.d_model; }

// Copies numbers between the host and the device's memory, converting types.
static tarn_status put(const tarn__stack_map *map, void *to, const double *from, int64_t count) {
  const tarn__device *device = map->model->device;
  if (map->model->dtype == TARN__F64) return tarn__device_put(device, to, from, (size_t)count * sizeof(double));
#pragma omp parallel for schedule(static) num_threads(tarn__threads()) if (count >= 4096)
  for (int64_t i = 0; i < count; i++) map->single[i] = (float)from[i];
  return tarn__device_put(device, to, map->single, (size_t)count * sizeof(float));
}

static tarn_status get(const tarn__stack_map *map, double *to, const tarn__graph *graph, const tarn__tensor *from) {
  const int64_t count = from->rows * from->cols;
  if (map->model->dtype == TARN__F64) return tarn__graph_get(graph, to, from);
  TARN_TRY(tarn__graph_get(graph, map->single, from));
#pragma omp parallel for schedule(static) num_threads(tarn__threads()) if (count >= 4096)
  for (int64_t i = 0; i < count; i++) to[i] = (double)map->single[i];
  return TARN_STATUS_OK;
}

static tarn_status make_room(tarn__stack_map *map, tarn__stack_graph *g) {
  const tarn__device *device = map->model->device;
  if (g->graph.workspace_bytes <= g->workspace_bytes) return TARN_STATUS_OK;
  if (g->workspace) tarn__device_free(device, g->workspace);
  g->workspace = NULL;
  map->bytes -= g->workspace_bytes;
  g->workspace_bytes = 0;
  TARN_TRY(tarn__device_allocate(device, &g->workspace, TARN__MEMORY_ACTIVATION, g->graph.workspace_bytes, 1));
  g->workspace_bytes = g->graph.workspace_bytes;
  map->bytes += g->workspace_bytes;
  return TARN_STATUS_OK;
}

// Plans the layers [first, last); first < 0: the embeddings.
static tarn_status plan(tarn__stack_map *map, tarn__stack_graph *g, int first, int last) {
  const tarn__model *model = map->model;
  const int64_t rows = map->packed->rows, width = model->config->model.d_model;
  tarn__tensor *x = NULL;
  g->last = 0;
  tarn__model_begin(model, &g->graph, false, tarn__threads());
  if (first >= 0) x = tarn__graph_external(&g->graph, model->dtype, rows, width, g->x, "state");
  if (g->directions > 0 && first >= 0)
    x->tangent = tarn__graph_external(&g->graph, model->dtype, g->directions * rows, width, g->v, "perturbations");
  g->y = tarn__model_build_layers(model, &g->graph, map->packed, x, first < 0 ? 0 : first, last);
  if (g->directions > 0 && first >= 0) {
    tarn__graph_push(&g->graph, (int)g->directions);
    if (g->y->tangent) g->y->tangent->keep = true;
  }
  return tarn__graph_plan(&g->graph);
}

static tarn_status build(tarn__stack_map *map, tarn__stack_graph *g, int first, int last) {
  if (g->last == last && g->first == first) return TARN_STATUS_OK;
  TARN_TRY(plan(map, g, first, last));
  TARN_TRY(make_room(map, g));
  tarn__graph_bind(&g->graph, g->workspace);
  g->first = first;
  g->last = last;
  return TARN_STATUS_OK;
}

// Layers of iteration t.
static void layers_at(const tarn__stack_map *map, int64_t iteration, int *first, int *last) {
  *first = map->whole ? map->first : map->first + (int)iteration;
  *last = map->whole ? map->last : *first + 1;
}

static tarn_status check_allowed(size_t bytes, size_t max_bytes) {
  TARN_REQUIRE(max_bytes == 0 || bytes <= max_bytes, MEMORY,
               "the layers alone need %.1f MB for these sentences, and %.1f MB are allowed: allow more, or take fewer "
               "sentences or exponents",
               (double)bytes / 1e6, (double)max_bytes / 1e6);
  return TARN_STATUS_OK;
}

// Checks an upper bound of the memory of all iterations before the workspaces are taken.
static tarn_status check_bytes(tarn__stack_map *map, bool twice, size_t max_bytes) {
  size_t most[2] = {0, 0};
  TARN_TRY(plan(map, &map->graphs[1], -1, 0));
  most[1] = map->graphs[1].graph.workspace_bytes;
  for (int i = 0; i < 1 + twice; i++)
    for (int t = 0; t < (map->whole ? 1 : map->last - map->first); t++) {
      int first, last;
      layers_at(map, t, &first, &last);
      TARN_TRY(plan(map, &map->graphs[i], first, last));
      if (map->graphs[i].graph.workspace_bytes > most[i]) most[i] = map->graphs[i].graph.workspace_bytes;
    }
  map->most_bytes = map->bytes + most[0] + most[1];
  return check_allowed(map->most_bytes, max_bytes);
}

static size_t number_bytes(const tarn__stack_map *map) {
  return map->model->dtype == TARN__F64 ? sizeof(double) : sizeof(float);
}

static tarn_status take(const tarn__stack_map *map, void **memory, int64_t count) {
  return tarn__device_allocate(map->model->device, memory, TARN__MEMORY_ACTIVATION, (size_t)count, number_bytes(map));
}

tarn_status tarn__stack_map_open(tarn__stack_map *map, int64_t directions, bool twice, size_t max_bytes) {
  const int64_t numbers = numbers_of(map), most = directions > 0 ? directions : 1;
  const bool single = map->model->dtype != TARN__F64;
  void *memory;
  map->bytes += (size_t)((2 + directions) * numbers) * number_bytes(map);
  if (single) map->bytes += (size_t)(most * numbers) * sizeof(float);
  TARN_TRY(check_allowed(map->bytes, max_bytes));
  map->graphs[0].directions = directions;
  for (int i = 0; i < 2; i++) TARN_TRY(take(map, &map->graphs[i].x, numbers));
  if (directions > 0) TARN_TRY(take(map, &map->graphs[0].v, directions * numbers));
  if (single) {
    TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)(most * numbers), sizeof(float)));
    map->single = memory;
  }
  return check_bytes(map, twice, max_bytes);
}

void tarn__stack_map_close(tarn__stack_map *map) {
  for (int i = 0; i < 2; i++) {
    tarn__stack_graph *g = &map->graphs[i];
    void *const memories[] = {g->workspace, g->x, g->v};
    for (size_t m = 0; m < sizeof memories / sizeof *memories; m++)
      if (memories[m]) tarn__device_free(map->model->device, memories[m]);
    tarn__graph_close(&g->graph);
  }
  tarn__free(map->single);
  *map = (tarn__stack_map){0};
}

static tarn_status run(tarn__stack_graph *g) {
  return tarn__graph_run(&g->graph, &(tarn__exec){.threads = tarn__threads()});
}

tarn_status tarn__stack_map_start(tarn__stack_map *map, double *start) {
  tarn__stack_graph *g = &map->graphs[1];
  TARN_TRY(build(map, g, -1, 0));
  TARN_TRY(run(g));
  TARN_TRY(get(map, start, &g->graph, g->y));
  g->first = g->last = 0;
  return TARN_STATUS_OK;
}

tarn_status tarn__stack_map_step(void *memory, double *state, double *perturbations, int64_t directions,
                                 int64_t iteration) {
  tarn__stack_map *map = memory;
  tarn__stack_graph *g = &map->graphs[directions > 0 ? 0 : 1];
  const int64_t numbers = numbers_of(map);
  int first, last;
  layers_at(map, iteration, &first, &last);
  TARN_TRY(build(map, g, first, last));
  TARN_TRY(put(map, g->x, state, numbers));
  if (directions > 0) TARN_TRY(put(map, g->v, perturbations, directions * numbers));
  TARN_TRY(run(g));
  TARN_TRY(get(map, state, &g->graph, g->y));
  if (directions == 0) return TARN_STATUS_OK;
  if (g->y->tangent) return get(map, perturbations, &g->graph, g->y->tangent);
  for (int64_t i = 0; i < directions * numbers; i++) perturbations[i] = 0.0;
  return TARN_STATUS_OK;
}
