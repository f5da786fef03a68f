#include <stdio.h>

#include "base/memory.h"
#include "eval/codepoints.h"
#include "eval/ngrams.h"
#include "eval/score_references.h"
#include "eval/statistics.h"
#include "eval/ter_edits.h"
#include "eval/ter_tokenizer.h"
#include "tarn/score.h"

// The statistics of a sentence.
enum { EDITS, REFERENCE_LENGTH, WIDTH };

// Memory kept from sentence to sentence.
typedef struct work {
  const tarn_ter_options *options;
  tarn__codepoints text, spare;
  tarn__ngrams spellings;
  tarn__ter_edits edits;
  uint32_t *words[2];  // symbols of the hypothesis and of a reference
  size_t count[2], capacity[2];
} work;

enum { HYPOTHESIS, REFERENCE };

static void work_close(work *w) {
  tarn__codepoints_close(&w->text);
  tarn__codepoints_close(&w->spare);
  tarn__ngrams_close(&w->spellings);
  tarn__ter_edits_close(&w->edits);
  tarn__free(w->words[HYPOTHESIS]);
  tarn__free(w->words[REFERENCE]);
}

void tarn_ter_default(tarn_ter_options *options) { *options = (tarn_ter_options){0}; }

// The words of the hypothesis get symbols; words that only a reference has get 0, which equals none of them.
static tarn_status read_words(work *w, int side, const char *line, int64_t *invalid) {
  TARN_TRY(tarn__codepoints_decode(&w->text, line, invalid));
  tarn__codepoints_rstrip(&w->text);
  TARN_TRY(tarn__ter_tokenize(&w->text, &w->spare, w->options));
  // sacreBLEU normalises references twice, which splits a few more words ("4.5's." becomes 4.5's and then 4.5 and 's).
  if (side == REFERENCE) {
    tarn__codepoints_join(&w->text);
    TARN_TRY(tarn__ter_tokenize(&w->text, &w->spare, w->options));
  }
  size_t position = 0;
  size_t begin;
  size_t length;
  w->count[side] = 0;
  while (tarn__codepoints_word(&w->text, &position, &begin, &length)) {
    TARN_TRY(tarn__grow(&w->words[side], &w->capacity[side], w->count[side] + 1, sizeof **w->words));
    uint32_t *symbol = &w->words[side][w->count[side]++];
    TARN_TRY(tarn__ngrams_word(&w->spellings, symbol, w->text.data + begin, length, side == HYPOTHESIS));
  }
  return TARN_STATUS_OK;
}

// The fewest edits to a reference, and the mean length of the references.
static tarn_status segment(work *w, double statistics[WIDTH], const char *hypothesis,
                           const tarn__references *references, size_t s, int64_t *invalid) {
  int64_t fewest = -1;
  int64_t lengths = 0;
  int64_t present = 0;
  TARN_TRY(tarn__ngrams_clear(&w->spellings));
  TARN_TRY(read_words(w, HYPOTHESIS, hypothesis, invalid));
  for (size_t r = 0; r < references->count; r++) {
    const char *line = tarn__reference(references, r, s);
    int64_t edits;
    if (!line) continue;
    TARN_TRY(read_words(w, REFERENCE, line, invalid));
    TARN_TRY(tarn__ter_edits_count(&w->edits, &edits, w->words[HYPOTHESIS], w->count[HYPOTHESIS], w->words[REFERENCE],
                                   w->count[REFERENCE]));
    if (fewest < 0 || edits < fewest) fewest = edits;
    lengths += (int64_t)w->count[REFERENCE];
    present++;
  }
  statistics[EDITS] = (double)fewest;
  statistics[REFERENCE_LENGTH] = (double)lengths / (double)present;
  return TARN_STATUS_OK;
}

static double score(const double *sums, const void *options) {
  (void)options;
  if (sums[REFERENCE_LENGTH] > 0) return 100 * (sums[EDITS] / sums[REFERENCE_LENGTH]);
  return sums[EDITS] > 0 ? 100 : 0;
}

// Sums the statistics of all sentences in *out, and writes those of each to `each` (sentences, WIDTH) unless it is
// NULL.
static tarn_status ter(tarn_ter_result *out, double *each, const char *const *hypotheses,
                       const tarn__references *references, size_t sentences, const tarn_ter_options *options) {
  *out = (tarn_ter_result){0};
  tarn_ter_options defaults;
  tarn_ter_default(&defaults);
  work w = {.options = options ? options : &defaults};
  double sums[WIDTH] = {0};
  TARN_TRY(tarn__references_check(&out->references, references, hypotheses, sentences));
  tarn_status status = TARN_STATUS_OK;
  for (size_t s = 0; s < sentences && status == TARN_STATUS_OK; s++) {
    double one[WIDTH];
    status = segment(&w, one, hypotheses[s], references, s, &out->invalid);
    if (status != TARN_STATUS_OK) break;
    for (int k = 0; k < WIDTH; k++) {
      sums[k] += one[k];
      if (each) each[s * WIDTH + (size_t)k] = one[k];
    }
  }
  work_close(&w);
  out->edits = (int64_t)sums[EDITS];
  out->reference_length = sums[REFERENCE_LENGTH];
  out->score = score(sums, NULL);
  return status;
}

tarn_status tarn_ter_corpus(tarn_ter_result *out, const char *const *hypotheses, const char *const *const *references,
                            size_t sentences, size_t streams, const tarn_ter_options *options) {
  return ter(out, NULL, hypotheses, &(tarn__references){.streams = references, .count = streams}, sentences, options);
}

tarn_status tarn_ter_sentence(tarn_ter_result *out, const char *hypothesis, const char *const *references, size_t count,
                              const tarn_ter_options *options) {
  return ter(out, NULL, &hypothesis, &(tarn__references){.single = references, .count = count}, 1, options);
}

tarn_status tarn_ter_statistics(tarn_statistics **statistics, tarn_ter_result *out, const char *const *hypotheses,
                                const char *const *const *references, size_t sentences, size_t streams,
                                const tarn_ter_options *options) {
  TARN_TRY(tarn__statistics_open(statistics, sentences, WIDTH, score, NULL, 0));
  tarn_status status = ter(out, (*statistics)->values, hypotheses,
                           &(tarn__references){.streams = references, .count = streams}, sentences, options);
  if (status != TARN_STATUS_OK) tarn_statistics_close(statistics);
  return status;
}

void tarn_ter_signature(char text[TARN_SIGNATURE_TEXT], const tarn_ter_result *result,
                        const tarn_ter_options *options) {
  char nrefs[TARN__NREFS_TEXT];
  tarn__references_text(nrefs, result->references);
  snprintf(text, TARN_SIGNATURE_TEXT,
           "nrefs:%s|case:%s|tok:tercom|norm:%s|punct:%s|asian:%s|version:tarn " TARN_VERSION, nrefs,
           options->case_sensitive ? "mixed" : "lc", options->normalized ? "yes" : "no",
           options->no_punct ? "no" : "yes", options->asian_support ? "yes" : "no");
}
