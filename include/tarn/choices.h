// Multiple choice by likelihood, as EleutherAI's lm-evaluation-harness measures it (0.4): how likely a language model
// finds continuations of a context, and tasks made of them. Numbers equal the harness's on the same files.
#ifndef TARN_CHOICES_H
#define TARN_CHOICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/lm.h"
#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// A text and what may follow it, in UTF-8. White space at the end of the context counts as the beginning of the
// continuation, where most vocabularies have it. The tokens of the continuation are those of both texts together
// without as many as the context alone has.
typedef struct tarn_continuation {
  const char *context;  // "" of length 0: the continuation begins a text
  size_t context_length;
  const char *text;  // with the space that divides it from the context, if there is one
  size_t length;     // at least 1 byte
} tarn_continuation;

typedef struct tarn_continuation_score {
  double log_probability;  // the sum over the continuation's tokens, natural logarithm
  int64_t tokens;          // of the continuation, at least 1
  int64_t unknown;         // of these tokens and the context's: not in the vocabulary
  bool greedy;             // each of its tokens is the most likely one after all before it
  bool truncated;          // the context lost its beginning to the model's maximum (tarn_lm_options.overlong)
  bool replaced;           // invalid UTF-8 by U+FFFD
} tarn_continuation_score;

// Scores `count` continuations. bos: the model reads an end of sentence before the context, with which tarn's models
// begin (the harness's add_bos_token); without it the first token of the context is not predicted from anything, which
// is the harness's default for GPT-2. An empty context is an end of sentence in either case. Fails with USAGE (a masked
// language model, several ranks), DATA (an empty continuation, one without tokens of its own, or one that is longer
// than the model permits; input refused by `strict` or `overlong`), NUMERIC or MEMORY.
TARN_API tarn_status tarn_continuations_score(tarn_lm *lm, tarn_continuation_score *scores,
                                              const tarn_continuation *continuations, size_t count,
                                              bool bos) TARN_CHECKED;

// How a line of a file of questions, a JSON object, is read. The contexts, and the space before each choice, are the
// harness's of the tasks named; without examples before the question.
typedef enum tarn_choices_format {
  TARN_CHOICES_FORMAT_AUTO,       // "auto": found by the keys of the first line
  TARN_CHOICES_FORMAT_CHOICES,    // "choices": {"context", "choices": [text, ...], "answer": index from 0}
  TARN_CHOICES_FORMAT_ARC,        // "arc" (arc_easy, arc_challenge): AI2's {"question": {"stem", "choices": [{"text",
                                  // "label"}]}, "answerKey"}, or that of Hugging Face, where "question" is a text and
                                  // "choices" is {"text": [...], "label": [...]}
  TARN_CHOICES_FORMAT_HELLASWAG,  // "hellaswag": {"activity_label", "ctx_a", "ctx_b", "endings": [...], "label"}
  TARN_CHOICES_FORMAT_PIQA,       // "piqa": {"goal", "sol1", "sol2", "label"}; the label may be in a file of its own
  TARN_CHOICES_FORMAT_LAMBADA,    // "lambada" (lambada_openai): {"text"}, whose last word is to be predicted
  TARN_CHOICES_FORMAT_COUNT
} tarn_choices_format;

// The words above, and back, as tarn_bleu_tokenizer_parse() (tarn/score.h).
TARN_API tarn_status tarn_choices_format_parse(tarn_choices_format *out, const char *word) TARN_CHECKED;
TARN_API const char *tarn_choices_format_name(tarn_choices_format format);

typedef struct tarn_choices_options {
  tarn_choices_format format;  // default auto
  const char *labels;          // a file with the index of the right choice on each line, for questions without it, such
                               // as PIQA's; default NULL
  bool bos;                    // as above; default true
} tarn_choices_options;

TARN_API void tarn_choices_default(tarn_choices_options *options);

// The share of right answers. One is right whose choice has the greatest value, of equal ones the first.
typedef struct tarn_choices_accuracy {
  int64_t right;
  double accuracy;   // right / questions
  double low, high;  // Wilson's 95 % interval
} tarn_choices_accuracy;

typedef struct tarn_choices_result {
  tarn_choices_format format;
  int64_t questions;              // at least 1
  int64_t choices;                // of all questions; of LAMBADA one each
  tarn_choices_accuracy acc;      // by log-probability; of LAMBADA: the last word is what greedy decoding gives
  tarn_choices_accuracy norm;     // "acc_norm": by log-probability / characters of the choice (code points)
  tarn_choices_accuracy bytes;    // "acc_bytes": by log-probability / its bytes in UTF-8. LAMBADA has neither: zeros
  double perplexity;              // of LAMBADA: exp(-mean log-probability of the last word); else NAN
  const char *answers;            // a character per question in the order of the file, for acc: '1' right, '0' wrong
  const double *log_probability;  // [choices]
  const int32_t *counts;          // [questions] choices of each
  int64_t unknown;                // tokens of all continuations and their contexts that are not in the vocabulary
  int64_t truncated;              // continuations whose context lost its beginning
  int64_t replaced;               // lines with invalid UTF-8 replaced
  struct tarn__choices_memory *memory;
} tarn_choices_result;

// Answers the questions of a file of JSON lines; empty lines are ignored. Fails with USAGE (a masked language model),
// IO, DATA (a line of another form, fewer than two choices, an empty choice, an answer that is none of them; labels
// that do not fit; the message names file and line), NUMERIC or MEMORY. On ranks other than 0 (tarn_lm_options.ranks)
// *result is NULL.
TARN_API tarn_status tarn_choices_run(tarn_choices_result **result, tarn_lm *lm, const char *path,
                                      const tarn_choices_options *options) TARN_CHECKED;
TARN_API void tarn_choices_close(tarn_choices_result **result);

#ifdef __cplusplus
}
#endif
#endif
