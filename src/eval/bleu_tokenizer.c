#include "eval/bleu_tokenizer.h"

#include <unicode/uchar.h>

#include "eval/rewrite.h"

static bool is_not_number(int32_t c) { return !(U_GET_GC_MASK(c) & U_GC_N_MASK); }
static bool is_punctuation(int32_t c) { return (U_GET_GC_MASK(c) & U_GC_P_MASK) != 0; }
static bool is_symbol(int32_t c) { return (U_GET_GC_MASK(c) & U_GC_S_MASK) != 0; }
static bool is_any(int32_t c) {
  (void)c;
  return true;
}

static tarn_status tokenize_13a(tarn__codepoints *text, tarn__codepoints *spare) {
  tarn__rewrite_replace(text, "<skipped>", 0);
  tarn__rewrite_replace(text, "-\n", 0);
  tarn__rewrite_replace(text, "\n", ' ');
  tarn__rewrite_entities(text);
  TARN_TRY(tarn__rewrite_pad(text, spare));
  TARN_TRY(tarn__rewrite_marks(text, spare));
  return tarn__rewrite_points(text, spare);
}

static tarn_status tokenize_intl(tarn__codepoints *text, tarn__codepoints *spare) {
  TARN_TRY(tarn__rewrite_pair(text, spare, is_not_number, is_punctuation, false));
  TARN_TRY(tarn__rewrite_pair(text, spare, is_punctuation, is_not_number, true));
  return tarn__rewrite_single(text, spare, is_symbol);
}

tarn_status tarn__bleu_tokenize(tarn__codepoints *text, tarn__codepoints *spare, tarn_bleu_tokenizer tokenizer) {
  switch (tokenizer) {
    case TARN_BLEU_TOKENIZER_13A:
      return tokenize_13a(text, spare);
    case TARN_BLEU_TOKENIZER_INTL:
      return tokenize_intl(text, spare);
    case TARN_BLEU_TOKENIZER_CHAR:
      return tarn__rewrite_single(text, spare, is_any);
    case TARN_BLEU_TOKENIZER_NONE:
      return TARN_STATUS_OK;
    case TARN_BLEU_TOKENIZER_COUNT:
      break;
  }
  return tarn__fail(TARN_STATUS_USAGE, "unknown BLEU tokenizer number %d", (int)tokenizer);
}
