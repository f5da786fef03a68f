// Advice under construction, for the files that make it.
#ifndef TARN_ADVICE_ADVICE_MEMORY_H
#define TARN_ADVICE_ADVICE_MEMORY_H

#include "advice/advice_tree.h"
#include "base/hash.h"
#include "base/memory.h"
#include "description/description.h"
#include "tarn/lab/advice.h"
#include "tarn/lab/results.h"

struct tarn__advice_memory {
  tarn_advice public;
  tarn__arena arena;
  tarn_advice_options options;  // of the caller: only while the advice is made
  tarn_config *config;          // the given one
  tarn__advice_tree tree;
  char data[TARN__HASH_TEXT];  // hash of its training data; "": they were not read
  tarn_advice_record *records;
};

// A variant beside the baseline of its record, while its form is described.
typedef struct tarn__advice_pair {
  const tarn_config *config, *base;
  tarn__advice_tree tree, base_tree;
  const char *equalized;  // keys that the sweep changed, "kinds.L.ffn=344 ..."; NULL: none
} tarn__advice_pair;

// Copies a text into the arena and closes the buffer, also on failure. An empty one becomes NULL.
tarn_status tarn__advice_keep(const char **text, struct tarn__advice_memory *m, tarn__buffer *buffer) TARN_CHECKED;

// advice_record.c: reads the record of a folder; `record->folder` is set.
tarn_status tarn__advice_record(tarn_advice_record *record, struct tarn__advice_memory *m) TARN_CHECKED;
tarn_status tarn__advice_model(tarn_advice_model *model, struct tarn__advice_memory *m,
                               const tarn_config *config) TARN_CHECKED;

// advice_time.c: tarn_advice_form.update_share of a group.
tarn_status tarn__advice_update_share(double *share, const tarn_results *results, size_t group) TARN_CHECKED;

// advice_form.c: whether anything of a model is frozen, at first or during the training.
bool tarn__advice_freezes(const tarn_config *config);
// How many layers of a stack are trained except for a part of their recurrence, or of their features.
int32_t tarn__advice_partly(const tarn_stack *stack, const tarn_config *config);
// Whether a variant freezes anything, or leaves layers of the baseline out and changes no stack otherwise.
bool tarn__advice_is_form(const tarn_config *config, const tarn_config *base);
// What the form freezes or leaves out, and what it changes besides: `what`, `freezes`, `also`.
tarn_status tarn__advice_describe(tarn_advice_form *form, struct tarn__advice_memory *m,
                                  const tarn__advice_pair *pair) TARN_CHECKED;
// Whether two stacks have the same layers.
tarn_status tarn__advice_same_stack(bool *same, const tarn_config *a, const tarn_stack *in_a, const tarn_config *b,
                                    const tarn_stack *in_b) TARN_CHECKED;

// advice_apply.c: the changes that make the form of the given configuration, with their plan, or the obstacle.
tarn_status tarn__advice_apply(tarn_advice_form *form, struct tarn__advice_memory *m,
                               const tarn__advice_pair *pair) TARN_CHECKED;

// advice_lines.c: in what the given model differs; and the recommendation, with its words.
tarn_status tarn__advice_distance(tarn_advice_record *record, struct tarn__advice_memory *m,
                                  const char *data_hash) TARN_CHECKED;
tarn_status tarn__advice_recommend(tarn_advice_record *record, struct tarn__advice_memory *m) TARN_CHECKED;

#endif
