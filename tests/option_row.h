// The tables of keys in the documentation. A row has the name, the type with range and unit, the default, and the
// meaning with the words.
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

// A section of docs/configuration.md. If it has the rows of an earlier section, as decoder has those of encoder, it
// only refers to that. `*text` is the buffer of `out`, from open_memstream().
static inline void put_option_section(FILE *out, char *const *text, const char *section, const char *rows) {
  static const char head[] = "| key | type | default | meaning |\n| --- | --- | --- | --- |\n";
  const char *name = NULL;
  fflush(out);
  for (const char *at = *text; (at = strstr(at, "### ")) != NULL; at++) {
    const char *body = strstr(at, head);
    if (!body) continue;  // refers to another section
    body += strlen(head);
    if (strncmp(body, rows, strlen(rows)) != 0) continue;
    if (body[strlen(rows)] == '\n' || body[strlen(rows)] == '\0') name = at + strlen("### ");
  }
  if (name)
    fprintf(out, "\n### %s\n\nThe keys of `%.*s`.\n", section, (int)strcspn(name, "\n"), name);
  else
    fprintf(out, "\n### %s\n\n%s%s", section, head, rows);
}

#endif
