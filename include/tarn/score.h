// Scores of translations against references: BLEU, chrF and TER, computed as in sacreBLEU 2 (Post, "A Call for Clarity
// in Reporting BLEU Scores", WMT 2018), in double precision and in the same order of operations. Confidence intervals
// and significance tests are in tarn/lab/results.h.
//
// All text is UTF-8, terminated by a zero byte; one string is one sentence. Every malformed byte sequence is read as
// one U+FFFD and counted in the result's `invalid`. Characters are Unicode code points, as in Python. Character
// properties are those of the ICU that the library was built with; sacreBLEU's are those of its Python and its `regex`
// module. The two can differ only for characters added to Unicode between those versions.
//
// All functions are stateless: several threads may call them at once.
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
  TARN_CHRF_ORDER_LIMIT = 16,  // longest n-gram of chrF, in characters and in words
  TARN_SIGNATURE_TEXT = 256    // size of any signature with its final zero byte, in bytes
};

// How BLEU tokenizes a sentence.
typedef enum tarn_bleu_tokenizer {
  TARN_BLEU_TOKENIZER_13A,   // "13a": mteval-v13a, used by WMT; the usual choice
  TARN_BLEU_TOKENIZER_INTL,  // "intl": mteval-v14 international: splits at Unicode punctuation and symbols
  TARN_BLEU_TOKENIZER_CHAR,  // "char": every character that is not white space is a word
  TARN_BLEU_TOKENIZER_NONE,  // "none": splits at white space, for text that is already tokenized
  TARN_BLEU_TOKENIZER_COUNT
} tarn_bleu_tokenizer;

// Smoothing of BLEU: how n-gram orders without a match count (numbered as in Chen and Cherry, "A Systematic Comparison
// of Smoothing Techniques for Sentence-Level BLEU", WMT 2014).
typedef enum tarn_bleu_smoothing {
  TARN_BLEU_SMOOTHING_EXP,    // "exp", method 3: the k-th order without a match counts 1 / 2^k matches
  TARN_BLEU_SMOOTHING_FLOOR,  // "floor", method 1: such an order counts `smooth_value` matches
  TARN_BLEU_SMOOTHING_ADD_K,  // "add-k", method 2: `smooth_value` is added to matches and totals of orders above 1
  TARN_BLEU_SMOOTHING_NONE,   // "none": the score is then practically 0
  TARN_BLEU_SMOOTHING_COUNT
} tarn_bleu_smoothing;

// The words above, and back. An unknown word fails with TARN_STATUS_USAGE, naming the nearest; the name of a value is a
// static string, "?" for another value.
TARN_API tarn_status tarn_bleu_tokenizer_parse(tarn_bleu_tokenizer *out, const char *word) TARN_CHECKED;
TARN_API tarn_status tarn_bleu_smoothing_parse(tarn_bleu_smoothing *out, const char *word) TARN_CHECKED;
TARN_API const char *tarn_bleu_tokenizer_name(tarn_bleu_tokenizer tokenizer);
TARN_API const char *tarn_bleu_smoothing_name(tarn_bleu_smoothing smoothing);

typedef struct tarn_bleu_options {
  tarn_bleu_tokenizer tokenizer;  // default 13a
  tarn_bleu_smoothing smoothing;  // default exp
  double smooth_value;            // for floor and add-k, finite; negative: 0.1 for floor, 1 for add-k (default -1)
  bool lowercase;                 // lower-case by Unicode's full mapping before tokenizing (default false)
  bool effective_order;           // average only over the orders that the hypothesis has; meant for single sentences
                                  // (default false)
} tarn_bleu_options;

typedef struct tarn_bleu_result {
  double score;                        // 0 .. 100
  double precisions[TARN_BLEU_ORDER];  // percent, smoothed, of 1-grams to 4-grams; all 0 when nothing matches
  double bp;                           // brevity penalty, 0 .. 1
  int64_t counts[TARN_BLEU_ORDER];     // matched n-grams, before smoothing
  int64_t totals[TARN_BLEU_ORDER];     // n-grams of the hypotheses, before smoothing
  int64_t hypothesis_length;           // words
  int64_t reference_length;            // words, of the closest reference in length for each sentence
  int64_t references;                  // references per sentence; -1 if their number varies
  int64_t invalid;                     // malformed UTF-8 sequences in hypotheses and references
} tarn_bleu_result;

TARN_API void tarn_bleu_default(tarn_bleu_options *options);

// BLEU of a corpus (Papineni et al., ACL 2002). `references[r][s]` is the reference of stream r for sentence s, or NULL
// if that stream has none; an empty string is a reference without words. Fails with TARN_STATUS_DATA if there is no
// sentence or a sentence has no reference, TARN_STATUS_USAGE for bad options, or TARN_STATUS_MEMORY. Options NULL:
// defaults.
TARN_API tarn_status tarn_bleu_corpus(tarn_bleu_result *out, const char *const *hypotheses,
                                      const char *const *const *references, size_t sentences, size_t streams,
                                      const tarn_bleu_options *options) TARN_CHECKED;

// BLEU of one sentence against `count` references. Set `effective_order`, as sacreBLEU does for sentences; otherwise
// sentences shorter than four words score 0 without smoothing.
TARN_API tarn_status tarn_bleu_sentence(tarn_bleu_result *out, const char *hypothesis, const char *const *references,
                                        size_t count, const tarn_bleu_options *options) TARN_CHECKED;

