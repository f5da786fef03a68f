#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "eval/codepoints.h"
#include "eval/ngrams.h"
#include "eval/score_references.h"
#include "eval/statistics.h"
#include "tarn/score.h"

// For one order: n-grams of the hypothesis, of the reference, and of both.
typedef struct statistics {
  int64_t hypothesis, reference, match;
} statistics;

enum { ORDERS = 2 * TARN_CHRF_ORDER_LIMIT };  // orders of characters, then of words

// Memory kept from sentence to sentence.
typedef struct work {
  const tarn_chrf_options *options;
  tarn__codepoints hypothesis, reference, squeezed;
  tarn__ngrams grams;
  uint32_t *symbols;  // words of the last line
  size_t symbols_count, symbols_capacity;
} work;

static void work_close(work *w) {
  tarn__codepoints_close(&w->hypothesis);
  tarn__codepoints_close(&w->reference);
  tarn__codepoints_close(&w->squeezed);
  tarn__ngrams_close(&w->grams);
  tarn__free(w->symbols);
}

void tarn_chrf_default(tarn_chrf_options *options) {
  *options = (tarn_chrf_options){.char_order = 6, .word_order = 0, .beta = 2};
}

static tarn_status read_line(const work *w, tarn__codepoints *text, const char *line, int64_t *invalid) {
  TARN_TRY(tarn__codepoints_decode(text, line, invalid));
  if (w->options->lowercase) TARN_TRY(tarn__codepoints_lower(text));
  return TARN_STATUS_OK;
}

// The characters whose n-grams count: all, or all but white space.
static tarn_status squeeze(work *w, const tarn__codepoints *text) {
  TARN_TRY(tarn__codepoints_reserve(&w->squeezed, text->count));
  w->squeezed.count = 0;
  for (size_t i = 0; i < text->count; i++)
    if (w->options->whitespace || !tarn__is_space(text->data[i])) w->squeezed.data[w->squeezed.count++] = text->data[i];
  return TARN_STATUS_OK;
}

static bool is_ascii_punctuation(int32_t c) {
  return c < 0x80 && c > 0 && strchr("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", c);
}

static tarn_status add_word(work *w, const int32_t *spelling, size_t length, bool is_reference) {
  TARN_TRY(tarn__grow(&w->symbols, &w->symbols_capacity, w->symbols_count + 1, sizeof *w->symbols));
  TARN_TRY(tarn__ngrams_word(&w->grams, &w->symbols[w->symbols_count], spelling, length, is_reference));
  w->symbols_count++;
  return TARN_STATUS_OK;
}

// Words as in chrF++: one ASCII punctuation mark is split off the end of a word, or else its front, but not both
// ("(hi)" gives "(hi" and ")"), like Popovic's program.
static tarn_status read_words(work *w, const tarn__codepoints *text, bool is_reference) {
  size_t position = 0;
  size_t begin;
  size_t length;
  w->symbols_count = 0;
  while (tarn__codepoints_word(text, &position, &begin, &length)) {
    const int32_t *word = text->data + begin;
    size_t cut = length;
    if (length > 1 && is_ascii_punctuation(word[length - 1]))
      cut = length - 1;
    else if (length > 1 && is_ascii_punctuation(word[0]))
      cut = 1;
    TARN_TRY(add_word(w, word, cut, is_reference));
    if (cut < length) TARN_TRY(add_word(w, word + cut, length - cut, is_reference));
  }
  return TARN_STATUS_OK;
}

static int64_t grams_of(size_t length, int order) { return length >= (size_t)order ? (int64_t)length - order + 1 : 0; }

