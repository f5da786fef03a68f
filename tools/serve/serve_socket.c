#include "serve/serve_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 1024 };

static int listen_on(const struct addrinfo *address) {
  const int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int yes = 1;
  if (fd < 0) return -1;
  // Allows a port with connections of an earlier server still closing.
  if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
      bind(fd, address->ai_addr, address->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
    return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

// The address taken, in the system's notation.
static void describe(serve_socket *listener) {
  union {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
    struct sockaddr_storage room;
  } address;
  socklen_t size = sizeof address;
  char text[INET6_ADDRSTRLEN] = "?";
  if (getsockname(listener->fd, &address.any, &size) != 0) return;
  if (address.any.sa_family == AF_INET) {
    listener->port = ntohs(address.four.sin_port);
    listener->loopback = (ntohl(address.four.sin_addr.s_addr) >> 24) == 127;
    inet_ntop(AF_INET, &address.four.sin_addr, text, sizeof text);
    snprintf(listener->name, sizeof listener->name, "%s:%d", text, listener->port);
  } else {
    listener->port = ntohs(address.six.sin6_port);
    listener->loopback = IN6_IS_ADDR_LOOPBACK(&address.six.sin6_addr);
    inet_ntop(AF_INET6, &address.six.sin6_addr, text, sizeof text);
    snprintf(listener->name, sizeof listener->name, "[%s]:%d", text, listener->port);
  }
}

int serve_socket_open(const cli_command *command, serve_socket *listener, const char *host, int port) {
  const struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
  struct addrinfo *found = NULL;
  char service[16];
  int error = 0;
  *listener = (serve_socket){.fd = -1};
  snprintf(service, sizeof service, "%d", port);
  const int code = getaddrinfo(host, service, &hints, &found);
  if (code != 0) {
    fprintf(stderr, "tarn %s: there is no address %s: %s\n", command->name, host, gai_strerror(code));
    return CLI_FAILURE;
  }
  for (const struct addrinfo *a = found; a && listener->fd < 0; a = a->ai_next) {
    if (a->ai_family != AF_INET && a->ai_family != AF_INET6) continue;
    listener->fd = listen_on(a);
    if (listener->fd < 0 && error == 0) error = errno;
  }
  freeaddrinfo(found);
  if (listener->fd < 0) {
    fprintf(stderr, "tarn %s: cannot listen on port %d of %s: %s\n", command->name, port, host,
            error == EADDRINUSE ? "another program does (--port 0 takes one that is free)" : strerror(error));
    return CLI_FAILURE;
  }
  describe(listener);
  return -1;
}
