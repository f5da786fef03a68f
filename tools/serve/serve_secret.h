// The bearer tokens of a server, one of which requests must carry.
#ifndef TARN_TOOLS_SERVE_SECRET_H
#define TARN_TOOLS_SERVE_SECRET_H

#include <stdbool.h>
#include <stddef.h>

#include "cli.h"
#include "serve/serve_rate.h"

enum { SERVE_SECRET_BYTES = 4096, SERVE_SECRETS = 256, SERVE_SECRETS_BYTES = 1 << 16 };  // one, their number, all

typedef struct serve_secret {
  const char *texts[SERVE_SECRETS];  // in `memory`
  size_t lengths[SERVE_SECRETS];
  serve_rate rates[SERVE_SECRETS];  // of the requests with each; the first one of all, if no token is required
  int count;                        // 0: no token required
  char memory[SERVE_SECRETS_BYTES];
} serve_secret;

// Reads the lines of a file, or if `path` is NULL the variable TARN_TOKEN, if it is set. -1, or the exit code of a
// failure that has been printed: a file that cannot be read, has too many tokens or none, or a token that is too long
// or has bytes not allowed in a header. Empty lines are skipped.
int serve_secret_read(const cli_command *command, serve_secret *secret, const char *path);

// Which token a header "Authorization" (NULL: missing) has; 0 if none is required, -1 for none of them. Takes constant
// time for its length, independent of how much of it is correct.
int serve_secret_find(const serve_secret *secret, const char *header);

#endif
