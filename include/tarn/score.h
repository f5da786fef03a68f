// Scores of translations against references: BLEU, chrF and TER, computed as sacreBLEU 2 computes them (Post, "A Call
// for Clarity in Reporting BLEU Scores", WMT 2018), in double precision and in the same order of operations. Intervals
// and tests of differences are in tarn/lab/results.h.
//
// All text is UTF-8 and ends with a zero byte; one string is one sentence. Every malformed sequence of bytes is read as
// one U+FFFD and counted in the result's `invalid`. Characters are Unicode code points, as in Python. Character
// properties are those of the ICU that the library was built with; sacreBLEU's are those of its Python and its `regex`
// module, so the two can only differ on characters that were added to Unicode between those versions.
//
// Nothing here keeps state: every function may be called from several threads at once.
#ifndef TARN_SCORE_H
#define TARN_SCORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  TARN_BLEU_ORDER = 4,         // longest n-gram of BLEU, in words
  TARN_CHRF_ORDER_LIMIT = 16,  // most characters, and most words, of an n-gram of chrF
  TARN_SIGNATURE_TEXT = 256    // bytes that hold any signature with its final zero byte
};

// How BLEU cuts a sentence into words.
typedef enum tarn_bleu_tokenizer {
  TARN_BLEU_TOKENIZER_13A,   // "13a": mteval-v13a, used by WMT; the default of the field
  TARN_BLEU_TOKENIZER_INTL,  // "intl": mteval-v14 international: at Unicode punctuation and symbols
  TARN_BLEU_TOKENIZER_CHAR,  // "char": every character that is not white space is a word
  TARN_BLEU_TOKENIZER_NONE,  // "none": at white space, for text that is already tokenized
  TARN_BLEU_TOKENIZER_COUNT
} tarn_bleu_tokenizer;

// What BLEU does about orders without a match (numbered as in Chen and Cherry, "A Systematic Comparison of Smoothing
// Techniques for Sentence-Level BLEU", WMT 2014).
typedef enum tarn_bleu_smoothing {
  TARN_BLEU_SMOOTHING_EXP,    // "exp", method 3: the k-th order without a match counts 1 / 2^k matches
  TARN_BLEU_SMOOTHING_FLOOR,  // "floor", method 1: such an order counts `smooth_value` matches
  TARN_BLEU_SMOOTHING_ADD_K,  // "add-k", method 2: `smooth_value` is added to matches and totals of orders above 1
  TARN_BLEU_SMOOTHING_NONE,   // "none": the score is then practically 0
  TARN_BLEU_SMOOTHING_COUNT
} tarn_bleu_smoothing;

// The words above, and back. A word that is none of them is TARN_STATUS_USAGE with the nearest one named; the name of
// a value is a static string, "?" for another value.
TARN_API tarn_status tarn_bleu_tokenizer_parse(tarn_bleu_tokenizer *out, const char *word) TARN_CHECKED;
TARN_API tarn_status tarn_bleu_smoothing_parse(tarn_bleu_smoothing *out, const char *word) TARN_CHECKED;
TARN_API const char *tarn_bleu_tokenizer_name(tarn_bleu_tokenizer tokenizer);
TARN_API const char *tarn_bleu_smoothing_name(tarn_bleu_smoothing smoothing);

typedef struct tarn_bleu_options {
  tarn_bleu_tokenizer tokenizer;  // default 13a
  tarn_bleu_smoothing smoothing;  // default exp
  double smooth_value;            // for floor and add-k, finite; negative: 0.1 for floor, 1 for add-k (default -1)
  bool lowercase;                 // lower-case by Unicode's full mapping before tokenizing (default false)
  bool effective_order;           // average over the orders that the hypothesis has only; meant for single sentences
                                  // (default false)
} tarn_bleu_options;

