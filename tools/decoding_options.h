// Options that steer the choice of tokens (tarn/decoding.h), shared by the commands that generate and translate.
#ifndef TARN_TOOLS_DECODING_OPTIONS_H
#define TARN_TOOLS_DECODING_OPTIONS_H

#include <math.h>
#include <stdbool.h>

#include "cli.h"
#include "tarn/decoding.h"

// Entries of a table of options; `decoding`: a tarn_decoding, `texts`: a cli_list, free it in the end.
#define DECODING_OPTIONS(decoding, texts)                                                                             \
  {"repetition-penalty",                                                                                              \
   CLI_REAL,                                                                                                          \
   &(decoding).repetition_penalty,                                                                                    \
   "X",                                                                                                               \
   "divide logits of tokens so far by X, multiply negative ones",                                                     \
   0,                                                                                                                 \
   0},                                                                                                                \
      {"presence-penalty",                                                                                            \
       CLI_REAL,                                                                                                      \
       &(decoding).presence_penalty,                                                                                  \
       "X",                                                                                                           \
       "take X off the logits of tokens generated before",                                                            \
       0,                                                                                                             \
       0},                                                                                                            \
      {"frequency-penalty",                                                                                           \
       CLI_REAL,                                                                                                      \
       &(decoding).frequency_penalty,                                                                                 \
       "X",                                                                                                           \
       "the same for every time that they were generated",                                                            \
       0,                                                                                                             \
       0},                                                                                                            \
      {"no-repeat-ngram",                                                                                             \
       CLI_INT,                                                                                                       \
       &(decoding).no_repeat_ngram,                                                                                   \
       "N",                                                                                                           \
       "let no sequence of N tokens stand twice",                                                                     \
       0,                                                                                                             \
       1000},                                                                                                         \
      {"banned", CLI_LIST, &(texts), "TEXT", "never generate the tokens of TEXT; may be given several times", 0, 0},  \
      {"groups", CLI_INT, &(decoding).groups, "N", "divide the beam into N groups that differ (diverse beam search)", \
       1,        1024},                                                                                               \
  {                                                                                                                   \
    "diversity-penalty", CLI_REAL, &(decoding).diversity_penalty, "X",                                                \
        "take X off tokens that an earlier group chose in the same step", 0, 0                                        \
  }

// Options of drawing tokens, as given; initialise with DRAWING_OPTIONS_NONE.
typedef struct drawing_options {
  double temperature, top_p, min_p, typical_p;
  int64_t top_k, seed;
  const char *mbr;
} drawing_options;
#define DRAWING_OPTIONS_NONE                                                                                  \
  (drawing_options) {                                                                                         \
    .temperature = NAN, .top_p = NAN, .min_p = NAN, .typical_p = NAN, .top_k = CLI_NO_INT, .seed = CLI_NO_INT \
  }

#define DRAWING_OPTIONS(drawing)                                                                                      \
  {"temperature",                                                                                                     \
   CLI_REAL,                                                                                                          \
   &(drawing).temperature,                                                                                            \
   "T",                                                                                                               \
   "draw tokens, with logits divided by T (default 1 with another option of drawing)",                                \
   0,                                                                                                                 \
   0},                                                                                                                \
      {"top-k", CLI_INT, &(drawing).top_k, "K", "draw from the K most likely tokens only (default all)", 1, 1 << 30}, \
      {"top-p",                                                                                                       \
       CLI_REAL,                                                                                                      \
       &(drawing).top_p,                                                                                              \
       "P",                                                                                                           \
       "draw from the nucleus, the fewest most likely tokens that have probability P together (default 1: all)",      \
       0,                                                                                                             \
       0},                                                                                                            \
      {"min-p",                                                                                                       \
       CLI_REAL,                                                                                                      \
       &(drawing).min_p,                                                                                              \
       "P",                                                                                                           \
       "draw from tokens at least P times as likely as the most likely one (default 0: all)",                         \
       0,                                                                                                             \
       0},                                                                                                            \
      {"typical-p",                                                                                                   \
       CLI_REAL,                                                                                                      \
       &(drawing).typical_p,                                                                                          \
       "P",                                                                                                           \
       "draw from the tokens nearest to the expected information that have probability P together (default 1: all)",  \
       0,                                                                                                             \
       0},                                                                                                            \
      {"seed", CLI_INT, &(drawing).seed, "S", "of the tokens that are drawn (default 1)", 0, 9e18}, {                 \
    "mbr", CLI_TEXT, &(drawing).mbr, "NAME",                                                                          \
        "bleu or chrf: print the sample that agrees best with all of them (minimum Bayes risk); scores are its "      \
        "expected utility",                                                                                           \
        0, 0                                                                                                          \
  }

// Whether tokens are to be drawn.
bool drawing_options_given(const drawing_options *drawing);
// Stores what was given. -1, or the exit code of a usage error.
int drawing_options_set(const cli_command *command, const drawing_options *drawing, double *temperature, int64_t *top_k,
                        double *top_p, uint64_t *seed, tarn_decoding *decoding);

// Gives the texts to the options.
static inline void decoding_options_set(tarn_decoding *decoding, const cli_list *texts) {
  decoding->banned = texts->items;
  decoding->banned_count = texts->count;
}

#endif
