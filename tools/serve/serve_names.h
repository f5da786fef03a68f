// By which names the server may be asked. A page of another site can have its own name point to this machine (DNS
// rebinding), and then its scripts reach a server on loopback; but the browser says in Host and Origin whose page it
// is.
#ifndef TARN_TOOLS_SERVE_NAMES_H
#define TARN_TOOLS_SERVE_NAMES_H

#include "cli.h"
#include "serve/serve_framing.h"

typedef struct serve_names {
  bool any;             // every name is: the server is not on loopback, and none was given
  const cli_list *own;  // --allow-host
} serve_names;

// Checks what --allow-host was given. -1, or the exit code.
int serve_names_read(const cli_command *command, const cli_list *own);

// False: the request was refused, with 421 for its host or 403 for the header Origin, which may be NULL.
bool serve_names_check(const serve_names *names, const char *host, const char *origin, serve_request *request);

#endif
