// Options for the format of a table, for all commands that read one.
#ifndef TARN_TOOLS_TABLE_OPTIONS_H
#define TARN_TOOLS_TABLE_OPTIONS_H

#include "cli.h"

// Two entries of a table of options; `source` has two texts, `delimiter` and `decimal`, initially NULL.
#define TABLE_OPTIONS(source)                                                                                        \
  {"delimiter",                                                                                                      \
   CLI_TEXT,                                                                                                         \
   &(source).delimiter,                                                                                              \
   "MARK",                                                                                                           \
   "what divides the table's columns: comma, semicolon, tab, bar or space, or the mark itself (default: found out)", \
   0,                                                                                                                \
   0},                                                                                                               \
  {                                                                                                                  \
    "decimal", CLI_TEXT, &(source).decimal, "MARK",                                                                  \
        "decimal mark of its numbers: point or comma, or the mark itself (default: found out)", 0, 0                 \
  }

// The mark named by an option; 0 if it was not given. -1, or the exit code of a usage error.
int table_options_delimiter(const cli_command *command, char *mark, const char *word);
int table_options_decimal(const cli_command *command, char *mark, const char *word);

#endif
