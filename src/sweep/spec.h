// What a sweep consists of, for the files that share it: sweep_read.c, sweep_grid.c, sweep_open.c, equalize.c,
// estimate.c, sweep_files.c, run_state.c, reuse.c, sweep_run.c, child.c, requeue.c, follow.c, submissions.c, slurm.c.
#ifndef TARN_SWEEP_SPEC_H
#define TARN_SWEEP_SPEC_H

#include <jansson.h>
#include <limits.h>
#include <sys/types.h>

#include "base/memory.h"
#include "config/config_read.h"
#include "run/names.h"
#include "tarn/lab/sweep.h"

enum { TARN__SWEEP_VARIANTS = 1000, TARN__SWEEP_GRID_KEYS = 32 };

// A list of changes to the base configuration.
typedef struct tarn__sweep_edits {
  tarn__config_edit *items;
  size_t count, capacity;
} tarn__sweep_edits;

// Lists of values for keys. `points` is the number of their combinations, 0: there is no grid.
typedef struct tarn__sweep_grid {
  tarn__sweep_edits edits;  // the values are lists of scalars
  int64_t points;
} tarn__sweep_grid;

struct tarn__sweep_memory {
  tarn__arena arena;
  tarn__yaml tree;
  tarn__yaml_node *root;        // of the sweep file
  char *base_path, *base_text;  // the base configuration
  size_t base_size;
  tarn__sweep_edits set;         // for all variants, with what a sweep sets by itself
  const char *baseline;          // as in the file: a variant, which may have a grid
  tarn_sweep_variant *variants;  // the writable faces of the public lists
  tarn__sweep_edits *edits;      // [variants] of each variant, the values of its grid last
  tarn_config **configs;         // [variants]
  int64_t *seeds;
  tarn_sweep_run *runs;
  int64_t *offsets;  // [runs] what tarn_sweep_look() has read of the logs
  bool silent;       // tarn_sweep_look() has told that Slurm does not answer
  size_t *order;     // [runs] submissions.c: which task `job` is, among several; 0: none
};

// Adds a change; texts must live as long as the sweep.
tarn_status tarn__sweep_add_text(tarn__sweep_edits *edits, const char *text) TARN_CHECKED;
// A text in the sweep's arena.
tarn_status tarn__sweep_text(tarn_sweep *sweep, const char **out, const char *format, ...)
    __attribute__((format(printf, 3, 4))) TARN_CHECKED;

// Reads the file into name, seeds, parallel, threads, budget, test, set, and names, edits and equalize of the variants.
tarn_status tarn__sweep_read(tarn_sweep *sweep, const char *path) TARN_CHECKED;

// Reads the keys of `set`, of a variant (except its `equalize` and `grid`) or of a grid.
tarn_status tarn__sweep_read_edits(tarn_sweep *sweep, tarn__sweep_edits *edits,
                                   const tarn__yaml_node *node) TARN_CHECKED;
// The changes of a variant as "key=value", for people: lists and maps in one line.
tarn_status tarn__sweep_describe(tarn_sweep *sweep, tarn_sweep_variant *variant,
                                 const tarn__sweep_edits *edits) TARN_CHECKED;
// Whether a text can be the name of a variant, and so of a folder.
bool tarn__sweep_is_name(const char *name);
// Reads the keys and lists of a node `grid`; the caller frees the list of edits, also after a failure.
tarn_status tarn__sweep_grid_read(tarn_sweep *sweep, tarn__sweep_grid *grid, const tarn__yaml_node *node) TARN_CHECKED;
// Adds a variant of the file for each point of its grid, or the variant itself where it has none.
tarn_status tarn__sweep_add_points(tarn_sweep *sweep, const tarn__yaml_node *entry, const tarn__sweep_edits *edits,
                                   const tarn__sweep_grid *grid, tarn_sweep_equalize equalize) TARN_CHECKED;

// The base with `set`, then the changes of a variant (NULL: none), for a seed.
tarn_status tarn__sweep_config(const tarn_sweep *sweep, tarn_config **config, const tarn__sweep_edits *edits,
                               int64_t seed) TARN_CHECKED;

// Finds the FFN widths of a variant and adds them to its edits. `base` is planned for the base configuration.
tarn_status tarn__sweep_equalize(tarn_sweep *sweep, size_t variant, const tarn_plan *base) TARN_CHECKED;

