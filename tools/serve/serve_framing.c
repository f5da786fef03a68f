#include "serve/serve_framing.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { LENGTH_DIGITS = 18 };  // a larger Content-Length does not fit into 64 bits

static bool is_token_byte(unsigned char c) { return isalnum(c) || (c && strchr("!#$%&'*+-.^_`|~", c)); }

static bool is_token(const char *text, size_t size) {
  for (size_t i = 0; i < size; i++)
    if (!is_token_byte((unsigned char)text[i])) return false;
  return size > 0;
}

// --- the request line ------------------------------------------------------------------------------------------------

static char bad_target;  // its address is a state value

void *serve_framing_see(void *user, const char *target, struct MHD_Connection *connection) {
  (void)user, (void)connection;
  bool good = *target != '\0';
  for (const unsigned char *c = (const unsigned char *)target; *c; c++)
    good &= *c > ' ' && *c < 0x7f && *c != '#' && strncmp((const char *)c, "%00", 3) != 0;
  return good ? NULL : &bad_target;
}

bool serve_framing_saw_bad(const void *state) { return state == &bad_target; }

// The length of "http://" or "https://" at the beginning, or 0.
static size_t scheme_of(const char *target) {
  if (strncasecmp(target, "http://", 7) == 0) return 7;
  return strncasecmp(target, "https://", 8) == 0 ? 8 : 0;
}

const char *serve_framing_path(const char *target) {
  const size_t scheme = scheme_of(target);
  if (scheme == 0) return target;
  const char *path = strchr(target + scheme, '/');
  return path ? path : "/";
}

// --- hosts -----------------------------------------------------------------------------------------------------------

bool serve_framing_host(char host[SERVE_HOST_BYTES], const char *text, size_t size) {
  size_t length = 0;
  if (size > 0 && text[0] == '[') {
    const char *end = memchr(text, ']', size);
    struct in6_addr address;
    char inside[INET6_ADDRSTRLEN];
    length = end ? (size_t)(end - text) + 1 : 0;
    if (length < 3 || length - 2 >= sizeof inside) return false;
    memcpy(inside, text + 1, length - 2);
    inside[length - 2] = '\0';
    if (inet_pton(AF_INET6, inside, &address) != 1) return false;
  } else {
    while (length < size && (isalnum((unsigned char)text[length]) || strchr("-._~", text[length]))) length++;
  }
  if (length == 0 || length >= SERVE_HOST_BYTES) return false;
  for (size_t i = length; i < size; i++)
    if (i == length ? text[i] != ':' : !isdigit((unsigned char)text[i])) return false;
  if (size > length + 6) return false;  // ":65535"
  for (size_t i = 0; i < length; i++) host[i] = (char)tolower((unsigned char)text[i]);
  if (length > 1 && host[length - 1] == '.') length--;
  host[length] = '\0';
  return true;
}

// --- the header ------------------------------------------------------------------------------------------------------

typedef struct seen {
  const char *wrong;  // the first error; NULL: none
  int hosts, lengths, codings;
  const char *host, *coding;
} seen;

static bool is_number(const char *text, size_t size) {
  for (size_t i = 0; i < size; i++)
    if (!isdigit((unsigned char)text[i])) return false;
  return size > 0 && size <= LENGTH_DIGITS;
}

// One line: its name, and a value without control bytes.
static enum MHD_Result look(void *user, enum MHD_ValueKind kind, const char *name, size_t name_size, const char *value,
                            size_t size) {
  seen *s = user;
  (void)kind;
  if (value == NULL) value = "", size = 0;
  bool plain = true;
  for (size_t i = 0; i < size; i++) plain &= value[i] == '\t' || ((unsigned char)value[i] >= ' ' && value[i] != 0x7f);
  if (!is_token(name, name_size))
    s->wrong = "the name of a header has a byte that none may have, such as the space before a colon";
  else if (!plain)
    s->wrong = "a header has a control byte";
  else if (strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0)
    s->hosts++, s->host = value;
  else if (strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0)
    s->codings++, s->coding = value;
  else if (strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0 && s->lengths++ == 0 && !is_number(value, size))
    s->wrong = "Content-Length is no number of bytes";
  return s->wrong ? MHD_NO : MHD_YES;
}

// Checks the body length given by all lines together.
static const char *length_wrong(const seen *s, bool old) {
  if (s->lengths > 1) return "there is more than one Content-Length";
  if (s->codings > 1) return "there is more than one Transfer-Encoding";
  if (s->codings && s->lengths) return "Content-Length and Transfer-Encoding exclude each other";
  if (s->codings && old) return "HTTP/1.0 has no Transfer-Encoding";
  return NULL;
}

// The host of the request: that of the target if it has one, which then overrides the header.
static const char *host_wrong(serve_framing *framing, const seen *s, const char *target, bool old) {
  if (s->hosts > 1) return "there is more than one Host";
  if (s->hosts == 0 && !old) return "HTTP/1.1 needs the header Host";
  if (s->hosts && !serve_framing_host(framing->host, s->host, strlen(s->host))) return "Host is no name of a host";
  const size_t scheme = scheme_of(target);
  const char *authority = target + scheme;
  if (scheme && !serve_framing_host(framing->host, authority, strcspn(authority, "/?")))
    return "the target is no address of a page";
  return NULL;
}

bool serve_framing_check(serve_framing *framing, struct MHD_Connection *connection, const char *target,
                         const char *version, serve_request *request) {
  const bool old = strcmp(version, MHD_HTTP_VERSION_1_0) == 0;
  seen s = {0};
  if (!old && strcmp(version, MHD_HTTP_VERSION_1_1) != 0) {
    const bool other = strncmp(version, "HTTP/", 5) == 0 && isdigit((unsigned char)version[5]) && version[6] == '.' &&
                       isdigit((unsigned char)version[7]) && version[8] == '\0' && version[5] != '1';
    serve_request_refuse(request, other ? 505 : 400, "only HTTP/1.1 and HTTP/1.0 are spoken here");
    return false;
  }
  if (framing->bad_target) s.wrong = "the target of the request has a byte that none may have";
  if (!s.wrong) MHD_get_connection_values_n(connection, MHD_HEADER_KIND, look, &s);
  if (!s.wrong) s.wrong = length_wrong(&s, old);
  if (!s.wrong) s.wrong = host_wrong(framing, &s, target, old);
  if (s.wrong) {
    serve_request_refuse(request, 400, "%s", s.wrong);
    return false;
  }
  if (s.codings && strcasecmp(s.coding, "chunked") != 0) {
    const char *comma = strrchr(s.coding, ',');
    const bool last = comma && strcasecmp(comma + 1 + strspn(comma + 1, " \t"), "chunked") == 0;
    serve_request_refuse(request, last ? 501 : 400, "the only Transfer-Encoding that is known is chunked");
    return false;
  }
  return true;
}