typedef struct tarn_bleu_result {
  double score;                        // 0 .. 100
  double precisions[TARN_BLEU_ORDER];  // percent, smoothed, of 1-grams to 4-grams; all 0 when nothing matches
  double bp;                           // brevity penalty, 0 .. 1
  int64_t counts[TARN_BLEU_ORDER];     // matched n-grams, before smoothing
  int64_t totals[TARN_BLEU_ORDER];     // n-grams of the hypotheses, before smoothing
  int64_t hypothesis_length;           // words
  int64_t reference_length;            // words, of the reference nearest in length for every sentence
  int64_t references;                  // references a sentence; -1 when their number varies
  int64_t invalid;                     // malformed UTF-8 sequences in hypotheses and references
} tarn_bleu_result;

TARN_API void tarn_bleu_default(tarn_bleu_options *options);

// BLEU of a corpus (Papineni et al., ACL 2002). `references[r][s]` is the reference of stream r for sentence s, or NULL
// where that stream has none; an empty string is a reference of no words. Fails with TARN_STATUS_DATA when there is no
// sentence or a sentence has no reference, TARN_STATUS_USAGE on bad options, TARN_STATUS_MEMORY. Options NULL:
// defaults.
TARN_API tarn_status tarn_bleu_corpus(tarn_bleu_result *out, const char *const *hypotheses,
                                      const char *const *const *references, size_t sentences, size_t streams,
                                      const tarn_bleu_options *options) TARN_CHECKED;

// BLEU of one sentence against `count` references. Set `effective_order`, as sacreBLEU does for sentences, unless
// sentences shorter than four words are to score 0 without smoothing.
TARN_API tarn_status tarn_bleu_sentence(tarn_bleu_result *out, const char *hypothesis, const char *const *references,
                                        size_t count, const tarn_bleu_options *options) TARN_CHECKED;

// Writes the line that makes a score comparable: "nrefs:1|case:lc|eff:no|tok:13a|smooth:exp|version:tarn 0.1.0".
TARN_API void tarn_bleu_signature(char text[TARN_SIGNATURE_TEXT], const tarn_bleu_result *result,
                                  const tarn_bleu_options *options);

typedef struct tarn_chrf_options {
  int char_order;      // longest n-gram of characters, 1 .. TARN_CHRF_ORDER_LIMIT (default 6)
  int word_order;      // longest n-gram of words, 0 .. TARN_CHRF_ORDER_LIMIT; 2 makes chrF++ (default 0)
  int beta;            // weight of recall over precision, 1 .. 100 (default 2)
  bool lowercase;      // default false
  bool whitespace;     // keep white space in the n-grams of characters (default false)
  bool eps_smoothing;  // average the F-scores of all orders, orders without n-grams counting 1e-16, as chrF++.py, NLTK
                       // and Moses do, instead of averaging over the orders that exist (default false)
} tarn_chrf_options;

typedef struct tarn_chrf_result {
  double score;        // 0 .. 100
  int64_t references;  // references a sentence; -1 when their number varies
  int64_t invalid;     // malformed UTF-8 sequences in hypotheses and references
} tarn_chrf_result;

TARN_API void tarn_chrf_default(tarn_chrf_options *options);

// chrF (Popovic, WMT 2015) and chrF++ (Popovic, WMT 2017). Of several references the one with the best F-score counts
// for a sentence. Arguments and failures as for BLEU.
TARN_API tarn_status tarn_chrf_corpus(tarn_chrf_result *out, const char *const *hypotheses,
                                      const char *const *const *references, size_t sentences, size_t streams,
                                      const tarn_chrf_options *options) TARN_CHECKED;
TARN_API tarn_status tarn_chrf_sentence(tarn_chrf_result *out, const char *hypothesis, const char *const *references,
                                        size_t count, const tarn_chrf_options *options) TARN_CHECKED;

// "chrF2", "chrF2++": the name with beta and one plus sign a word order.
TARN_API void tarn_chrf_name(char text[TARN_SIGNATURE_TEXT], const tarn_chrf_options *options);
// "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:tarn 0.1.0".
TARN_API void tarn_chrf_signature(char text[TARN_SIGNATURE_TEXT], const tarn_chrf_result *result,
                                  const tarn_chrf_options *options);

