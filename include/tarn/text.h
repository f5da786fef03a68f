// Texts and files of text: what a person typed, sentences, and outputs that are replaced atomically.
#ifndef TARN_TEXT_H
#define TARN_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Small helpers for words that a person typed, and for texts of any bytes.

// The word among `count` candidates that is nearest to `word` by edit distance with transpositions (Damerau 1964), or
// NULL when none is near enough (more than a third of the longer word's letters differ, at least one edit being
// allowed). The result is one of the candidates.
TARN_API const char *tarn_text_nearest(const char *word, const char *const *candidates, size_t count);

// Reads a whole number as written in configurations and options: digits with a sign, or with a power of ten whose
// value is whole: 1000, +7, 1e3, 1.5e3, 20e-1. False, and *value untouched, for all else: 1.5e0, 2.0, 0x10, blanks.
// What is too large becomes the largest or smallest number there is.
TARN_API bool tarn_text_integer(int64_t *value, const char *text);

// Copies a text, such as a path, and puts U+FFFD for every piece of it that is not UTF-8, as JSON requires. `out`
// has room for 3 * strlen(text) + 1 bytes and does not overlap `text`.
TARN_API void tarn_text_repair(char *out, const char *text);

// Columns that the characters of a UTF-8 text take on a terminal, as far as they fit into `most`: two for wide
// characters (East Asian width W and F), none for combining marks. *fits, unless NULL, is set to their bytes.
TARN_API size_t tarn_text_columns(const char *text, size_t length, size_t most, size_t *fits);

// Splitting text into sentences by rules, one sentence a line, as tarn_prepare_run() takes it.
//
// A sentence may end at a full stop, question or exclamation mark or an ellipsis, with the closing quotes and brackets
// after it, before white space. Whether it does is decided by what stands around: abbreviations, initials, ordinals and
// enumerations, small letters, and verbs of speech. Characters have the Sentence_Break property of UAX #29, the word
// lists are those of the language. The result is a function of the text alone.

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

// Files that are replaced atomically, or stay as they were.
//
//   tarn_output_file *output;
//   status = tarn_output_file_open(&output, "translations.en");
//   fprintf(tarn_output_file_stream(output), ...);
//   status = tarn_output_file_commit(&output);

typedef struct tarn_output_file tarn_output_file;

// Makes a temporary file in the folder of `path`: `path.tmp.PID`, `path.tmp.PID.1` where there is such a file, and so
// on; of a long name the first 100 bytes. A link is followed, also to where nothing is yet; the permissions of a file
// that is there are kept. What cannot be replaced is written directly: a device or pipe, and an open descriptor of this
// process (/dev/stdout, /dev/fd/3, /proc/thread-self/fd/3), from where it stands. Temporary files of this path whose
// processes were killed are removed first: those that belong to this user and that no process holds locked. Fails with
// IO (a folder, a file that is write-protected, a folder that cannot be written) or MEMORY.
TARN_API tarn_status tarn_output_file_open(tarn_output_file **output, const char *path) TARN_CHECKED;

// Where to write; its error indicator is looked at when the output is committed.
TARN_API FILE *tarn_output_file_stream(tarn_output_file *output);

// The temporary file, or NULL for what is written directly; valid until the output ends.
TARN_API const char *tarn_output_file_temporary(const tarn_output_file *output);

// Ends the output: writes out what is left and puts the file in its place (write, fsync, rename, fsync of the folder).
// Fails with IO, naming the path; then the file is as it was. Call it right after the last writing, so that errno tells
// why that failed.
TARN_API tarn_status tarn_output_file_commit(tarn_output_file **output) TARN_CHECKED;

// Ends the output and leaves the file as it was; accepts NULL in *output. Of what is written directly, only that is
// dropped which still waits in the stream's buffer.
TARN_API void tarn_output_file_abort(tarn_output_file **output);

#ifdef __cplusplus
}
#endif
#endif
