// Runs the map from its start.
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/threads.h"
#include "dynamics/drive.h"
#include "dynamics/stack_map.h"
#include "dynamics/trajectory.h"
#include "model/layers.h"
#include "states/states.h"

// Layers, from the embeddings of the texts, as a map; `map` must outlive it.
static tarn__iterated iterate_stack(const tarn_dynamics *d, tarn__stack_map *map, const tarn__packed *packed) {
  const bool whole = d->info.map == TARN_DYNAMICS_MAP_PERIOD;
  *map = (tarn__stack_map){.model = d->checkpoint->model,
                           .packed = packed,
                           .first = d->info.first_layer - 1,
                           .last = d->info.last_layer,
                           .whole = whole,
                           .bytes = d->packed_bytes};
  return (tarn__iterated){.self = map,
                          .systems = packed->sentences,
                          .width = d->info.width,
                          .offsets = tarn_states_offsets(d->states, TARN_STATES_SIDE_SOURCE),
                          .autonomous = whole,
                          .step = tarn__stack_map_step};
}

// result NULL: only checks.
static tarn_status run_stack(const tarn_dynamics *d, tarn_dynamics_result **result,
                             const tarn_dynamics_options *options, const tarn__packed *packed) {
  tarn__stack_map map;
  const tarn__iterated iterated = iterate_stack(d, &map, packed);
  void *start = NULL;
  tarn_status status = tarn__stack_map_open(&map, options->exponents, options->apart > 0.0, options->max_memory);
  if (status == TARN_STATUS_OK && !result) {
    status = tarn__trajectory_check(&iterated, options, map.most_bytes);
  } else if (status == TARN_STATUS_OK) {
    status = tarn__alloc(&start, TARN__MEMORY_OTHER, (size_t)(packed->rows * d->info.width), sizeof(double));
    if (status == TARN_STATUS_OK) status = tarn__stack_map_start(&map, start);
    if (status == TARN_STATUS_OK) status = tarn__trajectory_run(result, &iterated, start, options, map.most_bytes);
  }
  tarn__free(start);
  tarn__stack_map_close(&map);
  return status;
}

static tarn_status run_text(const tarn_dynamics *d, tarn_dynamics_result **result,
                            const tarn_dynamics_options *options) {
  tarn__packed packed;
  void *memory;
  TARN_TRY(tarn__dynamics_pack(d, &packed, &memory));
  const tarn_status status = run_stack(d, result, options, &packed);
  tarn__free(memory);
  return status;
}

static tarn_status run_recurrence(const tarn_dynamics *d, tarn_dynamics_result **result,
                                  const tarn_dynamics_options *options) {
  tarn__drive drive;
  tarn_status status = tarn__drive_open(&drive, d, options->iterations, d->info.drive);
  if (status == TARN_STATUS_OK)
    status = result ? tarn__drive_run(&drive, result, &d->cell, options) : tarn__drive_check(&drive, &d->cell, options);
  tarn__drive_close(&drive);
  return status;
}

static tarn_status run(const tarn_dynamics *d, tarn_dynamics_result **result) {
  tarn_dynamics_options options = d->options;
  TARN_TRY(tarn__dynamics_iterations(d, &options.iterations));
  if (d->info.map != TARN_DYNAMICS_MAP_RECURRENCE) return run_text(d, result, &options);
  // A text ends by itself.
  const bool all = d->info.drive == TARN_DYNAMICS_DRIVE_TEXT && d->options.iterations == 0;
  if (all && d->states) options.iterations = d->states->sides[TARN_STATES_SIDE_SOURCE].longest;
  return run_recurrence(d, result, &options);
}

tarn_status tarn__dynamics_check(const tarn_dynamics *d) { return run(d, NULL); }

tarn_status tarn_dynamics_run(tarn_dynamics *d, tarn_dynamics_result **result) {
  *result = NULL;
  tarn__threads_set(d->options.threads);
  return run(d, result);
}
