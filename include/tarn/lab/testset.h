// The score of a run on a test set: translates it with the run's checkpoint and compares with the references; of a
// language model scores minimal pairs or a text; of a classifier compares its answers with the labels.
//
// Beside the run's other files it leaves test.hyp, one detokenized translation a line, and test.json:
//   {"bleu", "signature", "chrf", "chrf_signature", "seconds", "checkpoint", "sentences", "beam", "length_penalty",
//    "precision", "source", "reference"}
// Both are replaced atomically, test.hyp first, so test.json always describes a whole test.hyp. Of a language model
// it leaves test.pairs, one line a paradigm (its name, a space and one digit a pair, 1 for a right one), and test.json
// with accuracies per cent:
//   {"blimp", "low", "high", "pairs", "fields": {NAME: accuracy}, "paradigms": {NAME: accuracy}, "unknown",
//    "truncated", "replaced", "equal", "seconds", "checkpoint", "precision", "folder"}
// Of a classifier it leaves test.json with its measures and their 95 % intervals:
//   {MEASURE: {"value", "low", "high"}, ..., "loss", "rows", "left_out", "seconds", "checkpoint", "precision", "data"}
// Of a text and a language model it leaves test.json with nats a token, perplexity, bits a character and a byte:
//   {"nll", "ppl", "bpc", "bpb", "lines", "tokens", "characters", "bytes", "unknown", "seconds", "checkpoint",
//    "precision", "text", "window", "stride"}
// Of a test that failed a sweep leaves {"status": "failed", "message", ...} in place of test.json.
#ifndef TARN_LAB_TESTSET_H
#define TARN_LAB_TESTSET_H

#include <stdint.h>

#include "tarn/classify.h"
#include "tarn/export.h"
#include "tarn/lm.h"
#include "tarn/score.h"
#include "tarn/status.h"
#include "tarn/translate.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_testset_options {
  const char *run;                     // run directory
  const char *checkpoint;              // file; NULL (default): the one that tarn_checkpoint_find() takes of the run
  const char *source;                  // raw text, one sentence a line
  const char *reference;               // raw text, one translation a line
  const char *blimp;                   // of a language model, in place of both: folder of minimal pairs (tarn/lm.h)
  const char *labelled;                // of a classifier, in place of all: prefix of a shard with labels (tarn/data.h)
  const char *text;                    // of a language model, in place of all: a text file (tarn/lm.h)
  int64_t window, stride;              // of the text, in tokens: windows of `window` (0, the default: model.max_length)
                                       // that advance by `stride`, 1 .. window; 0 (default): line by line
  int64_t beam;                        // of translation; 0 (default): translate.beam of the run. Else 0
  tarn_translate_precision precision;  // of the arithmetic, not of the training; not auto; default fp32
  tarn_translate_overlong
      overlong;       // of the sentences of blimp and the lines of text; default: refuse. Sources are always truncated
  int threads;        // 0: all that the process may use (default)
  tarn_ranks *ranks;  // share the work (tarn/ranks.h): rank 0 has the result and writes the files; the caller's.
                      // Default NULL: this process is alone
} tarn_testset_options;

typedef struct tarn_testset_result {
  double bleu, chrf;  // 0 .. 100; BLEU with valid.lowercase and valid.tokenize of the run, chrF2 in the same case
  char bleu_signature[TARN_SIGNATURE_TEXT], chrf_signature[TARN_SIGNATURE_TEXT];
  int64_t sentences, beam;
  double blimp, blimp_low, blimp_high;  // 0 .. 100; mean over paradigms, and its 95 % interval
  int64_t pairs;
  int64_t unknown, truncated, replaced, equal;  // of the pairs, as in tarn_minimal_pairs_result
  tarn_classify_test labels;                    // of a classifier
  tarn_lm_total text;                           // of a text
  double seconds;                               // of translation, or of scoring the pairs or rows
} tarn_testset_result;

TARN_API void tarn_testset_default(tarn_testset_options *options);

// Fails with USAGE (options, a test that is not for the run's model), IO, DATA (files that do not have equally many
// lines, a damaged checkpoint, a file without pairs, a text without tokens), NUMERIC (a result is not finite), MEMORY.
TARN_API tarn_status tarn_testset_run(tarn_testset_result *result, const tarn_testset_options *options) TARN_CHECKED;

#ifdef __cplusplus
}
#endif
#endif
