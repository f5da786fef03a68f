// Models that predict labels: the class of a sentence or of a pair of sentences, a number for it, or the classes of its
// words. Which of these a model predicts depends on its training task and has a verb as its name.
//
//   tarn_classify_options options;
//   tarn_classify_default(&options);
//   tarn_classifier *classifier;
//   status = tarn_classifier_open(&classifier, "runs/sst2", &options);
//   status = tarn_classifier_file(classifier, "reviews.txt", sink, user);
//   tarn_classifier_close(&classifier);
//
// A classifier is used by one thread at a time. It computes with the process's thread pool, whose size it sets.
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

// The name of a kind of prediction: the command (tarn classify), the path of a server (/classify), a method in Python.
typedef struct tarn_verb {
  const char *word;     // "classify"
  const char *doing;    // "classifying"
  const char *summary;  // "Print the labels of ...", for help
  const char *models;   // the models that have it: "a classifier or a regression model"
  bool words;           // labels are those of the words of a line, not of the line
  bool images;          // labels are those of images (tarn_classifier_images()), not of lines
} tarn_verb;
// The verbs from index 0, static; NULL past the last one.
TARN_API const tarn_verb *tarn_verb_at(int index);

typedef struct tarn_classify_options {
  const char *verb;                    // the word of the verb that the model must have; default NULL: any
  tarn_translate_precision precision;  // default auto
  tarn_translate_overlong overlong;    // a row of more tokens than model.max_length is truncated, the longer sentence
                                       // first, and counted, or refused with DATA; default: truncate
  int64_t max_tokens;                  // tokens computed together, 1 .. 2^24; a longer row goes alone; default 4096
  int64_t window;                      // lines read together, 1 .. 1000000; default 1024
  bool strict;                         // refuse invalid UTF-8 instead of replacing it by U+FFFD; default false
  int threads;                         // 0: all available to the process; default 0
  tarn_ranks *ranks;                   // share the work of tarn_classifier_file() and tarn_classifier_test()
                                       // (tarn/process.h); owned by the caller, open as long as the classifier. Default
                                       // NULL: a single process
} tarn_classify_options;

TARN_API void tarn_classify_default(tarn_classify_options *options);

typedef struct tarn_classifier tarn_classifier;

// Opens a checkpoint, or of a run directory the one chosen by tarn_checkpoint_find() (tarn/checkpoint.h). Fails with
// USAGE (options, a model of another task), IO, DATA (a damaged checkpoint) or MEMORY.
TARN_API tarn_status tarn_classifier_open(tarn_classifier **classifier, const char *path,
                                          const tarn_classify_options *options) TARN_CHECKED;
TARN_API void tarn_classifier_close(tarn_classifier **classifier);
// The file that was opened; valid until close.
TARN_API const char *tarn_classifier_path(const tarn_classifier *classifier);
// Number of classes, 0 for a regression model; and the name of class `label`, 0 .. classes - 1, valid until close (""
// for another number).
TARN_API int32_t tarn_classifier_classes(const tarn_classifier *classifier);
TARN_API const char *tarn_classifier_label(const tarn_classifier *classifier, int32_t label);
TARN_API const tarn_verb *tarn_classifier_verb(const tarn_classifier *classifier);

// The prediction for a row, or for a word of a row.
typedef struct tarn_classify_result {
  const double *probabilities;  // [classes]; NULL for regression, and for a word cut off by truncation
  const int32_t *order;         // [classes] by decreasing probability, ties by increasing number; NULL for regression
  double number;                // for regression; else 0
  bool truncated;               // the row was cut to model.max_length
  bool replaced;                // invalid UTF-8 was replaced by U+FFFD
  // If words have labels: the word, its index from 0 and the number of words of its line; else NULL, 0, 0 and 0.
  // Of an image in PNG: the path of its file.
  const char *text;  // not terminated by a zero byte
  size_t length;
  int64_t word, words;
} tarn_classify_result;

// Receives the result of a line, numbered from 1, or those of its words, one by one. The result is valid during the
// call. Any status but TARN_STATUS_OK stops the work and is returned.
typedef tarn_status (*tarn_classify_sink)(void *user, int64_t number, const tarn_classify_result *result);

// Classifies the lines of a text file, pipe or device ("-": standard input), in order. A line is a sentence, two
// sentences separated by a tab, or a sentence with words separated by white space. Fails with IO, DATA (not a text
// file, more than one tab, a sentence without a token or word, input refused by `strict` or `overlong`), NUMERIC (a
// result is not finite), MEMORY, or the sink's status.
TARN_API tarn_status tarn_classifier_file(tarn_classifier *classifier, const char *path, tarn_classify_sink sink,
                                          void *user) TARN_CHECKED;

// The same for `count` lines of lengths[i] bytes in memory; messages give the file name as "text".
TARN_API tarn_status tarn_classifier_lines(tarn_classifier *classifier, const char *const *lines, const size_t *lengths,
                                           size_t count, tarn_classify_sink sink, void *user) TARN_CHECKED;

// A measure and its 95 % interval, from 1000 bootstrap resamples of the rows; whole sentences if words have labels.
typedef struct tarn_classify_measure {
  const tarn_measure *measure;
  double value, low, high;
} tarn_classify_measure;

typedef struct tarn_classify_test {
  tarn_classify_measure measures[TARN_MEASURES];  // accuracy, F1, Matthews correlation; or Pearson's, Spearman's
  int measure_count;
  double loss;       // mean over rows or words: cross-entropy in nats, without label smoothing, or squared error
  int64_t rows;      // rows scored
  int64_t words;     // their words, if words have labels; else 0
  int64_t left_out;  // rows of more tokens than model.max_length, not scored
  double seconds;
} tarn_classify_test;

// Scores a set with labels, prepared with the model's vocabulary (tarn_labelled_prepare()). Its classes are matched to
// the model's by name. Fails with IO, DATA (a damaged shard, another vocabulary, a class unknown to the model, no
// labels), NUMERIC or MEMORY.
TARN_API tarn_status tarn_classifier_test(tarn_classifier *classifier, tarn_classify_test *result,
                                          const char *prefix) TARN_CHECKED;

#ifdef __cplusplus
}
#endif
#endif
