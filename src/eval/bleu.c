#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "eval/bleu_tokenizer.h"
#include "eval/codepoints.h"
#include "eval/ngrams.h"
#include "eval/score_references.h"
#include "eval/statistics.h"
#include "tarn/score.h"
#include "tarn/text.h"

static const char *const tokenizer_names[TARN_BLEU_TOKENIZER_COUNT] = {"13a", "intl", "char", "none"};
static const char *const smoothing_names[TARN_BLEU_SMOOTHING_COUNT] = {"exp", "floor", "add-k", "none"};

static tarn_status parse(size_t *index, const char *what, const char *word, const char *const *names, size_t count) {
  for (*index = 0; *index < count; ++*index)
    if (strcmp(word, names[*index]) == 0) return TARN_STATUS_OK;
  const char *nearest = tarn_text_nearest(word, names, count);
  if (nearest) return tarn__fail(TARN_STATUS_USAGE, "unknown %s \"%s\"; did you mean \"%s\"?", what, word, nearest);
  return tarn__fail(TARN_STATUS_USAGE, "unknown %s \"%s\"; there are %s, %s, %s and %s", what, word, names[0], names[1],
                    names[2], names[3]);
}

tarn_status tarn_bleu_tokenizer_parse(tarn_bleu_tokenizer *out, const char *word) {
  size_t index;
  TARN_TRY(parse(&index, "BLEU tokenizer", word, tokenizer_names, TARN_BLEU_TOKENIZER_COUNT));
  *out = (tarn_bleu_tokenizer)index;
  return TARN_STATUS_OK;
}

tarn_status tarn_bleu_smoothing_parse(tarn_bleu_smoothing *out, const char *word) {
  size_t index;
  TARN_TRY(parse(&index, "BLEU smoothing", word, smoothing_names, TARN_BLEU_SMOOTHING_COUNT));
  *out = (tarn_bleu_smoothing)index;
  return TARN_STATUS_OK;
}

const char *tarn_bleu_tokenizer_name(tarn_bleu_tokenizer tokenizer) {
  return (unsigned)tokenizer < TARN_BLEU_TOKENIZER_COUNT ? tokenizer_names[tokenizer] : "?";
}

const char *tarn_bleu_smoothing_name(tarn_bleu_smoothing smoothing) {
  return (unsigned)smoothing < TARN_BLEU_SMOOTHING_COUNT ? smoothing_names[smoothing] : "?";
}

void tarn_bleu_default(tarn_bleu_options *options) {
  *options = (tarn_bleu_options){
      .tokenizer = TARN_BLEU_TOKENIZER_13A, .smoothing = TARN_BLEU_SMOOTHING_EXP, .smooth_value = -1};
}

static double smooth_value(const tarn_bleu_options *options) {
  if (options->smooth_value >= 0) return options->smooth_value;
  return options->smoothing == TARN_BLEU_SMOOTHING_FLOOR ? 0.1 : 1;
}

// The statistics of a sentence for BLEU.
typedef struct bleu_statistics {
  int64_t counts[TARN_BLEU_ORDER];  // matched n-grams
  int64_t totals[TARN_BLEU_ORDER];  // n-grams of the hypothesis
  int64_t hypothesis_length, reference_length;
} bleu_statistics;

// Memory kept from sentence to sentence.
typedef struct work {
  const tarn_bleu_options *options;
  tarn__codepoints text, spare;
  tarn__ngrams grams;
  uint32_t *symbols;  // words of the last line
  size_t symbols_count, symbols_capacity;
} work;

static void work_close(work *w) {
  tarn__codepoints_close(&w->text);
  tarn__codepoints_close(&w->spare);
  tarn__ngrams_close(&w->grams);
  tarn__free(w->symbols);
}

static tarn_status read_words(work *w, const char *line, bool is_reference, int64_t *invalid) {
  TARN_TRY(tarn__codepoints_decode(&w->text, line, invalid));
  if (w->options->lowercase) TARN_TRY(tarn__codepoints_lower(&w->text));
  tarn__codepoints_rstrip(&w->text);
  TARN_TRY(tarn__bleu_tokenize(&w->text, &w->spare, w->options->tokenizer));
  w->symbols_count = 0;
  size_t position = 0;
  size_t begin;
  size_t length;
  while (tarn__codepoints_word(&w->text, &position, &begin, &length)) {
    TARN_TRY(tarn__grow(&w->symbols, &w->symbols_capacity, w->symbols_count + 1, sizeof *w->symbols));
    TARN_TRY(tarn__ngrams_word(&w->grams, &w->symbols[w->symbols_count], w->text.data + begin, length, is_reference));
    w->symbols_count++;
  }
  return TARN_STATUS_OK;
}

