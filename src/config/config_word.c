#include "config/config_word.h"

#include <string.h>

#include "tarn/config.h"

const char *tarn__config_word(const char *key, int value) {
  tarn_config_option option;
  for (size_t i = 0; tarn_config_option_at(i, &option); i++) {
    if (strcmp(option.key, key) != 0) continue;
    tarn_config_word word;
    for (size_t w = 0; tarn_config_option_word(&option, w, &word); w++)
      if (word.value == value) return word.word;
  }
  return "";
}
