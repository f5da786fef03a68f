#include "decode/workspace.h"

#include <string.h>

#include "base/memory.h"
#include "graph/profile.h"

static tarn_status take_memory(const void *device, void **out, tarn__memory_kind kind, size_t count, size_t size) {
  return tarn__device_allocate(device, out, kind, count, size);
}

static void give_back(const void *device, void *memory) { tarn__device_free(device, memory); }

tarn__region tarn__workspace_region(const tarn__device *device) {
  return (tarn__region){.allocate = take_memory, .release = give_back, .owner = device};
}

void tarn__workspace_free(tarn__workspace *space, tarn__region *region) {
  tarn__region_free(region, space->memory);
  *space = (tarn__workspace){0};
}

tarn_status tarn__workspace_run(tarn__workspace *space, tarn__region *region, tarn__graph *graph,
                                const tarn__exec *exec, double begin) {
  TARN_TRY(tarn__graph_plan(graph));
  if (graph->workspace_bytes > space->bytes) {
    // Allocates a quarter more than needed, because graphs grow gradually.
    size_t bytes;
    TARN_TRY(tarn__add_size(&bytes, graph->workspace_bytes, graph->workspace_bytes / 4));
    tarn__workspace_free(space, region);
    TARN_TRY(tarn__region_alloc(region, &space->memory, TARN__MEMORY_ACTIVATION, bytes, 1));
    space->bytes = bytes;
  }
  tarn__graph_bind(graph, space->memory);
  TARN_TRY(tarn__profile_work(exec->profile, "building and planning graphs", begin));
  return tarn__graph_run(graph, exec);
}

// Converts the doubles of the double reference to floats in place.
static void narrow(void *data, size_t count) {
  const double *from = data;
  float *to = data;
  for (size_t i = 0; i < count; i++) {
    float value = (float)from[i];
    memcpy(&to[i], &value, sizeof value);
  }
}

tarn_status tarn__workspace_top(tarn__graph *graph, const tarn__top *top, int32_t **ids, float **values) {
  void *memory;
  *ids = NULL;
  *values = NULL;
  if (!top->values) return TARN_STATUS_OK;
  TARN_TRY(tarn__graph_result(graph, &memory, top->values));
  if (top->values->dtype == TARN__F64) narrow(memory, (size_t)(top->values->rows * top->values->cols));
  *values = memory;
  if (!top->ids) return TARN_STATUS_OK;
  TARN_TRY(tarn__graph_result(graph, &memory, top->ids));
  *ids = memory;
  return TARN_STATUS_OK;
}
