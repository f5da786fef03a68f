// The languages of the model. Model files do not name them: they are given when the server starts, and passed on to the
// page and /health.
#ifndef TARN_TOOLS_SERVE_LANGUAGES_H
#define TARN_TOOLS_SERVE_LANGUAGES_H

#include <stdbool.h>

#include "cli.h"

enum {
  SERVE_LANGUAGES = 32,
  SERVE_LANGUAGE_BYTES = 36
};  // maximum number; size of a tag (RFC 5646, 4.4.1) with zero
    // byte

typedef struct serve_languages {
  int count;  // 0: unknown
  char tags[SERVE_LANGUAGES][SERVE_LANGUAGE_BYTES];
} serve_languages;

// Parses --languages, language tags separated by commas; NULL: not given. -1, or the exit code.
int serve_languages_read(const cli_command *command, serve_languages *languages, const char *text);

// Checks that their number fits the model: two for translation. -1, or the exit code.
int serve_languages_check(const cli_command *command, const serve_languages *languages, bool translates);

#endif
