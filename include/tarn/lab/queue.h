// A queue of runs of several sweeps, which takes next what reduces the variance of open comparisons most for
// its cost.
//
// Each folder of records (tarn/lab/record.h) has the description of a sweep with a sequential design
// (tarn/lab/sequential.h). The queue trains runs for the comparisons of a variant with the baseline that are open,
// records each run when it is over, and ends when no comparison is open. All it knows it reads from the records, and
// from the run directories for trainings that were interrupted; so it may be killed at any moment, and machines may
// share the records.
//
// The next run. The next look at an open comparison needs runs of both sides, which take a time C in all (of a run: the
// mean of the recorded ones of its variant, else of its sweep, else the forecast of tarn_sweep_estimate(), less what an
// interrupted training has behind it). It reduces the variance of the difference by a share G: of what seeds add to it
// from n to n', n / n' is left, and all of what test items add. Every run of a look that is neither over nor at work is
// worth G / C, and a run of the baseline the sum over all comparisons that need it. The one worth most is taken; of
// equal ones the one of which least is left, then the first by folder, seed and variant. Machines that share one folder
// take a share of the runs each, so that no two choose the same; one ends when no open comparison needs a run of its
// share.
//
// A run that begins with the weights of another training (train.init_from) waits until that is over; so one queue may
// train bodies and fine-tune them.
//
// A run that several folders have, with the same description, seed, data and test, is trained once, but for runs that
// begin with the weights of another training, or are such a beginning: what one folder has recorded, by this version of
// the program, is copied for the others, and what one has at work the others wait for. A common run is worth the sum
// over all. Verdicts of different folders may then share runs, and are not independent. Of a machine with a `share`
// only its own runs are meant: a run that two folders have in different places can fall to two machines, which both
// train it.
//
// Runs of a folder train in OUTPUT/NAME/runs, NAME being the folder's name, and relative paths of its description are
// looked for in OUTPUT/NAME.
#ifndef TARN_LAB_QUEUE_H
#define TARN_LAB_QUEUE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/lab/sequential.h"
#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tarn_queue_event_kind {
  TARN_QUEUE_EVENT_STARTED,      // a run starts or goes on; `text` is the reason
  TARN_QUEUE_EVENT_FINISHED,     // and is recorded
  TARN_QUEUE_EVENT_FAILED,       // and is recorded, unless only its process died: then it is taken again; `text` is the
                                 // message
  TARN_QUEUE_EVENT_STOPPED,      // its state is saved
  TARN_QUEUE_EVENT_VERDICT,      // the state of a comparison has changed; `text` has its words
  TARN_QUEUE_EVENT_COMMITTED,    // the folder was committed to git
  TARN_QUEUE_EVENT_UNCOMMITTED,  // it could not be; `text` is the reason. The next commit takes these records too
  TARN_QUEUE_EVENT_LEFT_OUT,     // nothing more is done for the folder; `text` is the reason
  TARN_QUEUE_EVENTS
} tarn_queue_event_kind;
// "started", "finished", ..., "left out"; NULL for another value.
TARN_API const char *tarn_queue_event_name(tarn_queue_event_kind kind);

typedef struct tarn_queue_event {
  tarn_queue_event_kind kind;
  const char *sweep;    // name of the folder
  const char *variant;  // of the run or comparison; NULL: the event is of the folder
  int64_t seed;         // of a run; -1: none
  const char *text;     // "": none
} tarn_queue_event;

typedef struct tarn_queue_options {
  const char *const *folders;  // (count) of records; what is no folder is passed over
  size_t count;
  const char *output;  // with a folder NAME for each of them
  double budget;       // seconds that the queue may take: it starts no run that would end later; 0 (default): no limit
  // With `shares` machines that share the records, take only runs of share `share`, from 1: run number (variant + seed)
  // modulo `shares`, by their places in the description. 0 (default): all.
  int64_t share, shares;
  bool commit;          // commit each folder to git when a run is recorded in it (default no)
  bool retry_failed;    // retry failed runs, each once (default no)
  const char *program;  // as in tarn_sweep_options
  void (*on_event)(void *user, const tarn_queue_event *event);  // NULL: never
  void *user;
  const volatile sig_atomic_t *save, *stop;  // as in tarn_sweep_options
} tarn_queue_options;

TARN_API void tarn_queue_default(tarn_queue_options *options);

// The comparison of a variant with the baseline.
typedef struct tarn_queue_comparison {
  const char *variant;
  tarn_sequential_verdict verdict;
  bool unaffordable;    // the verdict is open, but the budget allows none
  double look_seconds;  // of the runs that its next look needs; 0: it is not open
  const char *words;    // as tarn_sequential_words(), "closed by the budget: ..."
} tarn_queue_comparison;

typedef struct tarn_queue_sweep {
  const char *name, *folder;  // of the records
  const char *work;           // OUTPUT/NAME
  const char *problem;        // why it is left out, one line; NULL: it is not
  const char *uncommitted;    // why git did not take its latest records, one line; NULL: it did, or was not asked
  const char *baseline;
  tarn_sequential_design design;
  size_t finished, failed;                   // recorded runs
  const tarn_queue_comparison *comparisons;  // (comparison_count)
  size_t comparison_count;
  // Runs whose train.init_from is not there yet, or is the directory of a training that is not over, and the first such
  // path; 0 and NULL: none.
  size_t waiting;
  const char *awaited;
} tarn_queue_sweep;

// The next run.
typedef struct tarn_queue_choice {
  size_t sweep;
  const char *variant;  // NULL: there is none
  int64_t seed;
  double seconds;      // that are left of it, as far as known; 0: not known
  const char *reason;  // one line
} tarn_queue_choice;

typedef struct tarn_queue {
  const tarn_queue_sweep *sweeps;
  size_t count;
  tarn_queue_choice next;  // as things stand
  struct tarn__queue_memory *memory;
} tarn_queue;

// Reads descriptions and records, checks the data of folders with open comparisons (by `tarn sweep --dry-run`), and
// chooses. A folder whose description, records or data cannot be used has a `problem`. Makes the folders OUTPUT/NAME.
// The options' lists and texts must live as long as the queue. Fails with USAGE: no folder, two of one name, no output,
// a budget that is negative or no number, a share that is not from 1 to `shares`; IO, MEMORY.
TARN_API tarn_status tarn_queue_open(tarn_queue **queue, const tarn_queue_options *options) TARN_CHECKED;

// Records runs that are over in OUTPUT, then trains, tests and records one run after the other, as many at a time as
// processors (by each sweep's `threads`) and `parallel` allow, until no comparison is open. A folder that a run cannot
// be recorded in, or of which three runs in a row fail, is left out. Fails with INTERRUPTED (stop: all is saved), IO,
// MEMORY.
TARN_API tarn_status tarn_queue_run(tarn_queue *queue) TARN_CHECKED;

TARN_API void tarn_queue_close(tarn_queue **queue);

#ifdef __cplusplus
}
#endif

#endif