// Papineni's "best match length" is known only after the hypothesis is read, so *lengths keeps the lengths.
static int64_t closest(const int64_t *lengths, size_t count, int64_t length) {
  int64_t best = -1;
  int64_t smallest = -1;
  for (size_t i = 0; i < count; i++) {
    int64_t difference = lengths[i] < length ? length - lengths[i] : lengths[i] - length;
    if (smallest >= 0 && (difference > smallest || (difference == smallest && lengths[i] >= best))) continue;
    smallest = difference;
    best = lengths[i];
  }
  return best;
}

// Adds the counts of sentence s to *out.
static tarn_status segment(work *w, tarn_bleu_result *out, const char *hypothesis, const tarn__references *references,
                           size_t s, int64_t *lengths) {
  size_t present = 0;
  TARN_TRY(tarn__ngrams_clear(&w->grams));
  for (size_t r = 0; r < references->count; r++) {
    const char *line = tarn__reference(references, r, s);
    if (!line) continue;
    TARN_TRY(read_words(w, line, true, &out->invalid));
    tarn__ngrams_reference(&w->grams);
    TARN_TRY(tarn__ngrams_add(&w->grams, TARN__NGRAMS_WORDS, w->symbols, w->symbols_count, TARN_BLEU_ORDER));
    lengths[present++] = (int64_t)w->symbols_count;
  }
  TARN_TRY(read_words(w, hypothesis, false, &out->invalid));
  tarn__ngrams_match(&w->grams, out->counts, TARN__NGRAMS_WORDS, w->symbols, w->symbols_count, TARN_BLEU_ORDER);
  int64_t length = (int64_t)w->symbols_count;
  for (int n = 0; n < TARN_BLEU_ORDER; n++) out->totals[n] += length > n ? length - n : 0;
  out->hypothesis_length += length;
  out->reference_length += closest(lengths, present, length);
  return TARN_STATUS_OK;
}

static double floored_log(double x) { return x == 0 ? -9999999999.0 : log(x); }

// The score from the counts, in sacreBLEU's order of operations.
static void finish(tarn_bleu_result *out, const tarn_bleu_options *options) {
  double system_length = (double)out->hypothesis_length;
  double reference_length = (double)out->reference_length;
  out->bp = 1;
  if (system_length < reference_length) out->bp = system_length > 0 ? exp(1 - reference_length / system_length) : 0;
  bool any = false;
  for (int n = 0; n < TARN_BLEU_ORDER; n++) any = any || out->counts[n] > 0;
  if (!any) return;
  double value = smooth_value(options);
  double doubled = 1;
  int order = TARN_BLEU_ORDER;
  for (int n = 0; n < TARN_BLEU_ORDER; n++) {
    double correct = (double)out->counts[n];
    double total = (double)out->totals[n];
    if (options->smoothing == TARN_BLEU_SMOOTHING_ADD_K && n > 0) {
      correct += value;
      total += value;
    }
    if (total == 0) break;
    if (options->effective_order) order = n + 1;
    if (correct != 0) {
      out->precisions[n] = 100.0 * correct / total;
    } else if (options->smoothing == TARN_BLEU_SMOOTHING_EXP) {
      doubled *= 2;
      out->precisions[n] = 100.0 / (doubled * total);
    } else if (options->smoothing == TARN_BLEU_SMOOTHING_FLOOR) {
      out->precisions[n] = 100.0 * value / total;
    }
  }
  double sum = 0;
  for (int n = 0; n < order; n++) sum += floored_log(out->precisions[n]);
  out->score = out->bp * exp(sum / order);
}

static tarn_status check_options(const tarn_bleu_options *options) {
  TARN_REQUIRE((unsigned)options->tokenizer < TARN_BLEU_TOKENIZER_COUNT, USAGE, "unknown BLEU tokenizer number %d",
               (int)options->tokenizer);
  TARN_REQUIRE((unsigned)options->smoothing < TARN_BLEU_SMOOTHING_COUNT, USAGE, "unknown BLEU smoothing number %d",
               (int)options->smoothing);
  TARN_REQUIRE(isfinite(options->smooth_value), USAGE, "the value of BLEU smoothing must be a finite number");
  return TARN_STATUS_OK;
}

// Sums the counts of all sentences in *out, and writes those of each to `each` unless it is NULL.
static tarn_status count(tarn_bleu_result *out, bleu_statistics *each, const char *const *hypotheses,
                         const tarn__references *references, size_t sentences, const tarn_bleu_options *options) {
  TARN_TRY(check_options(options));
  TARN_TRY(tarn__references_check(&out->references, references, hypotheses, sentences));
  work w = {.options = options};
  void *lengths = NULL;
  tarn_status status = tarn__alloc(&lengths, TARN__MEMORY_OTHER, references->count, sizeof(int64_t));
  for (size_t s = 0; s < sentences && status == TARN_STATUS_OK; s++) {
    tarn_bleu_result one = {0};
    status = segment(&w, &one, hypotheses[s], references, s, lengths);
    bleu_statistics statistics = {.hypothesis_length = one.hypothesis_length, .reference_length = one.reference_length};
    for (int n = 0; n < TARN_BLEU_ORDER; n++) {
      out->counts[n] += statistics.counts[n] = one.counts[n];
      out->totals[n] += statistics.totals[n] = one.totals[n];
    }
    out->hypothesis_length += one.hypothesis_length;
    out->reference_length += one.reference_length;
    out->invalid += one.invalid;
    if (each) each[s] = statistics;
  }
  tarn__free(lengths);
  work_close(&w);
  return status;
}

