#include "config/config_word.h"

#include <stdio.h>
#include <string.h>

#include "config/yaml_tree.h"
#include "description/description.h"

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

void tarn__known_add(tarn__known_words *known, const char *word) {
  const size_t used = strlen(known->list), size = sizeof known->list;
  const char *comma = used > 0 ? ", " : "";
  if (used + strlen(word) + sizeof ", , ..." <= size)
    snprintf(known->list + used, size - used, "%s%s", comma, word);
  else if (strcmp(known->list + used - 3, "...") != 0)
    snprintf(known->list + used, size - used, "%s...", comma);
}

tarn_status tarn__known_fail(const tarn__known_words *known, const char *is, const char *given) {
  char shown[TARN__YAML_SHOWN];
  tarn__yaml_show(shown, given);
  return tarn__fail(TARN_STATUS_USAGE, "\"%s\" is %s one of %s", shown, is, known->list);
}
