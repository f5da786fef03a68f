#include "train/features/expert_use.h"

#include <string.h>

#include "base/memory.h"
#include "ops/route.h"

// The positions of the marks of a router and of its experts.
typedef struct place {
  size_t router, first;
} place;

static bool is_router(const tarn__param *param) {
  static const char end[] = ".router.weight";
  if (param->out == 0) return false;
  const size_t length = strlen(param->name);
  return length >= sizeof end - 1 && strcmp(param->name + length - (sizeof end - 1), end) == 0;
}

// The positions for router `of`; NULL: the end of all routers.
static place place_of(const tarn__model *model, const tarn__param *of) {
  place at = {0, 0};
  for (size_t i = 0; i < model->param_count && model->params[i] != of; i++) {
    if (!is_router(model->params[i])) continue;
    at.router++;
    at.first += (size_t)model->params[i]->rows;
  }
  return at;
}

tarn_status tarn__expert_use_open(tarn__expert_use *use, const tarn__model *model) {
  const place end = place_of(model, NULL);
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, end.first + end.router + 1, 1));
  *use = (tarn__expert_use){model, end.first, end.router, memory};
  tarn__expert_use_clear(use);
  return TARN_STATUS_OK;
}

void tarn__expert_use_close(tarn__expert_use *use) {
  tarn__free(use->marks);
  *use = (tarn__expert_use){0};
}

void tarn__expert_use_clear(tarn__expert_use *use) {
  if (use->marks) memset(use->marks, '0', use->experts + use->routers);
}

static void mark(void *user, const tarn__param *router, const int32_t *offsets, int64_t experts) {
  tarn__expert_use *use = user;
  const place at = place_of(use->model, router);
  use->marks[use->experts + at.router] = '1';
  for (int64_t e = 0; e < experts; e++)
    if (offsets[e + 1] > offsets[e]) use->marks[at.first + (size_t)e] = '1';
}

tarn_status tarn__expert_use_add(tarn__expert_use *use, const tarn__graph *graph) {
  return use->routers > 0 ? tarn__route_visit(graph, mark, use) : TARN_STATUS_OK;
}

tarn_status tarn__expert_use_share(tarn__expert_use *use, tarn__comm *comm) {
  const size_t count = use->experts + use->routers;
  if (use->routers == 0 || comm->size == 1) return TARN_STATUS_OK;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, count, sizeof(float)));
  float *sums = memory;
  for (size_t i = 0; i < count; i++) sums[i] = use->marks[i] == '1' ? 1.0f : 0.0f;
  const tarn_status status = tarn__comm_sum(comm, sums, (int64_t)count);
  for (size_t i = 0; i < count && status == TARN_STATUS_OK; i++) use->marks[i] = sums[i] > 0.0f ? '1' : '0';
  tarn__free(memory);
  return status;
}

int64_t tarn__expert_use_unused(const tarn__expert_use *use) {
  int64_t unused = -1;
  size_t router = 0, first = 0;
  for (size_t i = 0; use->routers > 0 && i < use->model->param_count; i++) {
    if (!is_router(use->model->params[i])) continue;
    const size_t experts = (size_t)use->model->params[i]->rows;
    if (use->marks[use->experts + router++] == '1') {
      if (unused < 0) unused = 0;
      for (size_t e = first; e < first + experts; e++) unused += use->marks[e] == '0';
    }
    first += experts;
  }
  return unused;
}

tarn_status tarn__expert_use_load(tarn__expert_use *use, const char *marks, const char *file) {
  const size_t count = use->experts + use->routers;
  tarn__expert_use_clear(use);
  if (!marks) return TARN_STATUS_OK;
  TARN_REQUIRE(strlen(marks) == count && strspn(marks, "01") == count, DATA,
               "%s: its marks of experts are not %zu digits 0 and 1", file, count);
  memcpy(use->marks, marks, count);
  return TARN_STATUS_OK;
}
