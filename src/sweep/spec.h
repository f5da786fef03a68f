// The contents of a sweep, for the files that share it: sweep_read.c, sweep_sequential.c, sweep_grid.c, sweep_open.c,
// equalize.c, equalize_ffn.c, equalize_whole.c, equalize_layers.c, equalize_heads.c, estimate.c, sweep_files.c,
// run_state.c, reuse.c, sweep_run.c, child.c, requeue.c, follow.c, submissions.c, slurm.c.
#ifndef TARN_SWEEP_SPEC_H
#define TARN_SWEEP_SPEC_H

#include <jansson.h>
#include <limits.h>

#include "base/memory.h"
#include "config/config_read.h"
#include "run/names.h"
#include "sweep/child.h"
#include "tarn/lab/sweep.h"

enum { TARN__SWEEP_VARIANTS = 1000, TARN__SWEEP_GRID_KEYS = 32 };

// A list of changes to the base configuration.
typedef struct tarn__sweep_edits {
  tarn__config_edit *items;
  size_t count, capacity;
} tarn__sweep_edits;

// Lists of values for keys. `points` is the number of their combinations, 0: no grid.
typedef struct tarn__sweep_grid {
  tarn__sweep_edits edits;  // the values are lists of scalars
  int64_t points;
} tarn__sweep_grid;

// What `equalize` says: the measure, and what is changed for it.
typedef struct tarn__sweep_equal {
  tarn_sweep_equalize by;
  tarn_sweep_trade trade;
} tarn__sweep_equal;

struct tarn__sweep_memory {
  tarn__arena arena;
  tarn__yaml tree;
  tarn__yaml_node *root;        // of the sweep file
  char *base_path, *base_text;  // the base configuration
  size_t base_size;
  tarn__sweep_edits set;         // for all variants, including the sweep's own settings
  const char *baseline;          // as in the file: a variant, which may have a grid
  tarn_sweep_variant *variants;  // the writable form of the public lists
  tarn__sweep_edits *edits;      // [variants] per variant, with the grid values last
  tarn_config **configs;         // [variants]
  const char **bodies;           // [variants] train.init_from with {seed}; NULL: without
  int64_t *seeds;
  tarn_sweep_run *runs;
  int64_t *offsets;  // [runs] positions in the logs, for tarn_sweep_look()
  bool silent;       // tarn_sweep_look() has reported that Slurm does not answer
  size_t *order;     // [runs] submissions.c: the task shown as `job`, if there are several; 0: none
};

// Adds a change; texts must live as long as the sweep.
tarn_status tarn__sweep_add_text(tarn__sweep_edits *edits, const char *text) TARN_CHECKED;
// A text in the sweep's arena.
tarn_status tarn__sweep_text(tarn_sweep *sweep, const char **out, const char *format, ...)
    __attribute__((format(printf, 3, 4))) TARN_CHECKED;

// Reads the file into name, seeds, parallel, threads, budget, test, set, and names, edits and equalize of the variants.
tarn_status tarn__sweep_read(tarn_sweep *sweep, const char *path) TARN_CHECKED;

// Reads the key `sequential`, and adds the seeds that it allows. sweep_sequential.c.
tarn_status tarn__sweep_read_sequential(tarn_sweep *sweep) TARN_CHECKED;
// The design as in sweep.json; NULL: out of memory.
json_t *tarn__sweep_sequential_json(const tarn_sweep *sweep);

// Nodes of the sweep file. Fails with USAGE for a word that is none of `names`, naming the nearest.
tarn_status tarn__sweep_unknown_word(const tarn__yaml_node *node, const char *what, const char *word,
                                     const char *const *names, size_t count) TARN_CHECKED;
tarn_status tarn__sweep_check_keys(const tarn__yaml_node *map, const char *what, const char *const *names,
                                   size_t count) TARN_CHECKED;
// The text of a scalar; NULL if the key is absent or empty.
tarn_status tarn__sweep_read_text(const tarn__yaml_node *map, const char *key, const char **out) TARN_CHECKED;
tarn_status tarn__sweep_read_integer(const tarn__yaml_node *node, const char *key, int64_t least, int64_t most,
                                     int64_t *out) TARN_CHECKED;
// The index of one of the words of a key.
tarn_status tarn__sweep_read_word(const tarn__yaml_node *node, const char *key, const char *const *names, int count,
                                  int *out) TARN_CHECKED;

// Reads a sweep file and the configurations of its variants, not equalized, without looking at data or folders; closed
// by tarn_sweep_close(). `folder`: where its runs are, which go on with as many threads as they began with; NULL: none.
// sweep_open.c.
tarn_status tarn__sweep_outline(tarn_sweep **sweep, const char *file, const char *folder) TARN_CHECKED;

