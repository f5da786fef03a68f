// The checkpoints tested in a table.
#include <string.h>

#include "base/file.h"
#include "report/table_build.h"
#include "run/run_file.h"
#include "tarn/checkpoint.h"

static const char *name_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

// The checkpoint that `tarn test RUN` selects by default, in the arena; NULL if that is no longer known: its
// checkpoints, or the one that was tested, no longer exist.
static tarn_status taken(const char **name, const tarn_results_run *run, tarn__arena *arena) {
  tarn_checkpoint_found found;
  const char *tested;
  *name = NULL;
  TARN_TRY(tarn__join(&tested, arena, run->path, run->test_checkpoint));
  if (!tarn__file_exists(tested)) return TARN_STATUS_OK;
  tarn_status status = tarn_checkpoint_find(&found, run->path, TARN_CHECKPOINT_CHOICE_AUTO);
  if (status != TARN_STATUS_OK) return status == TARN_STATUS_MEMORY ? status : TARN_STATUS_OK;
  status = tarn__arena_print(name, arena, "%s", name_of(found.path));
  tarn_checkpoint_found_close(&found);
  return status;
}

tarn_status tarn__table_checkpoints(struct tarn__results_table_memory *t) {
  const tarn_results *r = t->results;
  const char *first = NULL;  // of the first run for which the rule is unknown
  const char *names = "";
  size_t others = 0;
  for (size_t i = 0; i < r->run_count; i++) {
    const tarn_results_run *run = &r->runs[i];
    const char *expected;
    if (run->state != TARN_RESULTS_FINISHED || !run->test_checkpoint) continue;
    TARN_TRY(taken(&expected, run, &t->arena));
    if (!expected && !first) first = run->test_checkpoint;
    if (!expected) expected = first;
    if (strcmp(run->test_checkpoint, expected) == 0 || others++ >= TARN__NAMED_RUNS) continue;
    TARN_TRY(tarn__arena_print(&names, &t->arena, "%s%s%s (%s, not %s)", names, others > 1 ? ", " : "", run->path,
                               run->test_checkpoint, expected));
  }
  if (others > TARN__NAMED_RUNS)
    TARN_TRY(tarn__arena_print(&names, &t->arena, "%s and %zu more", names, others - TARN__NAMED_RUNS));
  if (others == 0) return TARN_STATUS_OK;
  return tarn__table_note(
      t, "%zu test%s of another checkpoint than `tarn test` takes by itself, or than another run's test is of: %s",
      others, others > 1 ? "s are" : " is", names);
}
