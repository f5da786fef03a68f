#include "model_options.h"

int model_options_precision(const cli_command *command, tarn_translate_precision *precision, const char *word) {
  const char *names[TARN_TRANSLATE_PRECISION_COUNT];
  int value = 0;
  for (int i = 0; i < TARN_TRANSLATE_PRECISION_COUNT; i++)
    names[i] = tarn_translate_precision_name((tarn_translate_precision)i);
  int code = cli_word(command, &value, "--precision", word, names, TARN_TRANSLATE_PRECISION_COUNT);
  *precision = (tarn_translate_precision)value;
  return code;
}

int model_options_words(const cli_command *command, tarn_translate_precision *precision,
                        tarn_translate_overlong *overlong, const char *precision_word, const char *overlong_word) {
  static const char *const ways[] = {"truncate", "refuse"};
  int value = 0;
  int code = model_options_precision(command, precision, precision_word);
  if (code >= 0) return code;
  code = cli_word(command, &value, "--overlong", overlong_word, ways, 2);
  *overlong = value == 0 ? TARN_TRANSLATE_OVERLONG_TRUNCATE : TARN_TRANSLATE_OVERLONG_REFUSE;
  return code;
}
