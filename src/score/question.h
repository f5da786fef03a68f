// Questions of multiple choice: what a line of a file asks, as lm-evaluation-harness puts it.
#ifndef TARN_SCORE_QUESTION_H
#define TARN_SCORE_QUESTION_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "eval/codepoints.h"
#include "tarn/choices.h"

enum { TARN__MOST_CHOICES = 1000 };

typedef struct tarn__question {
  const char *context;
  const char **choices;  // [count], each with the space before it
  int count;             // of LAMBADA 1
  int answer;            // -1: the line has none
} tarn__question;

// Reads lines of one format. Zero-initialise; set `format` and `arena`, in which texts are kept.
typedef struct tarn__question_reader {
  tarn_choices_format format;  // AUTO becomes that of the first line
  tarn__arena *arena;
  tarn__buffer buffer;
  tarn__codepoints points;
} tarn__question_reader;
void tarn__question_reader_close(tarn__question_reader *reader);

// Fails with DATA, without the place, if the line is none of the format.
tarn_status tarn__question_read(tarn__question_reader *reader, tarn__question *question, const char *line,
                                size_t length) TARN_CHECKED;

#endif
