// The host names accepted by the server. A page of another site can make its own name resolve to this machine (DNS
// rebinding), so its scripts reach a server on loopback; but the browser sends the page's host in Host and Origin.
#ifndef TARN_TOOLS_SERVE_NAMES_H
#define TARN_TOOLS_SERVE_NAMES_H

#include "cli.h"
#include "serve/serve_framing.h"

typedef struct serve_names {
  bool any;             // accept any name: the server is not on loopback, and no names were given
  const cli_list *own;  // --allow-host
} serve_names;

// Checks the values of --allow-host. -1, or the exit code.
int serve_names_read(const cli_command *command, const cli_list *own);

// False: the request was refused, with 421 for its host or 403 for the header Origin, which may be NULL.
bool serve_names_check(const serve_names *names, const char *host, const char *origin, serve_request *request);

#endif
