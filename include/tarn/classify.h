// Using models that tell labels: the class of a sentence or of a pair of sentences, a number for it, or the classes of
// its words. Which of these a model tells follows from what it has learnt, and is named by a verb.
//
//   tarn_classify_options options;
//   tarn_classify_default(&options);
//   tarn_classifier *classifier;
//   status = tarn_classifier_open(&classifier, "runs/sst2", &options);
//   status = tarn_classifier_file(classifier, "reviews.txt", sink, user);
//   tarn_classifier_close(&classifier);
//
// A classifier is used by one thread at a time; it computes with the pool of threads of the process, whose size it
// sets.
#ifndef TARN_CLASSIFY_H
#define TARN_CLASSIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/config.h"
#include "tarn/measure.h"
#include "tarn/status.h"
#include "tarn/translate.h"

#ifdef __cplusplus
extern "C" {
#endif

// What telling labels is called: the command (tarn classify), the path of a server (/classify), a method in Python.
typedef struct tarn_verb {
  const char *word;     // "classify"
  const char *doing;    // "classifying"
  const char *summary;  // "Print the labels of ...", for help
  const char *models;   // whose verb it is: "a classifier or a regression model"
  bool words;           // labels are those of the words of a line, and not of the line
} tarn_verb;
// The verbs from 0 on, static; NULL behind the last one.
TARN_API const tarn_verb *tarn_verb_at(int index);

typedef struct tarn_classify_options {
  const char *verb;                    // the word of the verb that the model must have; default NULL: any
  tarn_translate_precision precision;  // default auto
  tarn_translate_overlong overlong;    // rows of more tokens than model.max_length are truncated, the longer sentence
                                       // first, and counted, or refused with DATA; default: truncate
  int64_t max_tokens;                  // tokens computed together, 1 .. 2^24; a longer row goes alone; default 4096
  int64_t window;                      // lines that are read together, 1 .. 1000000; default 1024
  bool strict;                         // refuse invalid UTF-8 instead of replacing it by U+FFFD; default false
  int threads;                         // 0: all that the process may use; default 0
  tarn_ranks *ranks;                   // share the work of tarn_classifier_file() and tarn_classifier_test()
                                       // (tarn/process.h); the caller's, and open as long as the classifier. Default
                                       // NULL: this process is alone
} tarn_classify_options;

TARN_API void tarn_classify_default(tarn_classify_options *options);

typedef struct tarn_classifier tarn_classifier;

// Opens a checkpoint, or the one that tarn_checkpoint_find() takes of a run directory (tarn/checkpoint.h). Fails with
// USAGE (options, a model of another task), IO, DATA (a damaged checkpoint), or MEMORY.
TARN_API tarn_status tarn_classifier_open(tarn_classifier **classifier, const char *path,
                                          const tarn_classify_options *options) TARN_CHECKED;
TARN_API void tarn_classifier_close(tarn_classifier **classifier);
// The file that was opened; valid until close.
TARN_API const char *tarn_classifier_path(const tarn_classifier *classifier);
// Number of classes, or 0 for a regression model; and the name of class `label`, 0 .. classes - 1, valid until close
// ("" for another number).
TARN_API int32_t tarn_classifier_classes(const tarn_classifier *classifier);
TARN_API const char *tarn_classifier_label(const tarn_classifier *classifier, int32_t label);
TARN_API const tarn_verb *tarn_classifier_verb(const tarn_classifier *classifier);

// The prediction for a row, or for a word of it.
typedef struct tarn_classify_result {
  const double *probabilities;  // [classes]; NULL for regression, and for a word that was cut off with the row's end
  const int32_t *order;         // [classes] by decreasing probability, ties by increasing number; NULL for regression
  double number;                // for regression; else 0
  bool truncated;               // the row was cut to model.max_length
  bool replaced;                // invalid UTF-8 was replaced by U+FFFD
  // Where words have labels: the word, its number from 0 and how many its line has; else NULL, 0, 0 and 0.
  const char *text;  // without a zero byte at its end
  size_t length;
  int64_t word, words;
} tarn_classify_result;

// Receives the result of a line, numbered from 1, or, one after the other, those of its words; it is valid during the
// call. Anything but TARN_STATUS_OK stops the work and is returned.
typedef tarn_status (*tarn_classify_sink)(void *user, int64_t number, const tarn_classify_result *result);

// Classifies the lines of a text file, or of a pipe or device ("-": standard input), in order: one sentence per line,
// or two separated by a tab, or one whose words white space divides. Fails with IO, DATA (a file that is not text, more
// than one tab, a sentence without a token or word, what `strict` and `overlong` refuse), NUMERIC (a result is not
// finite), MEMORY, or what the sink returns.
TARN_API tarn_status tarn_classifier_file(tarn_classifier *classifier, const char *path, tarn_classify_sink sink,
                                          void *user) TARN_CHECKED;

// The same for `count` lines of lengths[i] bytes in memory; messages call them a file "text".
TARN_API tarn_status tarn_classifier_lines(tarn_classifier *classifier, const char *const *lines, const size_t *lengths,
                                           size_t count, tarn_classify_sink sink, void *user) TARN_CHECKED;

// A measure and its 95 % interval, from 1000 bootstrap resamples of the rows, whole sentences where words have labels.
typedef struct tarn_classify_measure {
  const tarn_measure *measure;
  double value, low, high;
} tarn_classify_measure;

typedef struct tarn_classify_test {
  tarn_classify_measure measures[TARN_MEASURES];  // accuracy, F1, Matthews correlation; or Pearson's, Spearman's
  int measure_count;
  double loss;       // mean over rows or words: cross-entropy in nats, without label smoothing, or squared error
  int64_t rows;      // rows scored
  int64_t words;     // their words, where words have labels; else 0
  int64_t left_out;  // rows of more tokens than model.max_length, which were not
  double seconds;
} tarn_classify_test;

// Scores a set with labels, prepared with the model's vocabulary (tarn_labelled_prepare()); its classes are matched
// with the model's by name. Fails with IO, DATA (a damaged shard, another vocabulary, a class that the model does not
// have, no labels), NUMERIC or MEMORY.
TARN_API tarn_status tarn_classifier_test(tarn_classifier *classifier, tarn_classify_test *result,
                                          const char *prefix) TARN_CHECKED;

#ifdef __cplusplus
}
#endif
#endif
