// The bearer token required by a server.
#ifndef TARN_TOOLS_SERVE_SECRET_H
#define TARN_TOOLS_SERVE_SECRET_H

#include <stdbool.h>
#include <stddef.h>

#include "cli.h"

enum { SERVE_SECRET_BYTES = 4096 };

typedef struct serve_secret {
  char text[SERVE_SECRET_BYTES];
  size_t length;  // 0: no token required
} serve_secret;

// Reads the first line of a file, or if `path` is NULL the variable TARN_TOKEN, if it is set. -1, or the exit code of a
// failure that has been printed: a file that cannot be read, or a token that is empty, too long, or has bytes not
// allowed in a header.
int serve_secret_read(const cli_command *command, serve_secret *secret, const char *path);

// Whether a header "Authorization" (NULL: missing) has the token. Takes constant time, independent of how much of it is
// correct.
bool serve_secret_matches(const serve_secret *secret, const char *header);

#endif
