#include "eval/ter_tokenizer.h"

#include <string.h>

#include "eval/rewrite.h"

static bool within(int32_t c, int32_t first, int32_t last) { return c >= first && c <= last; }

static bool is_asian_punctuation(int32_t c) {
  return c == 0x3001 || c == 0x3002 || within(c, 0x3008, 0x3011) || within(c, 0x3014, 0x301F) ||
         within(c, 0xFF61, 0xFF65) || c == 0x30FB;
}

static bool is_full_width_punctuation(int32_t c) {
  return c == 0xFF0E || c == 0xFF0C || c == 0xFF1F || c == 0xFF1A || c == 0xFF1B || c == 0xFF01 || c == 0xFF02 ||
         c == 0xFF08 || c == 0xFF09;
}

static bool is_either_punctuation(int32_t c) { return is_asian_punctuation(c) || is_full_width_punctuation(c); }

// Characters that become separate words. sacreBLEU's rules for kana match only a line of nothing but kana, which a line
// with a space at both ends never is.
static bool is_asian(int32_t c) {
  return within(c, 0x4E00, 0x9FFF) || within(c, 0x3200, 0x4DBF) || within(c, 0x31C0, 0x31EF) ||
         within(c, 0x2E80, 0x2EFF) || within(c, 0xF900, 0xFAFF) || within(c, 0xFE30, 0xFE4F) ||
         is_either_punctuation(c);
}

static bool is_western_punctuation(int32_t c) { return c > 0 && c < 0x80 && strchr(".,?:;!\"()", c); }

// s/'s / 's /
static tarn_status split_possessives(tarn__codepoints *text, tarn__codepoints *spare) {
  TARN_TRY(tarn__codepoints_reserve(spare, 2 * text->count));
  spare->count = 0;
  for (size_t i = 0; i < text->count; i++) {
    const int32_t *at = text->data + i;
    if (i + 2 < text->count && at[0] == '\'' && at[1] == 's' && at[2] == ' ') spare->data[spare->count++] = ' ';
    spare->data[spare->count++] = *at;
  }
  tarn__codepoints keep = *text;
  *text = *spare;
  *spare = keep;
  return TARN_STATUS_OK;
}

tarn_status tarn__ter_tokenize(tarn__codepoints *text, tarn__codepoints *spare, const tarn_ter_options *options) {
  if (!text->count) return TARN_STATUS_OK;
  if (!options->case_sensitive) TARN_TRY(tarn__codepoints_lower(text));
  if (options->normalized) {
    tarn__rewrite_replace(text, "\n-", 0);
    tarn__rewrite_replace(text, "\n", ' ');
    tarn__rewrite_entities(text);
    TARN_TRY(tarn__rewrite_pad(text, spare));
    TARN_TRY(tarn__rewrite_marks(text, spare));
    TARN_TRY(split_possessives(text, spare));
    TARN_TRY(tarn__rewrite_points(text, spare));
    if (options->asian_support) TARN_TRY(tarn__rewrite_single(text, spare, is_asian));
  }
  if (options->no_punct) {
    tarn__rewrite_remove(text, is_western_punctuation);
    if (options->asian_support) tarn__rewrite_remove(text, is_either_punctuation);
  }
  return TARN_STATUS_OK;
}
