// Text and text files: user input, sentence splitting, and output files that are replaced atomically.
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

// Small helpers for words typed by a user, and for texts of arbitrary bytes.

// The word among `count` candidates that is nearest to `word` by edit distance with transpositions (Damerau 1964), or
// NULL if none is near enough (more than a third of the longer word's letters differ; one edit is always allowed). The
// result is one of the candidates.
TARN_API const char *tarn_text_nearest(const char *word, const char *const *candidates, size_t count);

// Reads an integer as written in configurations and options: digits with an optional sign, or with a power of ten if
// the value is an integer: 1000, +7, 1e3, 1.5e3, 20e-1. Anything else, such as 1.5e0, 2.0, 0x10 or blanks, returns
// false and leaves *value unchanged. Values out of range are clamped to the largest or smallest int64_t.
TARN_API bool tarn_text_integer(int64_t *value, const char *text);

// Copies a text, such as a path, and replaces every part that is not UTF-8 by U+FFFD, as JSON requires. `out` holds 3 *
// strlen(text) + 1 bytes and does not overlap `text`.
TARN_API void tarn_text_repair(char *out, const char *text);

// The width of a UTF-8 text on a terminal, in columns, as far as it fits into `most`: wide characters take two (East
// Asian width W and F), combining marks none. *fits, unless NULL, is set to the bytes that fit.
TARN_API size_t tarn_text_columns(const char *text, size_t length, size_t most, size_t *fits);

// Rule-based sentence splitting: one sentence per line, the input of tarn_prepare_run().
//
// A sentence may end at a full stop, question or exclamation mark or an ellipsis, followed by closing quotes and
// brackets and white space. The context decides: abbreviations, initials, ordinals and enumerations, lower-case
// letters, and verbs of speech. Characters have the Sentence_Break property of UAX #29; the word lists belong to the
// language. The result is a function of the text alone.

typedef struct tarn_sentences_options {
  const char *language;  // "en" (the default) or "de"
  bool wrapped;    // default false: no sentence continues past the end of a line; true: lines are parts of a paragraph,
                   // which ends at an empty line
  bool documents;  // write an empty line at the end of each document: at an empty line of the text and between files;
                   // not with `wrapped`, where an empty line ends a paragraph; default false: write no empty lines
  bool strict;     // refuse invalid UTF-8 instead of replacing it by U+FFFD; default false
} tarn_sentences_options;

TARN_API void tarn_sentences_default(tarn_sentences_options *options);

typedef struct tarn_sentences_result {
  int64_t lines;       // lines read
  int64_t paragraphs;  // non-empty ones: lines, or with `wrapped` groups of lines
  int64_t sentences;   // lines written
  int64_t replaced;    // lines with invalid UTF-8 replaced
} tarn_sentences_result;

// Writes the sentences of all files, in order, to `output`, atomically, creating its folder. The text of a sentence is
// unchanged; white space between sentences is dropped, and with `wrapped` the end of a line becomes a space. Fails with
// USAGE (language, no file, `documents` with `wrapped`), IO, or DATA (input refused by `strict`).
TARN_API tarn_status tarn_sentences_write(tarn_sentences_result *result, const char *output, const char *const *files,
                                          size_t count, const tarn_sentences_options *options) TARN_CHECKED;

// Output files that are replaced atomically, or stay unchanged.
//
//   tarn_output_file *output;
//   status = tarn_output_file_open(&output, "translations.en");
//   fprintf(tarn_output_file_stream(output), ...);
//   status = tarn_output_file_commit(&output);

typedef struct tarn_output_file tarn_output_file;

// Creates a temporary file in the folder of `path`: `path.tmp.PID`, or `path.tmp.PID.1` if that exists, and so on; a
// long name is cut to its first 100 bytes. A symbolic link is followed, even to a missing file; the permissions of an
// existing file are kept. Files that cannot be replaced are written directly: a device or pipe, and an open descriptor
// of this process (/dev/stdout, /dev/fd/3, /proc/thread-self/fd/3), from its current position. Temporary files of this
// path left by killed processes are removed first, if they belong to this user and no process holds a lock on them.
// Fails with IO (a folder, a write-protected file, a folder without write permission) or MEMORY.
TARN_API tarn_status tarn_output_file_open(tarn_output_file **output, const char *path) TARN_CHECKED;

// The stream to write to. Its error indicator is checked on commit.
TARN_API FILE *tarn_output_file_stream(tarn_output_file *output);

// The path of the temporary file, or NULL if the output is written directly; valid until commit or abort.
TARN_API const char *tarn_output_file_temporary(const tarn_output_file *output);

// Closes the output: flushes it and moves the file into place (write, fsync, rename, fsync of the folder). Fails with
// IO, naming the path; then the old file is unchanged. Call it right after the last write, so that errno still has the
// cause of a failed write.
TARN_API tarn_status tarn_output_file_commit(tarn_output_file **output) TARN_CHECKED;

// Closes the output and leaves the old file unchanged; accepts NULL in *output. Of an output written directly, only the
// contents of the stream's buffer are dropped.
TARN_API void tarn_output_file_abort(tarn_output_file **output);

#ifdef __cplusplus
}
#endif
#endif
