// Text for BLEU, chrF and TER: the first half of the lines are hypotheses, the rest references. The first two bytes
// choose options.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "tarn/score.h"

enum { MOST_LINES = 64 };

void fuzz_prepare(void) {}

static void bleu(const char *const *hypotheses, const char *const *references, size_t count, unsigned how) {
  tarn_bleu_result result;
  tarn_bleu_options options;
  char line[TARN_SIGNATURE_TEXT];
  const char *const *const streams[] = {references, hypotheses};
  tarn_bleu_default(&options);
  options.tokenizer = (tarn_bleu_tokenizer)(how % TARN_BLEU_TOKENIZER_COUNT);
  options.smoothing = (tarn_bleu_smoothing)(how / 4 % TARN_BLEU_SMOOTHING_COUNT);
  options.lowercase = how / 16 % 2;
  options.effective_order = how / 32 % 2;
  if (fuzz_good(tarn_bleu_corpus(&result, hypotheses, streams, count, 1 + how / 64 % 2, &options))) {
    FUZZ_REQUIRE(result.score >= 0 && result.score <= 100.0 + 1e-9);
    tarn_bleu_signature(line, &result, &options);
  }
  (void)fuzz_good(tarn_bleu_sentence(&result, hypotheses[0], references, count, &options));
}

static void chrf(const char *const *hypotheses, const char *const *references, size_t count, unsigned how) {
  tarn_chrf_result result;
  tarn_chrf_options options;
  char line[TARN_SIGNATURE_TEXT];
  const char *const *const streams[] = {references, hypotheses};
  tarn_chrf_default(&options);
  options.char_order = 1 + (int)(how % 8);
  options.word_order = (int)(how / 8 % 3);
  options.lowercase = how / 32 % 2;
  options.whitespace = how / 64 % 2;
  options.eps_smoothing = how / 128 % 2;
  if (fuzz_good(tarn_chrf_corpus(&result, hypotheses, streams, count, 1 + how % 2, &options))) {
    FUZZ_REQUIRE(result.score >= 0 && result.score <= 100.0 + 1e-9);
    tarn_chrf_signature(line, &result, &options);
  }
  (void)fuzz_good(tarn_chrf_sentence(&result, hypotheses[0], references, count, &options));
}

static void ter(const char *const *hypotheses, const char *const *references, size_t count, unsigned how) {
  tarn_ter_result result;
  char line[TARN_SIGNATURE_TEXT];
  const char *const *const streams[] = {references, hypotheses};
  const tarn_ter_options options = {
      .case_sensitive = how % 2, .normalized = how / 2 % 2, .no_punct = how / 4 % 2, .asian_support = how / 8 % 2};
  if (fuzz_good(tarn_ter_corpus(&result, hypotheses, streams, count, 1 + how / 16 % 2, &options))) {
    FUZZ_REQUIRE(result.score >= 0 && result.edits >= 0);
    tarn_ter_signature(line, &result, &options);
  }
  (void)fuzz_good(tarn_ter_sentence(&result, hypotheses[0], references, count, &options));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tarn_score_lines lines;
  if (size < 2) return 0;
  fuzz_write("lines", data + 2, size - 2);
  if (!fuzz_good(tarn_score_lines_open(&lines, "lines"))) return 0;
  const size_t count = lines.count / 2 < MOST_LINES ? lines.count / 2 : MOST_LINES;
  if (count > 0) {
    bleu(lines.items, lines.items + count, count, data[0]);
    chrf(lines.items, lines.items + count, count, data[1]);
    ter(lines.items, lines.items + count, count, (unsigned)data[0] + data[1]);
  }
  tarn_score_lines_close(&lines);
  return 0;
}
