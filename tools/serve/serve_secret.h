// The bearer token that a server asks for.
#ifndef TARN_TOOLS_SERVE_SECRET_H
#define TARN_TOOLS_SERVE_SECRET_H

#include <stdbool.h>
#include <stddef.h>

#include "cli.h"

enum { SERVE_SECRET_BYTES = 4096 };

typedef struct serve_secret {
  char text[SERVE_SECRET_BYTES];
  size_t length;  // 0: nothing is asked for
} serve_secret;

// Reads the first line of a file, or where `path` is NULL the variable TARN_TOKEN, if it is there. -1, or the exit code
// of a failure whose line is printed: a file that cannot be read, or a token that is empty, too long, or has bytes that
// a header cannot have.
int serve_secret_read(const cli_command *command, serve_secret *secret, const char *path);

// Whether a header "Authorization" (NULL: there is none) has the token. The time that this takes does not depend on
// how much of it is right.
bool serve_secret_matches(const serve_secret *secret, const char *header);

#endif
