// The listening socket of a server.
#ifndef TARN_TOOLS_SERVE_SOCKET_H
#define TARN_TOOLS_SERVE_SOCKET_H

#include <stdbool.h>

#include "cli.h"

typedef struct serve_socket {
  int fd;
  int port;
  bool loopback;  // reachable from this machine only
  char name[80];  // "127.0.0.1:8080", "[::1]:8080"
} serve_socket;

// Listens on the first available address of a host; port 0: any free one. -1, or the exit code of a failure that has
// been printed.
int serve_socket_open(const cli_command *command, serve_socket *listener, const char *host, int port);

#endif