// Looks how far a run is; fails with USAGE if it was made with another configuration than the sweep's.
tarn_status tarn__sweep_look(tarn_sweep *sweep, tarn_sweep_run *run) TARN_CHECKED;
// The same later, reading what was added to the log since *offset (0: all), without looking at the configuration.
tarn_status tarn__sweep_look_again(tarn_sweep *sweep, tarn_sweep_run *run, int64_t *offset) TARN_CHECKED;
// Puts a text into the sweep, unless it is the one that is there.
tarn_status tarn__sweep_set_text(tarn_sweep *sweep, const char **text, const char *value) TARN_CHECKED;
// Takes the lock with which whoever works on a run keeps others out, from before it looks how far the run is until
// after it has written what became of it: FOLDER/VARIANT/.seed-N.lock. BUSY: somebody else has it. For tarn__unlock().
tarn_status tarn__sweep_lock_run(const tarn_sweep *sweep, const tarn_sweep_run *run, int *fd) TARN_CHECKED;
// Makes the run's directory with its configuration, under the run's lock.
tarn_status tarn__sweep_prepare(const tarn_sweep *sweep, const tarn_sweep_run *run) TARN_CHECKED;
// Waits a part of a second, or less if a signal comes.
void tarn__sweep_pause(double seconds);
// An event with what it counts.
void tarn__sweep_tell(const tarn_sweep *sweep, const tarn_sweep_options *options, tarn_sweep_event *event);
// Submits and follows the runs; the caller has the sweep's lock. follow.c.
tarn_status tarn__sweep_follow(tarn_sweep *sweep, const tarn_sweep_options *options) TARN_CHECKED;
// Whether the job of the run options->only that was stopped because its time is over may wait again, rather than for
// ever: after three in a row that have not brought the run forward it fails, which is recorded. requeue.c.
tarn_status tarn__sweep_may_requeue(tarn_sweep *sweep, const tarn_sweep_options *options, bool *again) TARN_CHECKED;
// Forgets how often that was. Under the run's lock.
tarn_status tarn__sweep_forget_jobs(const tarn_sweep *sweep, const tarn_sweep_run *run) TARN_CHECKED;
// The path of the note that counts them.
tarn_status tarn__sweep_jobs_note(char path[PATH_MAX], const tarn_sweep *sweep, const tarn_sweep_run *run) TARN_CHECKED;
// Fails with BUSY where runs are jobs that wait or run in Slurm.
tarn_status tarn__sweep_check_jobs(tarn_sweep *sweep) TARN_CHECKED;
// Takes a run over from run->reuse, under its lock; where that does not work out, says so in the log. The run's state
// tells.
tarn_status tarn__sweep_try_reuse(tarn_sweep *sweep, tarn_sweep_run *run, bool *done) TARN_CHECKED;
// Records that a run's training, or its test, failed for a reason that the process itself did not write down.
tarn_status tarn__sweep_write_failure(const tarn_sweep_run *run, bool testing, const char *message) TARN_CHECKED;
// Removes what is recorded of a failure and looks how far the run is without it.
tarn_status tarn__sweep_forget_failure(tarn_sweep *sweep, tarn_sweep_run *run) TARN_CHECKED;
// Reads what was added to a run's log since *offset (0: all) into the run. True if there was something.
bool tarn__sweep_read_log(const tarn_sweep *sweep, tarn_sweep_run *run, int64_t *offset);

// Finds for every run that waits a finished one like it in the folders of other sweeps: same settings, seed, test and
// version of the program. Fails with USAGE if a folder holds no sweep.
tarn_status tarn__sweep_find_reuse(tarn_sweep *sweep, const char *const *folders, size_t count) TARN_CHECKED;
// Copies run->reuse into the run's own folder, all at once.
tarn_status tarn__sweep_reuse(tarn_sweep *sweep, tarn_sweep_run *run) TARN_CHECKED;
// Removes what a copy that was killed has left. The caller has the sweep's lock.
tarn_status tarn__sweep_drop_partial(const tarn_sweep *sweep, const tarn_sweep_run *run) TARN_CHECKED;

// Fails with USAGE if the folder holds runs that the sweep does not know, or tests of another test set.
tarn_status tarn__sweep_check_folder(const tarn_sweep *sweep) TARN_CHECKED;
// Visits the runs that a sweep.json of a folder lists. Fails with DATA where its lists are damaged, or as a visit does.
typedef tarn_status (*tarn__sweep_visit)(void *user, const char *path, const char *variant, int64_t seed);
tarn_status tarn__sweep_each_run(const char *folder, const json_t *sweep_json, tarn__sweep_visit visit,
                                 void *user) TARN_CHECKED;
// Whether the sweep of a sweep.json tests its runs as this one does.
tarn_status tarn__sweep_same_test(bool *same, const tarn_sweep *sweep, const json_t *other) TARN_CHECKED;
// Writes sweep.yaml, base.yaml and sweep.json.
tarn_status tarn__sweep_write_files(const tarn_sweep *sweep) TARN_CHECKED;

// A process of the program: starts it with standard error in a file. It dies with the calling thread.
tarn_status tarn__child_start(pid_t *pid, const char *program, const char *const *arguments,
                              const char *errors) TARN_CHECKED;
// The last line that it wrote to standard error without the program's name, or how it ended; at most `size` bytes.
void tarn__child_message(char *text, size_t size, const char *errors, int wait_status);

#endif
