// What languages the model is for. No file of a model says so: whoever starts the server does, and the page and /health
// pass it on.
#ifndef TARN_TOOLS_SERVE_LANGUAGES_H
#define TARN_TOOLS_SERVE_LANGUAGES_H

#include <stdbool.h>

#include "cli.h"

enum { SERVE_LANGUAGES = 32, SERVE_LANGUAGE_BYTES = 36 };  // most of them; bytes of a tag (RFC 5646, 4.4.1) and its end

typedef struct serve_languages {
  int count;  // 0: not known
  char tags[SERVE_LANGUAGES][SERVE_LANGUAGE_BYTES];
} serve_languages;

// Takes --languages apart, tags of languages with commas between them; NULL: not given. -1, or the exit code.
int serve_languages_read(const cli_command *command, serve_languages *languages, const char *text);

// Whether as many are given as the model has: one that translates has two. -1, or the exit code.
int serve_languages_check(const cli_command *command, const serve_languages *languages, bool translates);

#endif
