#include "table_options.h"

#include <string.h>

static int read_mark(const cli_command *command, char *mark, const char *what, const char *word, const char *marks,
                     const char *const *names, size_t count) {
  *mark = 0;
  if (!word) return -1;
  *mark = word[0] && !word[1] && strchr(marks, word[0]) ? word[0] : 0;
  if (*mark) return -1;
  int place = 0;
  const int code = cli_word(command, &place, what, word, names, count);
  *mark = marks[place];
  return code;
}

int table_options_delimiter(const cli_command *command, char *mark, const char *word) {
  static const char *const NAMES[] = {"comma", "semicolon", "tab", "bar", "space"};
  return read_mark(command, mark, "--delimiter", word, ",;\t| ", NAMES, sizeof NAMES / sizeof *NAMES);
}

int table_options_decimal(const cli_command *command, char *mark, const char *word) {
  static const char *const NAMES[] = {"point", "comma"};
  return read_mark(command, mark, "--decimal", word, ".,", NAMES, sizeof NAMES / sizeof *NAMES);
}
