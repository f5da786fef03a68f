// Options shared by the commands that run models.
#ifndef TARN_TOOLS_MODEL_OPTIONS_H
#define TARN_TOOLS_MODEL_OPTIONS_H

#include "cli.h"
#include "limit_options.h"
#include "tarn/checkpoint.h"
#include "tarn/translate.h"

// The options of a command that runs a model. Initialise with {.precision = "auto", .overlong = ...}.
typedef struct model_options {
  const char *precision, *overlong;  // words
  const char *checkpoint;            // word; NULL: not given
  int64_t threads;
  limit_options limits;
  tarn_checkpoint_found found;  // set by model_options_find()
} model_options;

// Entries of a table of options; `model` is a model_options. They require LIMIT_OPTIONS((model).limits).
#define MODEL_PRECISION_OPTION(model)                                                            \
  {                                                                                              \
    "precision", CLI_TEXT, &(model).precision, "NAME",                                           \
        "fp32, bf16, int8 or int4; auto: int8 or int4 for a file that holds it, else fp32", 0, 0 \
  }
// `units`: "lines" or "sentences".
#define MODEL_OVERLONG_OPTION(model, units)                                                                           \
  {                                                                                                                   \
    "overlong", CLI_TEXT, &(model).overlong, "WHAT", "truncate or refuse " units " that the model cannot take whole", \
        0, 0                                                                                                          \
  }
#define MODEL_RUN_OPTIONS(model)                                                                        \
  CHECKPOINT_OPTION((model).checkpoint),                                                                \
      {"threads", CLI_INT, &(model).threads, "N", "threads; 0: all that the process may use", 0, 1024}, \
      CLI_DEVICE_OPTION

// Sets the limits, and applies --precision, --overlong (NULL: the command has no such option) and the threads. -1, or
// the exit code of a usage error.
int model_options_set(const cli_command *command, const model_options *model, tarn_translate_precision *precision,
                      tarn_translate_overlong *overlong, int *threads);

// The option --checkpoint of all commands that take a run directory. `word`: const char *, initially NULL.
#define CHECKPOINT_OPTION(word) \
  { "checkpoint", CLI_TEXT, &(word), "WHICH", CHECKPOINT_HELP, 0, 0 }
#define CHECKPOINT_HELP \
  "of a run directory: best, last or average; without it best, or average where that validated better"

// The choice of --checkpoint (NULL: not given). -1, or the exit code.
int model_options_choice(const cli_command *command, tarn_checkpoint_choice *choice, const char *word);

// Finds the file to read for `path` and --checkpoint `word` (NULL: not given). -1, or the exit code of an error that
// has been printed.
int model_options_find(const cli_command *command, tarn_checkpoint_found *found, const char *path, const char *word);

// Prints on standard error which file of a run directory was used, unless the command fails with `code`, whose message
// names it, or is `quiet`; and closes `found`, which may be zero.
void model_options_done(const cli_command *command, tarn_checkpoint_found *found, int code, bool quiet);

// Of translation by refinement of whole sentences: the members of tarn_translator_options.
#define REFINEMENT_OPTIONS(options)                                                                                  \
  {"iterations",                                                                                                     \
   CLI_INT,                                                                                                          \
   &(options).iterations,                                                                                            \
   "N",                                                                                                              \
   "of masked translation and a Levenshtein Transformer: iterations over a sentence; 0: the model's "                \
   "translate.iterations",                                                                                           \
   0,                                                                                                                \
   1024},                                                                                                            \
      {"length-beam",                                                                                                \
       CLI_INT,                                                                                                      \
       &(options).length_beam,                                                                                       \
       "N",                                                                                                          \
       "of masked translation: lengths whose translations are compared; 0: the model's translate.length_beam",       \
       0,                                                                                                            \
       1024},                                                                                                        \
  {                                                                                                                  \
    "placeholder-penalty", CLI_REAL, &(options).placeholder_penalty, "G",                                            \
        "of a Levenshtein Transformer: lowers the log-probability of inserting nothing between two tokens; without " \
        "it "                                                                                                        \
        "the model's translate.placeholder_penalty",                                                                 \
        0, 100                                                                                                       \
  }

#endif