static tarn_status bleu(tarn_bleu_result *out, const char *const *hypotheses, const tarn__references *references,
                        size_t sentences, const tarn_bleu_options *options) {
  *out = (tarn_bleu_result){0};
  tarn_bleu_options defaults;
  tarn_bleu_default(&defaults);
  if (!options) options = &defaults;
  tarn_status status = count(out, NULL, hypotheses, references, sentences, options);
  if (status == TARN_STATUS_OK) finish(out, options);
  return status;
}

tarn_status tarn_bleu_corpus(tarn_bleu_result *out, const char *const *hypotheses, const char *const *const *references,
                             size_t sentences, size_t streams, const tarn_bleu_options *options) {
  return bleu(out, hypotheses, &(tarn__references){.streams = references, .count = streams}, sentences, options);
}

tarn_status tarn_bleu_sentence(tarn_bleu_result *out, const char *hypothesis, const char *const *references,
                               size_t count, const tarn_bleu_options *options) {
  return bleu(out, &hypothesis, &(tarn__references){.single = references, .count = count}, 1, options);
}

// The fields of bleu_statistics, one after the other.
enum { WIDTH = TARN__BLEU_WIDTH };

static double score_of(const double *sums, const void *options) {
  tarn_bleu_result result = {.hypothesis_length = (int64_t)sums[WIDTH - 2],
                             .reference_length = (int64_t)sums[WIDTH - 1]};
  for (int n = 0; n < TARN_BLEU_ORDER; n++) {
    result.counts[n] = (int64_t)sums[n];
    result.totals[n] = (int64_t)sums[TARN_BLEU_ORDER + n];
  }
  finish(&result, options);
  return result.score;
}

static void fill(double *row, const bleu_statistics *one) {
  for (int n = 0; n < TARN_BLEU_ORDER; n++) {
    row[n] = (double)one->counts[n];
    row[TARN_BLEU_ORDER + n] = (double)one->totals[n];
  }
  row[WIDTH - 2] = (double)one->hypothesis_length;
  row[WIDTH - 1] = (double)one->reference_length;
}

tarn_status tarn__bleu_statistics_blank(tarn_statistics **statistics, size_t sentences,
                                        const tarn_bleu_options *options) {
  return tarn__statistics_open(statistics, sentences, WIDTH, score_of, options, sizeof *options);
}

tarn_status tarn_bleu_statistics(tarn_statistics **statistics, tarn_bleu_result *out, const char *const *hypotheses,
                                 const char *const *const *references, size_t sentences, size_t streams,
                                 const tarn_bleu_options *options) {
  *out = (tarn_bleu_result){0};
  *statistics = NULL;
  tarn_bleu_options defaults;
  tarn_bleu_default(&defaults);
  if (!options) options = &defaults;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, sentences, sizeof(bleu_statistics)));
  bleu_statistics *each = memory;
  tarn_status status =
      count(out, each, hypotheses, &(tarn__references){.streams = references, .count = streams}, sentences, options);
  if (status == TARN_STATUS_OK) status = tarn__bleu_statistics_blank(statistics, sentences, options);
  if (status == TARN_STATUS_OK) {
    finish(out, options);
    for (size_t s = 0; s < sentences; s++) fill((*statistics)->values + s * WIDTH, &each[s]);
  }
  tarn__free(each);
  return status;
}

void tarn_bleu_signature(char text[TARN_SIGNATURE_TEXT], const tarn_bleu_result *result,
                         const tarn_bleu_options *options) {
  char nrefs[TARN__NREFS_TEXT];
  char value[32] = "";
  tarn__references_text(nrefs, result->references);
  if (options->smoothing == TARN_BLEU_SMOOTHING_FLOOR || options->smoothing == TARN_BLEU_SMOOTHING_ADD_K)
    snprintf(value, sizeof value, "[%.2f]", smooth_value(options));
  snprintf(text, TARN_SIGNATURE_TEXT, "nrefs:%s|case:%s|eff:%s|tok:%s|smooth:%s%s|version:tarn " TARN_VERSION, nrefs,
           options->lowercase ? "lc" : "mixed", options->effective_order ? "yes" : "no",
           tarn_bleu_tokenizer_name(options->tokenizer), tarn_bleu_smoothing_name(options->smoothing), value);
}
