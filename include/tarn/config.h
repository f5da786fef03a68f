// The description of a model and of its training: a YAML file. Programs access its values by key.
//
//   model:   { d_model: 256, embeddings: all }
//   encoder: { layers: "(R L)*3" }                  # or place: { reservoirs: 3, of: 6, rule: alternate }
//   decoder: { layers: "L*3" }
//   kinds:
//     L: { mixer: attention, heads: 4, ffn: 512 }
//     R: { mixer: attention, heads: 4, ffn: 512, frozen: yes }
//   data:    { vocab: vocab.model, train: data/train, valid: data/valid }
//   train:   { max_updates: 20000, lr: 0.001 }
//
// A pattern lists the layers from the bottom (next to the embeddings) to the top. Items are separated by spaces; an
// item is a kind, a kind followed by digits, which names a set of weights, or items in parentheses; `*N` repeats the
// preceding item. Each use of a bare kind (`R`) is a new set of weights; each use of a named set (`R1`) is the same
// weights. Sets belong to a stack: R1 in the encoder and R1 in the decoder are two sets, unless model.share_stacks
// makes them one.
//
// Without `encoder` the model is a language model: its decoder has no cross-attention, and it is trained on texts
// (`tarn prepare --text`) instead of pairs.
//
// docs/configuration.md lists every key, and docs/parts the keys of parts; tarn_config_option_at() gives programs both
// lists. Every key has a default except `decoder` and the kinds used in patterns. Errors in a description are
// TARN_STATUS_USAGE (or IO, MEMORY) with one line such as
//   model2.yaml:12: unknown key "freeze" in kinds.R; did you mean "frozen"?
#ifndef TARN_CONFIG_H
#define TARN_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// The words of each choice named by functions of the library: X(value, "word in the file", "meaning").
#define TARN_PRECISION_MAP(X)                                        \
  X(TARN_PRECISION_FP32, "fp32", "32-bit floating point throughout") \
  X(TARN_PRECISION_BF16, "bf16", "bfloat16 products and activations, fp32 master weights and sums")
#define TARN_FP32_MAP(X)                                                                                              \
  X(TARN_FP32_EXACT, "exact", "products of fp32 numbers as they are")                                                 \
  X(TARN_FP32_SPLIT6, "split6",                                                                                       \
    "each number as the sum of three of bfloat16, six products on matrix tiles: rms error at most 1.2 times that of " \
    "exact")                                                                                                          \
  X(TARN_FP32_SPLIT3, "split3",                                                                                       \
    "each as the sum of two, three products on matrix tiles: 11 to 33 times the error of exact, far below that of "   \
    "bf16")                                                                                                           \
  X(TARN_FP32_TF32, "tf32",                                                                                           \
    "each rounded to 10 bits of mantissa, on the tensor cores of a card: the error of bf16 divided by 8")

#define TARN_CHOICE_VALUE(value, word, text) value,
typedef enum tarn_precision { TARN_PRECISION_MAP(TARN_CHOICE_VALUE) TARN_PRECISION_COUNT } tarn_precision;
typedef enum tarn_fp32 { TARN_FP32_MAP(TARN_CHOICE_VALUE) TARN_FP32_COUNT } tarn_fp32;
// "exact" and so on; NULL for another value.
TARN_API const char *tarn_fp32_name(tarn_fp32 fp32);
// The word of a task in model.task by its number, which never changes: "translation" is 0; NULL: no such task.
TARN_API const char *tarn_task_word(int task);
#undef TARN_CHOICE_VALUE

// A complete description, with all defaults filled in.
typedef struct tarn_config tarn_config;

// Reads a file (at most 1 MiB), or config.yaml of a run directory, then applies `count` overrides of the form
// "train.lr=0.001" in order. A value is YAML, so "train.seeds=[1,2,3]" is a list; an empty value restores the default.
// An override of encoder.layers replaces encoder.place and vice versa. On failure *out is NULL. Fails with USAGE
// without a path.
TARN_API tarn_status tarn_config_read(tarn_config **out, const char *path, const char *const *overrides,
                                      size_t count) TARN_CHECKED;

// The same from `size` bytes of memory, which are not used after the call; `name` is the file name in messages.
TARN_API tarn_status tarn_config_parse(tarn_config **out, const char *name, const char *text, size_t size,
                                       const char *const *overrides, size_t count) TARN_CHECKED;