// The hypothesis against one reference.
static tarn_status compare(work *w, statistics *stats) {
  const tarn_chrf_options *o = w->options;
  int64_t matched[ORDERS] = {0};
  size_t reference[2];
  size_t hypothesis[2];
  TARN_TRY(tarn__ngrams_clear(&w->grams));
  tarn__ngrams_reference(&w->grams);
  TARN_TRY(squeeze(w, &w->reference));
  TARN_TRY(tarn__ngrams_add(&w->grams, TARN__NGRAMS_CHARACTERS, (const uint32_t *)w->squeezed.data, w->squeezed.count,
                            o->char_order));
  reference[0] = w->squeezed.count;
  TARN_TRY(squeeze(w, &w->hypothesis));
  tarn__ngrams_match(&w->grams, matched, TARN__NGRAMS_CHARACTERS, (const uint32_t *)w->squeezed.data, w->squeezed.count,
                     o->char_order);
  hypothesis[0] = w->squeezed.count;
  if (o->word_order > 0) {
    TARN_TRY(read_words(w, &w->reference, true));
    TARN_TRY(tarn__ngrams_add(&w->grams, TARN__NGRAMS_WORDS, w->symbols, w->symbols_count, o->word_order));
    reference[1] = w->symbols_count;
    TARN_TRY(read_words(w, &w->hypothesis, false));
    tarn__ngrams_match(&w->grams, matched + o->char_order, TARN__NGRAMS_WORDS, w->symbols, w->symbols_count,
                       o->word_order);
    hypothesis[1] = w->symbols_count;
  }
  for (int i = 0; i < o->char_order + o->word_order; i++) {
    int kind = i >= o->char_order;
    int order = kind ? i - o->char_order + 1 : i + 1;
    stats[i].reference = grams_of(reference[kind], order);
    // An order that the reference lacks does not count against the hypothesis.
    stats[i].hypothesis = stats[i].reference ? grams_of(hypothesis[kind], order) : 0;
    stats[i].match = matched[i];
  }
  return TARN_STATUS_OK;
}

// F-beta in percent, in sacreBLEU's order of operations.
static double f_score(const statistics *stats, const tarn_chrf_options *options) {
  const double eps = 1e-16;
  double factor = (double)options->beta * options->beta;
  double score = 0;
  double average_precision = 0;
  double average_recall = 0;
  int effective_order = 0;
  int orders = options->char_order + options->word_order;
  for (int i = 0; i < orders; i++) {
    double match = (double)stats[i].match;
    double precision = stats[i].hypothesis > 0 ? match / (double)stats[i].hypothesis : eps;
    double recall = stats[i].reference > 0 ? match / (double)stats[i].reference : eps;
    double denominator = factor * precision + recall;
    score += denominator > 0 ? (1 + factor) * precision * recall / denominator : eps;
    if (stats[i].hypothesis > 0 && stats[i].reference > 0) {
      average_precision += precision;
      average_recall += recall;
      effective_order++;
    }
  }
  if (options->eps_smoothing) return 100 * score / orders;
  if (effective_order == 0) return 0;
  average_precision /= effective_order;
  average_recall /= effective_order;
  if (average_precision + average_recall == 0) return 0;
  score = (1 + factor) * average_precision * average_recall;
  score /= factor * average_precision + average_recall;
  return 100 * score;
}

// The statistics of sentence s against its best reference.
static tarn_status segment(work *w, statistics *best, const char *hypothesis, const tarn__references *references,
                           size_t s, int64_t *invalid) {
  double best_score = -1;
  TARN_TRY(read_line(w, &w->hypothesis, hypothesis, invalid));
  for (size_t r = 0; r < references->count; r++) {
    const char *line = tarn__reference(references, r, s);
    if (!line) continue;
    statistics stats[ORDERS] = {{0}};
    TARN_TRY(read_line(w, &w->reference, line, invalid));
    TARN_TRY(compare(w, stats));
    double score = f_score(stats, w->options);
    if (score <= best_score) continue;
    best_score = score;
    memcpy(best, stats, sizeof stats);
  }
  return TARN_STATUS_OK;
}

static tarn_status check(const tarn_chrf_options *options) {
  TARN_REQUIRE(options->char_order >= 1 && options->char_order <= TARN_CHRF_ORDER_LIMIT, USAGE,
               "chrF's order of characters must be from 1 to %d, not %d", TARN_CHRF_ORDER_LIMIT, options->char_order);
  TARN_REQUIRE(options->word_order >= 0 && options->word_order <= TARN_CHRF_ORDER_LIMIT, USAGE,
               "chrF's order of words must be from 0 to %d, not %d", TARN_CHRF_ORDER_LIMIT, options->word_order);
  TARN_REQUIRE(options->beta >= 1 && options->beta <= 100, USAGE, "chrF's beta must be from 1 to 100, not %d",
               options->beta);
  return TARN_STATUS_OK;
}

// The size of a sentence's statistics: three numbers per requested order.
static size_t width_of(const tarn_chrf_options *options) {
  return 3 * (size_t)(options->char_order + options->word_order);
}