typedef struct tarn_ter_options {
  bool case_sensitive;  // default false: lower-case by Unicode's full mapping
  bool normalized;      // Tercom's normalisation: entities of XML, and punctuation cut off (default false)
  bool no_punct;        // remove . , ? : ; ! " ( and ) (default false)
  bool asian_support;   // with `normalized`, cut ideographs and CJK punctuation off each other; with `no_punct`, remove
                        // CJK punctuation (default false)
} tarn_ter_options;

typedef struct tarn_ter_result {
  double score;             // percent: 100 * edits / reference_length, hence from 0 to more than 100; lower is better
  int64_t edits;            // insertions, deletions, substitutions and moves of blocks
  double reference_length;  // words, of the references of a sentence on average
  int64_t references;       // references a sentence; -1 when their number varies
  int64_t invalid;          // malformed UTF-8 sequences in hypotheses and references
} tarn_ter_result;

TARN_API void tarn_ter_default(tarn_ter_options *options);

// TER (Snover et al., AMTA 2006) by Tercom's search. Of several references the one with the fewest edits counts for a
// sentence. Where all references are empty the score is 100, or 0 if there is no edit. Arguments and failures as for
// BLEU; a line of more than 2^28 words fails with TARN_STATUS_DATA.
TARN_API tarn_status tarn_ter_corpus(tarn_ter_result *out, const char *const *hypotheses,
                                     const char *const *const *references, size_t sentences, size_t streams,
                                     const tarn_ter_options *options) TARN_CHECKED;
TARN_API tarn_status tarn_ter_sentence(tarn_ter_result *out, const char *hypothesis, const char *const *references,
                                       size_t count, const tarn_ter_options *options) TARN_CHECKED;

// "nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:tarn 0.1.0".
TARN_API void tarn_ter_signature(char text[TARN_SIGNATURE_TEXT], const tarn_ter_result *result,
                                 const tarn_ter_options *options);

// What a score counted in each sentence of one system. The score of any collection of its sentences follows from them,
// so that resampled test sets (tarn/lab/results.h) are scored without reading a word again.
typedef struct tarn_statistics tarn_statistics;

// The scores with their statistics, which the caller closes. Arguments and failures are those of tarn_bleu_corpus(),
// tarn_chrf_corpus() and tarn_ter_corpus(); on failure *statistics is NULL.
TARN_API tarn_status tarn_bleu_statistics(tarn_statistics **statistics, tarn_bleu_result *out,
                                          const char *const *hypotheses, const char *const *const *references,
                                          size_t sentences, size_t streams,
                                          const tarn_bleu_options *options) TARN_CHECKED;
TARN_API tarn_status tarn_chrf_statistics(tarn_statistics **statistics, tarn_chrf_result *out,
                                          const char *const *hypotheses, const char *const *const *references,
                                          size_t sentences, size_t streams,
                                          const tarn_chrf_options *options) TARN_CHECKED;
TARN_API tarn_status tarn_ter_statistics(tarn_statistics **statistics, tarn_ter_result *out,
                                         const char *const *hypotheses, const char *const *const *references,
                                         size_t sentences, size_t streams,
                                         const tarn_ter_options *options) TARN_CHECKED;
TARN_API void tarn_statistics_close(tarn_statistics **statistics);

// The lines of a text file as scores want them: cut at line feeds, without the white space at their ends.
typedef struct tarn_score_lines {
  const char *const *items;
  size_t count;
  char *name;  // for messages: the path, or "standard input"
} tarn_score_lines;

// Reads `path`, or standard input when it is NULL or "-". Fails with IO, MEMORY, or DATA where the file is not text:
// UTF-16, compressed, a shard, with a zero byte. A byte order mark stays part of its line, as in sacreBLEU, with a
// warning (tarn/process.h). Close frees and zeroes; it accepts NULL and a zeroed struct.
TARN_API tarn_status tarn_score_lines_open(tarn_score_lines *lines, const char *path) TARN_CHECKED;
TARN_API void tarn_score_lines_close(tarn_score_lines *lines);

// Fails with TARN_STATUS_DATA, naming both and their counts, unless they have the same number of lines.
TARN_API tarn_status tarn_score_lines_match(const tarn_score_lines *hypotheses,
                                            const tarn_score_lines *references) TARN_CHECKED;

#ifdef __cplusplus
}
#endif
#endif