// Frees the description and sets the pointer to NULL; accepts NULL.
TARN_API void tarn_config_close(tarn_config **config);

// Whether models of a description can be used to "translate", "attend" (to a source), "score", "generate", or as the
// word of a verb says (tarn/classify.h). "refine": they translate by iterations over whole sentences, without a beam;
// "edit": and these edit one translation, so that there are no lengths to compare either
// (docs/non-autoregressive.md).
TARN_API bool tarn_config_has_use(const tarn_config *config, const char *use);

// Checks the requirements of training: data.vocab and data.train are set, a limit ends the training, the cosine
// schedule has its max_updates, and so on. Fails with USAGE; the message names the key.
TARN_API tarn_status tarn_config_check_training(const tarn_config *config) TARN_CHECKED;

// The resolved description as YAML, with every key, in an order and form that depend only on the values. Reading it
// back gives an identical description. Free *text with tarn_config_text_close(). Fails with MEMORY; so does the next
// function.
TARN_API tarn_status tarn_config_write(const tarn_config *config, char **text) TARN_CHECKED;

// The same description as a JSON object, for programs: maps are objects, yes and no are true and false, numbers keep
// their spelling, and all other values are strings. JSON is a subset of YAML; reading the text back gives an identical
// description. *text as above.
TARN_API tarn_status tarn_config_write_json(const tarn_config *config, char **text) TARN_CHECKED;

// Frees a text and sets the pointer to NULL; accepts NULL.
TARN_API void tarn_config_text_close(char **text);

// The number of the task (tarn_task_word()), that of the measure that selects the best checkpoint (valid.metric,
// tarn_measure_of()), and train.seed.
TARN_API int tarn_config_task(const tarn_config *config);
TARN_API int tarn_config_metric(const tarn_config *config);
TARN_API int64_t tarn_config_seed(const tarn_config *config);

// The value of one key, "train.lr" or "kinds.R.heads", in the form of tarn_config_write(), without quotes; a list or a
// map, such as "kinds.R", as JSON. tarn_config_option_at() gives its type. An empty text: the key has no value, or is
// not written because it follows from others (model.task). *text as above. Fails with MEMORY, or with USAGE for an
// unknown key; the message names the nearest one.
TARN_API tarn_status tarn_config_get(const tarn_config *config, const char *key, char **text) TARN_CHECKED;
// The same for a number; yes is 1 and no is 0. Also fails with USAGE for a value of another type.
TARN_API tarn_status tarn_config_number(const tarn_config *config, const char *key, double *value) TARN_CHECKED;

// Sets a key, with a value as in overrides. All other keys keep their values, even those whose default depends on this
// one; overrides of tarn_config_read() update these too. The description is rebuilt, so pointers into the old *config
// become invalid. Fails like tarn_config_read(); then *config is unchanged.
TARN_API tarn_status tarn_config_set(tarn_config **config, const char *key, const char *value) TARN_CHECKED;

// One word of a choice.
typedef struct tarn_config_word {
  const char *word;
  const char *text;  // its meaning
  int value;         // of the choice's enum, or its number if no header declares one; of a part: its index in its table
} tarn_config_word;

// One key of the configuration, for --help and the documentation.
typedef struct tarn_config_option {
  char key[64];        // "train.max_updates"; keys of a kind are "kinds.NAME.heads"
  char part[48];       // the part that the key belongs to: "mixer attention"; "": none
  const char *type;    // "integer", "number", "yes or no", "text", "list of integers", "pattern", "word", "word or map"
                       // or "integer or map"
  char range[80];      // "1 .. 65536", "0 <= x < 1"; "" if the type says it all
  char value[64];      // the default as written in a file, or in words if it depends on another key; "": none
  const char *unit;    // "tokens", "updates", "minutes", … or ""
  const char *help;    // one line
  size_t word_count;   // number of words, for tarn_config_option_word(); 0 if values are not words
  const void *source;  // for tarn_config_option_word()
} tarn_config_option;

// Fills *option with the key at that index, in the order of the documentation; false past the last one.
TARN_API bool tarn_config_option_at(size_t index, tarn_config_option *option);

// Fills *word with a word of the option; false past the last one.
TARN_API bool tarn_config_option_word(const tarn_config_option *option, size_t index, tarn_config_word *word);

#ifdef __cplusplus
}
#endif
#endif