static double score_of(const double *sums, const void *options) {
  statistics total[ORDERS] = {{0}};
  for (size_t i = 0; 3 * i < width_of(options); i++)
    total[i] = (statistics){(int64_t)sums[3 * i], (int64_t)sums[3 * i + 1], (int64_t)sums[3 * i + 2]};
  return f_score(total, options);
}

// Adds a sentence to the sums, and writes its statistics to `row` unless it is NULL.
static void add(statistics *total, double *row, const statistics *one, size_t width) {
  for (size_t i = 0; 3 * i < width; i++) {
    total[i].hypothesis += one[i].hypothesis;
    total[i].reference += one[i].reference;
    total[i].match += one[i].match;
    if (!row) continue;
    row[3 * i] = (double)one[i].hypothesis;
    row[3 * i + 1] = (double)one[i].reference;
    row[3 * i + 2] = (double)one[i].match;
  }
}

// The statistics of each sentence are kept in *kept unless it is NULL.
static tarn_status chrf(tarn_chrf_result *out, tarn_statistics **kept, const char *const *hypotheses,
                        const tarn__references *references, size_t sentences, const tarn_chrf_options *options) {
  *out = (tarn_chrf_result){0};
  tarn_chrf_options defaults;
  tarn_chrf_default(&defaults);
  if (!options) options = &defaults;
  if (kept) *kept = NULL;
  TARN_TRY(check(options));
  TARN_TRY(tarn__references_check(&out->references, references, hypotheses, sentences));
  size_t width = width_of(options);
  work w = {.options = options};
  statistics total[ORDERS] = {{0}};
  tarn_status status = TARN_STATUS_OK;
  if (kept) status = tarn__statistics_open(kept, sentences, width, score_of, options, sizeof *options);
  for (size_t s = 0; s < sentences && status == TARN_STATUS_OK; s++) {
    statistics best[ORDERS] = {{0}};
    status = segment(&w, best, hypotheses[s], references, s, &out->invalid);
    add(total, kept ? (*kept)->values + s * width : NULL, best, width);
  }
  if (status == TARN_STATUS_OK) out->score = f_score(total, options);
  if (status != TARN_STATUS_OK && kept) tarn_statistics_close(kept);
  work_close(&w);
  return status;
}

tarn_status tarn_chrf_corpus(tarn_chrf_result *out, const char *const *hypotheses, const char *const *const *references,
                             size_t sentences, size_t streams, const tarn_chrf_options *options) {
  return chrf(out, NULL, hypotheses, &(tarn__references){.streams = references, .count = streams}, sentences, options);
}

tarn_status tarn_chrf_sentence(tarn_chrf_result *out, const char *hypothesis, const char *const *references,
                               size_t count, const tarn_chrf_options *options) {
  return chrf(out, NULL, &hypothesis, &(tarn__references){.single = references, .count = count}, 1, options);
}

tarn_status tarn_chrf_statistics(tarn_statistics **kept, tarn_chrf_result *out, const char *const *hypotheses,
                                 const char *const *const *references, size_t sentences, size_t streams,
                                 const tarn_chrf_options *options) {
  return chrf(out, kept, hypotheses, &(tarn__references){.streams = references, .count = streams}, sentences, options);
}

void tarn_chrf_name(char text[TARN_SIGNATURE_TEXT], const tarn_chrf_options *options) {
  static const char plus[TARN_CHRF_ORDER_LIMIT + 1] = "++++++++++++++++";
  int words = options->word_order > 0 ? options->word_order : 0;
  snprintf(text, TARN_SIGNATURE_TEXT, "chrF%d%.*s", options->beta, words, plus);
}

void tarn_chrf_signature(char text[TARN_SIGNATURE_TEXT], const tarn_chrf_result *result,
                         const tarn_chrf_options *options) {
  char nrefs[TARN__NREFS_TEXT];
  tarn__references_text(nrefs, result->references);
  snprintf(text, TARN_SIGNATURE_TEXT, "nrefs:%s|case:%s|eff:%s|nc:%d|nw:%d|space:%s|version:tarn " TARN_VERSION, nrefs,
           options->lowercase ? "lc" : "mixed", options->eps_smoothing ? "no" : "yes", options->char_order,
           options->word_order, options->whitespace ? "yes" : "no");
}
