// A row of the tables of keys in the documentation: name, type with range and unit, default, meaning with the words it
// takes.
#ifndef TARN_TESTS_OPTION_ROW_H
#define TARN_TESTS_OPTION_ROW_H

#include <stdio.h>
#include <string.h>

#include "tarn/config.h"

static inline void put_option_row(FILE *out, const tarn_config_option *option) {
  fprintf(out, "| `%s` | %s", strrchr(option->key, '.') + 1, option->type);
  if (option->range[0]) fprintf(out, ", %s", option->range);
  if (option->unit[0]) fprintf(out, ", in %s", option->unit);
  fprintf(out, " | %s | %s", option->value[0] ? option->value : "-", option->help);
  tarn_config_word word;
  for (size_t i = 0; tarn_config_option_word(option, i, &word); i++) fprintf(out, "<br>`%s`: %s", word.word, word.text);
  fprintf(out, " |\n");
}

#endif
