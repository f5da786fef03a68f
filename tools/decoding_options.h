// Options that steer the choice of tokens (tarn/decoding.h), shared by the commands that generate and translate.
#ifndef TARN_TOOLS_DECODING_OPTIONS_H
#define TARN_TOOLS_DECODING_OPTIONS_H

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

// Gives the texts to the options.
static inline void decoding_options_set(tarn_decoding *decoding, const cli_list *texts) {
  decoding->banned = texts->items;
  decoding->banned_count = texts->count;
}

#endif