// Writes the signature, which makes scores comparable: "nrefs:1|case:lc|eff:no|tok:13a|smooth:exp|version:tarn 0.1.0".
TARN_API void tarn_bleu_signature(char text[TARN_SIGNATURE_TEXT], const tarn_bleu_result *result,
                                  const tarn_bleu_options *options);

typedef struct tarn_chrf_options {
  int char_order;      // longest n-gram of characters, 1 .. TARN_CHRF_ORDER_LIMIT (default 6)
  int word_order;      // longest n-gram of words, 0 .. TARN_CHRF_ORDER_LIMIT; 2 makes chrF++ (default 0)
  int beta;            // weight of recall over precision, 1 .. 100 (default 2)
  bool lowercase;      // default false
  bool whitespace;     // keep white space in character n-grams (default false)
  bool eps_smoothing;  // average the F-scores of all orders, with 1e-16 for orders without n-grams, as chrF++.py, NLTK
                       // and Moses do, instead of averaging over the orders that exist (default false)
} tarn_chrf_options;

typedef struct tarn_chrf_result {
  double score;        // 0 .. 100
  int64_t references;  // references per sentence; -1 if their number varies
  int64_t invalid;     // malformed UTF-8 sequences in hypotheses and references
} tarn_chrf_result;

TARN_API void tarn_chrf_default(tarn_chrf_options *options);

// chrF (Popovic, WMT 2015) and chrF++ (Popovic, WMT 2017). With several references, the one with the best F-score
// counts. Arguments and failures as for BLEU.
TARN_API tarn_status tarn_chrf_corpus(tarn_chrf_result *out, const char *const *hypotheses,
                                      const char *const *const *references, size_t sentences, size_t streams,
                                      const tarn_chrf_options *options) TARN_CHECKED;
TARN_API tarn_status tarn_chrf_sentence(tarn_chrf_result *out, const char *hypothesis, const char *const *references,
                                        size_t count, const tarn_chrf_options *options) TARN_CHECKED;

// "chrF2", "chrF2++": the name with beta and one plus sign per word order.
TARN_API void tarn_chrf_name(char text[TARN_SIGNATURE_TEXT], const tarn_chrf_options *options);
// "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:tarn 0.1.0".
TARN_API void tarn_chrf_signature(char text[TARN_SIGNATURE_TEXT], const tarn_chrf_result *result,
                                  const tarn_chrf_options *options);

typedef struct tarn_ter_options {
  bool case_sensitive;  // default false: lower-case by Unicode's full mapping
  bool normalized;      // Tercom's normalisation: XML entities, and punctuation split off (default false)
  bool no_punct;        // remove . , ? : ; ! " ( and ) (default false)
  bool asian_support;   // with `normalized`, split ideographs and CJK punctuation; with `no_punct`, remove CJK
                        // punctuation (default false)
} tarn_ter_options;

typedef struct tarn_ter_result {
  double score;             // percent: 100 * edits / reference_length, so it may exceed 100; lower is better
  int64_t edits;            // insertions, deletions, substitutions and block moves (shifts)
  double reference_length;  // words; of a sentence the mean over its references
  int64_t references;       // references per sentence; -1 if their number varies
  int64_t invalid;          // malformed UTF-8 sequences in hypotheses and references
} tarn_ter_result;

TARN_API void tarn_ter_default(tarn_ter_options *options);

// TER (Snover et al., AMTA 2006) with Tercom's search. With several references, the one with the fewest edits counts.
// If all references are empty, the score is 100, or 0 without edits. Arguments and failures as for BLEU; a line of more
// than 2^28 words fails with TARN_STATUS_DATA.
TARN_API tarn_status tarn_ter_corpus(tarn_ter_result *out, const char *const *hypotheses,
                                     const char *const *const *references, size_t sentences, size_t streams,
                                     const tarn_ter_options *options) TARN_CHECKED;
TARN_API tarn_status tarn_ter_sentence(tarn_ter_result *out, const char *hypothesis, const char *const *references,
                                       size_t count, const tarn_ter_options *options) TARN_CHECKED;

// "nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:tarn 0.1.0".
TARN_API void tarn_ter_signature(char text[TARN_SIGNATURE_TEXT], const tarn_ter_result *result,
                                 const tarn_ter_options *options);

// Sufficient statistics of a score for each sentence of one system. They give the score of any collection of its
// sentences, so resampled test sets (tarn/lab/results.h) are scored without processing the text again.
typedef struct tarn_statistics tarn_statistics;

// Scores with their statistics; the caller closes these. Arguments and failures as for tarn_bleu_corpus(),
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

// The lines of a text file for scoring: split at line feeds, without trailing white space.
typedef struct tarn_score_lines {
  const char *const *items;
  size_t count;
  char *name;  // for messages: the path, or "standard input"
} tarn_score_lines;

// Reads `path`, or standard input if it is NULL or "-". Fails with IO, MEMORY, or DATA if the file is not text: UTF-16,
// compressed, a shard, with a zero byte. A byte order mark stays part of its line, as in sacreBLEU, with a warning
// (tarn/process.h). Close frees and zeroes; it accepts NULL and a zeroed struct.
TARN_API tarn_status tarn_score_lines_open(tarn_score_lines *lines, const char *path) TARN_CHECKED;
TARN_API void tarn_score_lines_close(tarn_score_lines *lines);

// Fails with TARN_STATUS_DATA, naming both files and their counts, unless they have the same number of lines.
TARN_API tarn_status tarn_score_lines_match(const tarn_score_lines *hypotheses,
                                            const tarn_score_lines *references) TARN_CHECKED;

#ifdef __cplusplus
}
#endif
#endif
