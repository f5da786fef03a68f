#include "serve/serve_names.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

int serve_names_read(const cli_command *command, const cli_list *own) {
  for (size_t i = 0; i < own->count; i++) {
    char host[SERVE_HOST_BYTES];
    const char *text = own->items[i];
    if (!serve_framing_host(host, text, strlen(text)) ||
        strlen(host) + (text[strlen(text) - 1] == '.') != strlen(text)) {
      fprintf(stderr, "tarn %s: --allow-host %s: a name or an address without port is expected, such as example.org\n",
              command->name, text);
      return CLI_USAGE;
    }
  }
  return -1;
}

static bool is_loopback(const char *host) {
  struct in_addr four;
  struct in6_addr six;
  char inside[SERVE_HOST_BYTES];
  if (strcmp(host, "localhost") == 0) return true;
  if (inet_pton(AF_INET, host, &four) == 1) return ntohl(four.s_addr) >> 24 == 127;
  if (host[0] != '[') return false;
  snprintf(inside, sizeof inside, "%.*s", (int)strlen(host) - 2, host + 1);
  return inet_pton(AF_INET6, inside, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

static bool is_own(const serve_names *names, const char *host) {
  for (size_t i = 0; i < names->own->count; i++) {
    char own[SERVE_HOST_BYTES];
    const char *text = names->own->items[i];
    if (serve_framing_host(own, text, strlen(text)) && strcmp(own, host) == 0) return true;
  }
  return is_loopback(host);
}

// An origin is SCHEME://HOST[:PORT], or "null" for a page that hides its origin.
static bool is_own_origin(const serve_names *names, const char *origin) {
  char host[SERVE_HOST_BYTES];
  const char *authority = strstr(origin, "://");
  return authority && serve_framing_host(host, authority + 3, strlen(authority + 3)) && is_own(names, host);
}

bool serve_names_check(const serve_names *names, const char *host, const char *origin, serve_request *request) {
  if (names->any) return true;
  if (*host && !is_own(names, host)) {
    serve_request_refuse(request, 421, "this server is not known as %.200s; --allow-host %.200s would have it answer",
                         host, host);
    return false;
  }
  if (origin && !is_own_origin(names, origin)) {
    serve_request_refuse(request, 403,
                         "pages of %.200s may not ask this server; --allow-host with their host allows it", origin);
    return false;
  }
  return true;
}
