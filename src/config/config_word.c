#include "config/config_word.h"

#include <string.h>

#include "tarn/config.h"

const char *tarn__config_word(const char *key, int value) {
  tarn_config_option option;
  for (size_t i = 0; tarn_config_option_at(i, &option); i++) {
    if (strcmp(option.key, key) != 0) continue;
    for (size_t w = 0; w < option.word_count; w++)
      if (option.words[w].value == value) return option.words[w].word;
  }
  return "";
}
