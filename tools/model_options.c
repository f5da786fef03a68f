#include "model_options.h"

#include <string.h>

#include "tarn/text.h"

// The place of a word in a list of two or three, or a usage mistake.
static int take(const cli_command *command, int *value, const char *option, const char *word, const char *const *words,
                size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (strcmp(word, words[i]) != 0) continue;
    *value = (int)i;
    return -1;
  }
  const char *nearest = tarn_text_nearest(word, words, count);
  if (nearest) return cli_usage(command, "--%s cannot be \"%s\"; did you mean %s?", option, word, nearest);
  if (count == 2) return cli_usage(command, "--%s is %s or %s, not \"%s\"", option, words[0], words[1], word);
  return cli_usage(command, "--%s is %s, %s or %s, not \"%s\"", option, words[0], words[1], words[2], word);
}

int model_options_precision(const cli_command *command, tarn_translate_precision *precision, const char *word) {
  static const char *const precisions[] = {"fp32", "bf16", "int8"};
  int value = 0;
  int code = take(command, &value, "precision", word, precisions, 3);
  *precision = (tarn_translate_precision)value;
  return code;
}

int model_options_words(const cli_command *command, tarn_translate_precision *precision,
                        tarn_translate_overlong *overlong, const char *precision_word, const char *overlong_word) {
  static const char *const ways[] = {"truncate", "refuse"};
  int value = 0;
  int code = model_options_precision(command, precision, precision_word);
  if (code >= 0) return code;
  code = take(command, &value, "overlong", overlong_word, ways, 2);
  *overlong = value == 0 ? TARN_TRANSLATE_OVERLONG_TRUNCATE : TARN_TRANSLATE_OVERLONG_REFUSE;
  return code;
}
