// Splitting text into sentences by rules, one sentence a line, as tarn_prepare_run() takes it.
//
// A sentence may end at a full stop, question or exclamation mark or an ellipsis, with the closing quotes and brackets
// after it, before white space. Whether it does is decided by what stands around: abbreviations, initials, ordinals and
// enumerations, small letters, and verbs of speech. Characters have the Sentence_Break property of UAX #29, the word
// lists are those of the language. The result is a function of the text alone.
#ifndef TARN_SENTENCES_H
#define TARN_SENTENCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/export.h"
#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_sentences_options {
  const char *language;  // "en" (the default) or "de"
  bool wrapped;  // default false: no sentence goes over the end of a line; true: lines are parts of a paragraph, which
                 // ends at an empty line
  bool documents;  // write an empty line where a document ends, at an empty line of the text and between files; not
                   // with `wrapped`, where an empty line ends a paragraph; default false: write no empty lines
  bool strict;     // refuse invalid UTF-8 instead of replacing it by U+FFFD; default false
} tarn_sentences_options;

TARN_API void tarn_sentences_default(tarn_sentences_options *options);

typedef struct tarn_sentences_result {
  int64_t lines;       // lines read
  int64_t paragraphs;  // that are not empty: lines, or with `wrapped` groups of lines
  int64_t sentences;   // lines written
  int64_t replaced;    // lines in which invalid UTF-8 was replaced
} tarn_sentences_result;

// Writes the sentences of all files, in order, to `output`, atomically, making its folder. The text of a sentence is
// kept as it is; the white space between sentences is left out, and with `wrapped` the end of a line becomes a blank.
// Fails with USAGE (language, no file, `documents` with `wrapped`), IO, or DATA (what `strict` refuses).
TARN_API tarn_status tarn_sentences_write(tarn_sentences_result *result, const char *output, const char *const *files,
                                          size_t count, const tarn_sentences_options *options) TARN_CHECKED;

#ifdef __cplusplus
}
#endif
#endif