// Reads the keys of `set`, of a variant (except its `equalize` and `grid`) or of a grid.
tarn_status tarn__sweep_read_edits(tarn_sweep *sweep, tarn__sweep_edits *edits,
                                   const tarn__yaml_node *node) TARN_CHECKED;
// The changes of a variant as "key=value", for display: lists and maps in one line.
tarn_status tarn__sweep_describe(tarn_sweep *sweep, tarn_sweep_variant *variant,
                                 const tarn__sweep_edits *edits) TARN_CHECKED;
// Whether a text can be the name of a variant, and so of a folder.
bool tarn__sweep_is_name(const char *name);
// Reads the keys and lists of a node `grid`; the caller frees the list of edits, even after a failure.
tarn_status tarn__sweep_grid_read(tarn_sweep *sweep, tarn__sweep_grid *grid, const tarn__yaml_node *node) TARN_CHECKED;
// Adds a variant of the file for each point of its grid, or the variant itself if it has no grid.
tarn_status tarn__sweep_add_points(tarn_sweep *sweep, const tarn__yaml_node *entry, const tarn__sweep_edits *edits,
                                   const tarn__sweep_grid *grid, tarn__sweep_equal equalize) TARN_CHECKED;

// The base with `set`, then the changes of a variant (NULL: none), for a seed.
tarn_status tarn__sweep_config(const tarn_sweep *sweep, tarn_config **config, const tarn__sweep_edits *edits,
                               int64_t seed) TARN_CHECKED;

// The path of train.init_from of a variant as it is in the files, with {seed}; NULL: it has none.
tarn_status tarn__sweep_body(tarn_sweep *sweep, const char **path, const tarn__sweep_edits *edits) TARN_CHECKED;

// Finds what makes a variant equal to the base configuration, for which `base` is planned, and adds it to its edits.
// equalize.c.
tarn_status tarn__sweep_equalize(tarn_sweep *sweep, size_t variant, const tarn_plan *base) TARN_CHECKED;
// The measure of a planned configuration.
double tarn__sweep_measure(const tarn_plan *plan, tarn_sweep_equalize what);
// The difference from the goal that counts as equal, as a share of it.
#define TARN__SWEEP_NEAR 0.01
// A variant that is to be made equal: its configuration, its measure now, and that of the base.
typedef struct tarn__sweep_goal {
  size_t variant;
  tarn_sweep_equalize by;
  const tarn_config *config;
  double now, base;
} tarn__sweep_goal;
// The same by FFN widths (equalize_ffn.c), and by whole numbers, of layers or of heads (equalize_layers.c,
// equalize_heads.c, on equalize_whole.c). They add to the variant's edits and set adjusted, measure and, where it is
// off, bound.
tarn_status tarn__sweep_trade_ffn(tarn_sweep *sweep, const tarn__sweep_goal *goal) TARN_CHECKED;
tarn_status tarn__sweep_trade_layers(tarn_sweep *sweep, const tarn__sweep_goal *goal) TARN_CHECKED;
tarn_status tarn__sweep_trade_heads(tarn_sweep *sweep, const tarn__sweep_goal *goal) TARN_CHECKED;
// Keeps "key=value" as a change that equalizing makes; of at most `most` for this variant.
tarn_status tarn__sweep_adjust(tarn_sweep *sweep, size_t variant, const char *text, size_t most) TARN_CHECKED;
// Of what is traded as a whole number: ascending numbers, one of which the variant has now, and the changes for one of
// them, "key=value" in the sweep's arena.
enum { TARN__SWEEP_CHANGES = TARN_CONFIG_KINDS };
typedef struct tarn__sweep_whole {
  const char *what;  // "number of layers"
  int64_t *numbers;  // those that the configuration turns out to refuse are removed
  size_t count, now;
  tarn_status (*changes)(tarn_sweep *sweep, const struct tarn__sweep_whole *whole, int64_t number,
                         const char *changes[TARN__SWEEP_CHANGES], size_t *change_count);
  const void *user;
} tarn__sweep_whole;
// Takes the number that comes nearest, if the measure rises with it.
tarn_status tarn__sweep_trade_whole(tarn_sweep *sweep, const tarn__sweep_goal *goal,
                                    tarn__sweep_whole *whole) TARN_CHECKED;

