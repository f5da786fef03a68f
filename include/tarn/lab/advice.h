// What records of experiments say about freezing layers of a model: which forms of freezing were tried, what they
// saved, which of them are decided, and what they would change in a given configuration.
//
// A form is a variant of a record (tarn/lab/record.h) in which more is frozen than in the record's baseline, or in
// which layers are left out: the fair rival of freezing, because it saves as much and is simpler. The verdict on a form
// is that on its whole difference from the baseline, by the rules of the record: its sequential design where it has one
// (tarn/lab/sequential.h), else p of tarn_results_compare(), corrected for all comparisons. Nothing is judged here.
//
// A form is good if it is decided to be better than the baseline, or to be equivalent within the design's margin.
// Recommended are good forms only, and of those that freeze only such as change nothing else. Without a design there is
// no margin, so that only a better form can be good.
#ifndef TARN_LAB_ADVICE_H
#define TARN_LAB_ADVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/plan.h"
#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tarn_advice_decision {
  TARN_ADVICE_UNDECIDED,   // or no verdict: `words` says which
  TARN_ADVICE_BETTER,      // than the baseline
  TARN_ADVICE_EQUIVALENT,  // within the margin of the record's design, even if decided to be worse by less than that
  TARN_ADVICE_WORSE,
  TARN_ADVICE_DECISIONS
} tarn_advice_decision;
// "undecided", "better", "equivalent", "worse"; NULL for another value.
TARN_API const char *tarn_advice_decision_name(tarn_advice_decision decision);

// What is planned for a training (tarn_plan).
typedef struct tarn_advice_plan {
  int64_t trained_parameters, frozen_parameters;
  size_t optimiser_bytes, total_bytes;
} tarn_advice_plan;

// A form. Numbers that are not known are NAN.
typedef struct tarn_advice_form {
  const char *variant;
  const char *what;       // is frozen or left out: "2 of 4 encoder layers frozen: (F L)*2, mixer none"
  bool freezes;           // more than the baseline; false: layers are left out
  const char *also;       // keys that differ from the baseline besides, "KEY=VALUE, KEY"; NULL: none
  const char *equalized;  // keys changed by the sweep's `equalize`, as above; NULL: none

  int64_t parameters, trained_parameters, frozen_parameters;  // each counted once
  double frozen_share;                                        // frozen parameters over all
  double trained_share;                                       // trained parameters over the baseline's
  double optimiser_bytes;  // Adam's moments of the trained parameters (fp8: 1 byte a number); 0 with optimiser ridge
  // Time of an update over the baseline's: medians over the lines of a log and over runs, by the training clock. Only
  // runs on one kind of processor, with as many threads, are compared, those of the kind that both have most runs on.
  double update_share;

  size_t runs;  // finished
  tarn_advice_decision decision;
  const char *words;             // the verdict: "better", "equivalent within 0.3", "no verdict (two seeds)"
  double difference, low, high;  // from the baseline in the record's measure, with its interval
  double p, p_equal;             // corrected; of the difference, and of equivalence

  // The form in the given configuration, which was planned with these changes.
  const char *const *overrides;  // (override_count) for tarn_config_read(), after its own
  size_t override_count;         // 0: the form cannot be applied
  const char *obstacle;          // why not; NULL: it can
  tarn_advice_plan planned;      // if it can
} tarn_advice_form;

// The model of a configuration or of a record's baseline.
typedef struct tarn_advice_model {
  int64_t d_model;
  const char *encoder, *decoder;  // patterns; NULL: there is no such stack
  int32_t encoder_layers, decoder_layers;
  const char *norm;  // model.norm
  const char *data;  // data.train; NULL: not set
} tarn_advice_model;

// A folder of records.
typedef struct tarn_advice_record {
  const char *folder;     // as given
  const char *left_out;   // why nothing is taken from it; then all that follows is unset. NULL: it is used
  const char *baseline;   // name of the variant
  bool baseline_freezes;  // the baseline has something frozen itself, so verdicts say how to freeze, not whether
  bool equalized;         // forms were made equal to the baseline in size, by `equalize`
  tarn_advice_model model;
  double updates, epochs;      // of the baseline's training, means over its runs
  const char *clock;           // "cpu" or "wall"
  const char *measure;         // key of a tarn_results_judged: "test_bleu"
  const char *title;           // the same in words: "test BLEU"
  bool less;                   // less is better
  int digits;                  // after the point of its values
  double alpha;                // of the verdicts
  double margin;               // of equivalence; 0: none
  bool sequential;             // by a sequential design
  const char *const *distant;  // (distant_count) in what the given model or training differs: "d_model 512, not 128"
  size_t distant_count;
  const tarn_advice_form *forms;  // in the order of the record
  size_t form_count;
  // Indices of recommended forms; form_count: none. Of good forms that freeze: the one with the fewest trained
  // parameters, and the one with the least time of an update. Of good forms that leave layers out: the one with the
  // fewest trained parameters, of those that change nothing else if there are any.
  size_t fewest, fastest, shallower;
  const char *const *lines;  // (line_count) the recommendation in words
  size_t line_count;
} tarn_advice_record;

typedef struct tarn_advice {
  const char *task;                   // of the given configuration: "translation"
  tarn_advice_model model;            // and its model
  tarn_advice_plan planned;           // as it stands
  const tarn_advice_record *records;  // (record_count) in the order given
  size_t record_count;
  size_t used;  // that are not left out; at least 1
  struct tarn__advice_memory *memory;
} tarn_advice;

typedef struct tarn_advice_options {
  const char *config;            // file or run directory, and overrides, as in tarn_config_read()
  const char *const *overrides;  // (override_count)
  size_t override_count;
  const char *const *folders;  // (folder_count) of records; other files than folders among them are ignored
  size_t folder_count;
  tarn_plan_options plan;
} tarn_advice_options;
TARN_API void tarn_advice_default(tarn_advice_options *options);

// Reads the records of the configuration's task. Left out, with the reason, are folders without a record, of other
// tasks, and those whose runs have not begun or not finished yet. A form is applied where the stack of the
// configuration is one kind of trained layer, as in the record, and has as many layers as the record's baseline, or the
// form repeats a group and these layers are a multiple of it: its frozen layers become new kinds, with the keys in
// which the record's frozen layers differ from its trained ones. Fails, naming the folder, with
// - USAGE: no configuration, no folder, a sweep.json without a baseline, all folders left out;
// - DATA: a damaged record, or one of a later version of the program;
// - like tarn_config_read(), tarn_plan_make(), tarn_results_open() and tarn_results_compare(); IO, MEMORY.
TARN_API tarn_status tarn_advice_make(tarn_advice **advice, const tarn_advice_options *options) TARN_CHECKED;
TARN_API void tarn_advice_close(tarn_advice **advice);

#ifdef __cplusplus
}
#endif

#endif
