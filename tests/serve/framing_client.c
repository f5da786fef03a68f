// Requests that are not framed as RFC 9112 demands, byte for byte. Behind each of them stands a good request that a
// proxy might take for a part of the body, or the other way round.
//
//   framing_client PORT
//   framing_client PORT COUNT   COUNT bodies of 1 MB, all in flight at the same time
//
// A bad form must be answered with the code that is expected (0: not at all), and the connection must end without an
// answer to the good request, which would mean that one was smuggled. A good form must be answered with 200. Prints a
// line for each that failed, and how many were tried; exits with 1 if any failed.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PATIENCE_MS = 60000, MOST = 65536 };

#define HEALTH "GET /health HTTP/1.1\r\n"
#define HOST "Host: localhost\r\n"
#define POST "POST /translate HTTP/1.1\r\n" HOST "Content-Type: application/json\r\n"
#define BODY "{\"text\":\"a\"}"  // 12 bytes
#define NEXT "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"

typedef struct form {
  const char *name;
  const char *bytes;
  size_t size;
  int code;
} form;

#define FORM(name, code, bytes) \
  { name, bytes, sizeof bytes - 1, code }

static const form bad[] = {
    // RFC 9112, section 6.1 and 6.3: how long the body is
    FORM("length and coding", 400,
         POST "Content-Length: 12\r\nTransfer-Encoding: chunked\r\n\r\nc\r\n" BODY "\r\n0\r\n\r\n"),
    FORM("coding and length", 400, POST "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n"),
    FORM("two lengths", 400, POST "Content-Length: 12\r\nContent-Length: 5\r\n\r\n" BODY),
    FORM("two lengths of the same", 400, POST "Content-Length: 12\r\nContent-Length: 12\r\n\r\n" BODY),
    FORM("two lengths, one in small letters", 400, POST "Content-Length: 12\r\ncontent-length: 5\r\n\r\n" BODY),
    FORM("a list of lengths", 400, POST "Content-Length: 12, 12\r\n\r\n" BODY),
    FORM("a list of two lengths", 400, POST "Content-Length: 12, 5\r\n\r\n" BODY),
    FORM("a length with a sign", 400, POST "Content-Length: +12\r\n\r\n" BODY),
    FORM("a negative length", 400, POST "Content-Length: -1\r\n\r\n" BODY),
    FORM("a length in hexadecimal", 400, POST "Content-Length: 0xc\r\n\r\n" BODY),
    FORM("a length with a tail", 400, POST "Content-Length: 12a\r\n\r\n" BODY),
    FORM("a length with a space in it", 400, POST "Content-Length: 1 2\r\n\r\n" BODY),
    FORM("no length", 400, POST "Content-Length:\r\n\r\n" BODY),
    FORM("a length beyond 64 bits", 413, POST "Content-Length: 18446744073709551628\r\n\r\n" BODY),
    FORM("a fraction of a length", 400, POST "Content-Length: 12.0\r\n\r\n" BODY),
    FORM("an unknown coding", 400, POST "Transfer-Encoding: xchunked\r\n\r\nc\r\n" BODY "\r\n0\r\n\r\n"),
    FORM("chunked not the last", 400, POST "Transfer-Encoding: chunked, identity\r\n\r\nc\r\n" BODY "\r\n0\r\n\r\n"),
    FORM("a coding before chunked", 501, POST "Transfer-Encoding: gzip, chunked\r\n\r\nc\r\n" BODY "\r\n0\r\n\r\n"),
    FORM("the coding identity", 400, POST "Transfer-Encoding: identity\r\n\r\n" BODY),
    FORM("an empty coding", 400, POST "Transfer-Encoding:\r\n\r\nc\r\n" BODY "\r\n0\r\n\r\n"),
    FORM("two codings", 400,
         POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\nc\r\n" BODY "\r\n0\r\n\r\n"),
    FORM("two codings, one hidden", 400,
         POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\nc\r\n" BODY "\r\n0\r\n\r\n"),
    FORM("a quoted coding", 400, POST "Transfer-Encoding: \"chunked\"\r\n\r\nc\r\n" BODY "\r\n0\r\n\r\n"),
    FORM("a coding in HTTP/1.0", 400,
         "POST /translate HTTP/1.0\r\n" HOST
         "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nc\r\n" BODY "\r\n0\r\n\r\n"),
    FORM("a coding of a request without body", 400,
         HEALTH HOST "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n"),
    // section 5: lines of the header
    FORM("a space before the colon of a coding", 400,
         POST "Transfer-Encoding : chunked\r\n\r\nc\r\n" BODY "\r\n0\r\n\r\n"),
    FORM("a tab before the colon of a coding", 400,
         POST "Transfer-Encoding\t: chunked\r\n\r\nc\r\n" BODY "\r\n0\r\n\r\n"),
    FORM("a space before the colon of a length", 400, POST "Content-Length : 12\r\n\r\n" BODY),
    FORM("a line without colon", 400, HEALTH HOST "Transfer-Encoding chunked\r\n\r\n"),
    FORM("a name with a parenthesis", 400, HEALTH HOST "A(b): x\r\n\r\n"),
    FORM("a name with a byte of no ASCII", 400, HEALTH HOST "A\xc3\xa4: x\r\n\r\n"),
    FORM("a name with a control byte", 400,
         HEALTH HOST "A\x01"
                     "b: x\r\n\r\n"),
    FORM("a value with a control byte", 400, HEALTH HOST "A: x\x01y\r\n\r\n"),
    FORM("a value with DEL", 400, HEALTH HOST "A: x\x7fy\r\n\r\n"),
    FORM("a return alone in a value", 400, HEALTH HOST "A: x\rContent-Length: 5\r\n\r\n"),
    FORM("a first line that begins with a space", 400, HEALTH " A: x\r\n" HOST "\r\n"),
    // section 3.2: hosts
    FORM("no host", 400, HEALTH "\r\n"),
    FORM("two hosts", 400, HEALTH HOST "Host: example.org\r\n\r\n"),
    FORM("two hosts of the same", 400, HEALTH HOST HOST "\r\n"),
    FORM("an empty host", 400, HEALTH "Host:\r\n\r\n"),
    FORM("a host with a path", 400, HEALTH "Host: localhost/x\r\n\r\n"),
    FORM("a host with a user", 400, HEALTH "Host: me@localhost\r\n\r\n"),
    FORM("a host with a space", 400, HEALTH "Host: local host\r\n\r\n"),
    FORM("a host with a port of letters", 400, HEALTH "Host: localhost:http\r\n\r\n"),
    FORM("a list of hosts", 400, HEALTH "Host: localhost, example.org\r\n\r\n"),
    FORM("a broken address", 400, HEALTH "Host: [::1\r\n\r\n"),
    FORM("another host", 421, HEALTH "Host: example.org\r\n\r\n"),
    FORM("a host that begins as loopback does", 421, HEALTH "Host: 127.0.0.1.example.org\r\n\r\n"),
    FORM("another host in the target", 421, "GET http://example.org/health HTTP/1.1\r\n" HOST "\r\n"),
    FORM("a page of another host", 403, HEALTH HOST "Origin: https://example.org\r\n\r\n"),
    FORM("a page of nobody", 403, HEALTH HOST "Origin: null\r\n\r\n"),
    // section 3: the first line
    FORM("a path with %00", 400, "GET /health%00 HTTP/1.1\r\n" HOST "\r\n"),
    FORM("a path with %00 and more", 400, "GET /health%00/x HTTP/1.1\r\n" HOST "\r\n"),
    FORM("a path with a control byte", 400, "GET /health\x01 HTTP/1.1\r\n" HOST "\r\n"),
    FORM("a path with a byte of no ASCII", 400, "GET /health\xff HTTP/1.1\r\n" HOST "\r\n"),
    FORM("a path with a fragment", 400, "GET /health#x HTTP/1.1\r\n" HOST "\r\n"),
    FORM("no version", 400, "GET /health\r\n" HOST "\r\n"),
    FORM("a version in small letters", 400, "GET /health http/1.1\r\n" HOST "\r\n"),
    FORM("a version with two digits", 400, "GET /health HTTP/1.10\r\n" HOST "\r\n"),
    FORM("a version with a tail", 400, "GET /health HTTP/1.1x\r\n" HOST "\r\n"),
    FORM("version 1.2", 400, "GET /health HTTP/1.2\r\n" HOST "\r\n"),
    FORM("version 2.0", 505, "GET /health HTTP/2.0\r\n" HOST "\r\n"),
    FORM("version 3.0", 505, "GET /health HTTP/3.0\r\n" HOST "\r\n"),
    FORM("a path with a space", 0, "GET /health x HTTP/1.1\r\n" HOST "\r\n"),
    // section 7.1: chunks
    FORM("a chunk of no number", 400, POST "Transfer-Encoding: chunked\r\n\r\nx\r\n" BODY "\r\n0\r\n\r\n"),
    FORM("a chunk of a negative size", 400, POST "Transfer-Encoding: chunked\r\n\r\n-c\r\n" BODY "\r\n0\r\n\r\n"),
    FORM("a chunk in hexadecimal with 0x", 400, POST "Transfer-Encoding: chunked\r\n\r\n0xc\r\n" BODY "\r\n0\r\n\r\n"),
    FORM("a chunk beyond 64 bits", 413,
         POST "Transfer-Encoding: chunked\r\n\r\n1000000000000000c\r\n" BODY "\r\n0\r\n\r\n"),
    FORM("a chunk that is longer than it says", 400,
         POST "Transfer-Encoding: chunked\r\n\r\n3\r\n" BODY "\r\n0\r\n\r\n"),
};

static const form good[] = {
    FORM("a path", 200, HEALTH HOST "\r\n"),
    FORM("a path with a question", 200, "GET /health?a=b HTTP/1.1\r\n" HOST "\r\n"),
    FORM("a body with its length", 200, POST "Content-Length: 12\r\n\r\n" BODY),
    FORM("a body in chunks", 200, POST "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"tex\r\n7\r\nt\":\"a\"}\r\n0\r\n\r\n"),
    FORM("a coding in capitals", 200, POST "Transfer-Encoding: Chunked\r\n\r\nC\r\n" BODY "\r\n0\r\n\r\n"),
    FORM("a host with a port", 200, HEALTH "Host: localhost:8080\r\n\r\n"),
    FORM("a host that ends with a dot", 200, HEALTH "Host: LocalHost.\r\n\r\n"),
    FORM("an address", 200, HEALTH "Host: 127.0.0.1\r\n\r\n"),
    FORM("another address of loopback", 200, HEALTH "Host: 127.1.2.3:80\r\n\r\n"),
    FORM("an address of IPv6", 200, HEALTH "Host: [::1]:8080\r\n\r\n"),
    FORM("a name that --allow-host gives", 200, HEALTH "Host: tarn.example\r\n\r\n"),
    FORM("a page of loopback", 200, HEALTH HOST "Origin: http://localhost:8080\r\n\r\n"),
    FORM("a page of a name that --allow-host gives", 200, HEALTH HOST "Origin: https://tarn.example\r\n\r\n"),
    FORM("a target in absolute form", 200, "GET http://localhost/health HTTP/1.1\r\n" HOST "\r\n"),
    FORM("HTTP/1.0 without host", 200, "GET /health HTTP/1.0\r\n\r\n"),
    FORM("values with tabs and bytes of UTF-8", 200, HEALTH HOST "A: \t\xc3\xa4 \r\n\r\n"),
};

static int open_connection(int port) {
  const struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0) return fd;
  perror("framing_client: cannot connect");
  exit(1);
}

// Reads until the connection ends, or, where `first` is all that is waited for, until an answer has begun.
static bool read_answers(int fd, char text[MOST], bool first) {
  size_t size = 0;
  struct pollfd ready = {.fd = fd, .events = POLLIN};
  for (;;) {
    text[size] = '\0';
    if (first && size >= 12) return true;
    if (size == MOST - 1 || poll(&ready, 1, PATIENCE_MS) <= 0) return false;
    const ssize_t got = recv(fd, text + size, MOST - 1 - size, 0);
    if (got <= 0) return true;
    for (ssize_t i = 0; i < got; i++)
      if (text[size + (size_t)i] == '\0') text[size + (size_t)i] = ' ';
    size += (size_t)got;
  }
}

static int code_of(const char *text) {
  int code = 0;
  return sscanf(text, "HTTP/1.%*1d %d", &code) == 1 ? code : 0;
}

static int try_form(int port, const form *f, bool is_good) {
  static char text[MOST];
  const int fd = open_connection(port);
  const bool sent = send(fd, f->bytes, f->size, MSG_NOSIGNAL) == (ssize_t)f->size;
  if (!is_good) (void)send(fd, NEXT, sizeof NEXT - 1, MSG_NOSIGNAL);
  const bool ended = read_answers(fd, text, is_good);
  const int code = code_of(text);
  const bool smuggled = !is_good && strstr(text, "HTTP/1.1 200") != NULL;
  close(fd);
  if (sent && ended && code == f->code && !smuggled) return 0;
  fprintf(stderr, "framing_client: %s: code %d, expected %d%s; the connection %s\n", f->name, code, f->code,
          smuggled ? "; the next request was answered" : "", ended ? "ended" : "stays open");
  return 1;
}

// Sends COUNT bodies but for their last byte, sees that others are answered meanwhile, and ends them: each gets 503 for
// want of room, or 413 for its long text. Then all is as before.
static int flood(int port, int count) {
  enum { SIZE = 1000000 };
  static const char end[] = "\"}";
  static char text[MOST];
  char *body = malloc(SIZE), head[256];
  int *fds = calloc((size_t)count, sizeof *fds), refused = 0, failed = 0;
  if (!body || !fds || count < 1) return 1;
  memset(body, 'a', SIZE);
  memcpy(body, "{\"text\":\"", 9);
  memcpy(body + SIZE - 2, end, 2);
  const int size = snprintf(head, sizeof head, POST "Content-Length: %d\r\n\r\n", SIZE);
  for (int i = 0; i < count; i++) {
    fds[i] = open_connection(port);
    if (send(fds[i], head, (size_t)size, MSG_NOSIGNAL) != size) failed++;
    for (int sent = 0; sent < SIZE - 1;) {
      const ssize_t now = send(fds[i], body + sent, (size_t)(SIZE - 1 - sent), MSG_NOSIGNAL);
      if (now <= 0) {
        failed++;
        break;
      }
      sent += (int)now;
    }
    if (i % 8 == 7) failed += try_form(port, &good[0], true);
  }
  for (int i = 0; i < count; i++) {
    (void)send(fds[i], end + 1, 1, MSG_NOSIGNAL);
    const int code = read_answers(fds[i], text, true) ? code_of(text) : 0;
    refused += code == 503 && strstr(text, "Retry-After: ") != NULL;
    if (code != 503 && code != 413) failed++, fprintf(stderr, "framing_client: body %d: code %d\n", i, code);
    close(fds[i]);
  }
  failed += try_form(port, &good[2], true);
  printf("%d bodies, %d refused with 503, %d failed\n", count, refused, failed);
  free(body);
  free(fds);
  return failed > 0 || refused < count - 2;
}

int main(int argc, char **argv) {
  const int port = argc >= 2 ? atoi(argv[1]) : 0;
  if (argc == 3) return flood(port, atoi(argv[2]));
  int failed = 0;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) failed += try_form(port, &bad[i], false);
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) failed += try_form(port, &good[i], true);
  printf("%zu bad forms, %zu good ones, %d failed\n", sizeof bad / sizeof *bad, sizeof good / sizeof *good, failed);
  return failed > 0;
}