// Determines the progress of a run; fails with USAGE if its configuration differs from the sweep's.
tarn_status tarn__sweep_look(tarn_sweep *sweep, tarn_sweep_run *run) TARN_CHECKED;
// The same later: reads additions to the log since *offset (0: all), without checking the configuration.
tarn_status tarn__sweep_look_again(tarn_sweep *sweep, tarn_sweep_run *run, int64_t *offset) TARN_CHECKED;
// Stores a text in the sweep, unless it is unchanged.
tarn_status tarn__sweep_set_text(tarn_sweep *sweep, const char **text, const char *value) TARN_CHECKED;
// Takes the lock of a run, FOLDER/VARIANT/.seed-N.lock, held by a process that works on the run, from before it
// determines the progress until after it has recorded the result. BUSY: another process has it. For tarn__unlock().
tarn_status tarn__sweep_lock_run(const tarn_sweep *sweep, const tarn_sweep_run *run, int *fd) TARN_CHECKED;
// Creates the run's directory with its configuration, under the run's lock.
tarn_status tarn__sweep_prepare(const tarn_sweep *sweep, const tarn_sweep_run *run) TARN_CHECKED;
// Waits a fraction of a second, or less if a signal arrives.
void tarn__sweep_pause(double seconds);
// Reports an event with its counts.
void tarn__sweep_tell(const tarn_sweep *sweep, const tarn_sweep_options *options, tarn_sweep_event *event);
// Submits and follows the runs; the caller has the sweep's lock. follow.c.
tarn_status tarn__sweep_follow(tarn_sweep *sweep, const tarn_sweep_options *options) TARN_CHECKED;
// Whether the job of the run options->only, which was stopped because its time is over, may be requeued: after three in
// a row without progress the run fails, which is recorded. requeue.c.
tarn_status tarn__sweep_may_requeue(tarn_sweep *sweep, const tarn_sweep_options *options, bool *again) TARN_CHECKED;
// Resets that count. Under the run's lock.
tarn_status tarn__sweep_forget_jobs(const tarn_sweep *sweep, const tarn_sweep_run *run) TARN_CHECKED;
// The path of a file next to the run's directory; `word`: one of run/names.h. seed_file.c.
tarn_status tarn__sweep_seed_file(char path[PATH_MAX], const tarn_sweep *sweep, const tarn_sweep_run *run,
                                  const char *word) TARN_CHECKED;
// Fails with BUSY if runs have pending or running jobs in Slurm.
tarn_status tarn__sweep_check_jobs(tarn_sweep *sweep) TARN_CHECKED;
// Copies a run from run->reuse, under its lock; logs a message if that fails. The run's state is updated.
tarn_status tarn__sweep_try_reuse(tarn_sweep *sweep, tarn_sweep_run *run, bool *done) TARN_CHECKED;
// Records the failure of a run's training or test, if the process itself did not record it.
tarn_status tarn__sweep_write_failure(const tarn_sweep_run *run, bool testing, const char *message) TARN_CHECKED;
// Removes the record of a failure and determines the progress without it.
tarn_status tarn__sweep_forget_failure(tarn_sweep *sweep, tarn_sweep_run *run) TARN_CHECKED;
// Reads additions to a run's log since *offset (0: all) into the run. True if there were any.
bool tarn__sweep_read_log(const tarn_sweep *sweep, tarn_sweep_run *run, int64_t *offset);

// Finds for every waiting run a matching finished one in the folders of other sweeps: same settings, seed, training
// data, test and version of the program. Fails with USAGE if a folder has no sweep.
tarn_status tarn__sweep_find_reuse(tarn_sweep *sweep, const char *const *folders, size_t count) TARN_CHECKED;
// Copies run->reuse into the run's own folder, atomically.
tarn_status tarn__sweep_reuse(tarn_sweep *sweep, tarn_sweep_run *run) TARN_CHECKED;
// Removes the remains of an interrupted copy. The caller has the sweep's lock.
tarn_status tarn__sweep_drop_partial(const tarn_sweep *sweep, const tarn_sweep_run *run) TARN_CHECKED;

// Fails with USAGE if the folder has runs unknown to the sweep, or tests of another test set.
tarn_status tarn__sweep_check_folder(const tarn_sweep *sweep) TARN_CHECKED;
// Visits the runs listed in a folder's sweep.json. Fails with DATA if its lists are damaged, or as a visit does.
typedef tarn_status (*tarn__sweep_visit)(void *user, const char *path, const char *variant, int64_t seed);
tarn_status tarn__sweep_each_run(const char *folder, const json_t *sweep_json, tarn__sweep_visit visit,
                                 void *user) TARN_CHECKED;
// The test of a sweep, as in sweep.json; null: it has none. NULL: out of memory.
json_t *tarn__sweep_test_json(const tarn_sweep *sweep);
// Whether the sweep of a sweep.json has the same test as this one.
tarn_status tarn__sweep_same_test(bool *same, const tarn_sweep *sweep, const json_t *other) TARN_CHECKED;
// Writes sweep.yaml, base.yaml and sweep.json.
tarn_status tarn__sweep_write_files(const tarn_sweep *sweep) TARN_CHECKED;

#endif
