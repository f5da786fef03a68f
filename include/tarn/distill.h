// Sequence-level knowledge distillation (Kim and Rush 2016): the training text of a student is a source and its
// translations by a teacher, which are more regular than those of people. Models that do not translate token by token
// need it most (docs/non-autoregressive.md).
#ifndef TARN_DISTILL_H
#define TARN_DISTILL_H

#include <stdint.h>

#include "tarn/data.h"
#include "tarn/status.h"
#include "tarn/translate.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_distill_options {
  const char *teacher;                  // checkpoint or run directory of a translation model; required
  const char *source;                   // text file, one sentence per line; required
  const char *vocab;                    // the student's vocabulary; required
  const char *target_vocab;             // its vocabulary of the target; default NULL: the same
  const char *output;                   // prefix of the files below; required
  tarn_translator_options translation;  // of the teacher; `window` lines are saved at a time; not ranks and profile
} tarn_distill_options;

TARN_API void tarn_distill_default(tarn_distill_options *options);

typedef struct tarn_distill_result {
  int64_t found;                       // lines that an earlier run had translated
  tarn_translate_summary translation;  // of the other lines
  tarn_prepare_result data;
} tarn_distill_result;

// Translates the source by the teacher, and prepares both texts as tarn_prepare_run() does by default:
//   OUTPUT.hyp         the translations, one per line
//   OUTPUT.hyp.origin  a line that identifies the teacher, the source and the options of its translation
//   OUTPUT.tarn        the shard, in the student's vocabularies
// Texts pass between teacher and student, so their vocabularies may differ. While it translates, OUTPUT.hyp.part holds
// the lines so far. After an interruption the same call continues at the first line of the unfinished window, with the
// same result; if OUTPUT.hyp is complete, it is only prepared. Fails with USAGE (options; the model does not
// translate), IO, DATA (damaged files, no text, a source that is a pipe), BUSY (another process is at work on these
// files), MEMORY; with USAGE too if OUTPUT.hyp or OUTPUT.hyp.part has another origin, or none: neither is overwritten.
TARN_API tarn_status tarn_distill_run(tarn_distill_result *result, const tarn_distill_options *options) TARN_CHECKED;

#ifdef __cplusplus
}
#endif
#endif
