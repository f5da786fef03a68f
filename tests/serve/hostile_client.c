// Clients that a server had better survive: random bytes, requests with something wrong, connections that are cut in
// the middle, and others that send a byte at a time.
//
//   hostile_client PORT COUNT SEED
//   hostile_client PORT            reads answers slowly, until the server ends the connection
//
// Sends COUNT requests over loopback, of which every fourth is a good one. A good one must get code 200, and a bad one
// that is whole must get some answer of HTTP. Prints how many were sent, and exits with 1 at the first that was not
// answered as it should be.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PATIENCE_MS = 120000, SLOW = 40, MOST = 70000 };

static uint64_t state;
static int port;

// xorshift64* (Vigna 2016)
static uint32_t draw(uint32_t below) {
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return (uint32_t)((state * 2685821657736338717u) >> 33) % below;
}

// window: bytes that the system may receive ahead; 0: what it likes.
static int open_connection_of(int window) {
  const struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (window > 0) setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &window, sizeof window);
  if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0) return fd;
  fprintf(stderr, "hostile_client: cannot connect: %s\n", strerror(errno));
  exit(1);
}

static int open_connection(void) { return open_connection_of(0); }

// False where the server does not want to read on.
static bool send_all(int fd, const char *bytes, size_t size) {
  while (size > 0) {
    const ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes += sent;
    size -= (size_t)sent;
  }
  return true;
}

// The code of an answer; 0: the connection ended without one, -1: nothing came.
static int read_code(int fd) {
  char text[4096];
  size_t size = 0;
  struct pollfd ready = {.fd = fd, .events = POLLIN};
  while (size < 12) {
    if (poll(&ready, 1, PATIENCE_MS) <= 0) return -1;
    const ssize_t got = recv(fd, text + size, sizeof text - 1 - size, 0);
    if (got <= 0) return 0;
    size += (size_t)got;
  }
  text[size] = '\0';
  int code = 0;
  return sscanf(text, "HTTP/1.%*1d %d", &code) == 1 ? code : 0;
}

static size_t write_post(char *out, const char *path, const char *more, size_t length, const char *body, size_t size) {
  const int head = sprintf(
      out, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%sContent-Length: %zu\r\n\r\n",
      path, more, length);
  memcpy(out + head, body, size);
  return (size_t)head + size;
}

static void fail(const char *what, int code) {
  fprintf(stderr, "hostile_client: %s: %d\n", what, code);
  exit(1);
}

static void good(char *room) {
  const char body[] = "{\"text\":\"Ein Satz.\"}";
  const int fd = open_connection();
  const size_t size = write_post(room, "/translate", "", sizeof body - 1, body, sizeof body - 1);
  if (!send_all(fd, room, size)) fail("a good request was not read", errno);
  const int code = read_code(fd);
  if (code != 200 && code != 429) fail("a good request got code", code);
  close(fd);
}

// Some good request with a few bytes changed, or a tail cut off.
static void changed(char *room) {
  static const char *const bodies[] = {
      "{\"text\":\"Ein Satz.\",\"n_best\":2}", "{\"text\":[\"a\",\"\",\"b\"],\"tokens\":true}",
      "{\"text\":\"\\ud83d\\ude00 \\u00e4\"}", "[[[[[[[[[[[[[[[[[[[[[[{}", "{\"text\":\"\\u0000\"}"};
  const char *body = bodies[draw(5)];
  size_t size = write_post(room, "/translate", "", strlen(body), body, strlen(body));
  const uint32_t changes = 1 + draw(6);
  for (uint32_t i = 0; i < changes; i++) room[draw((uint32_t)size)] = (char)draw(256);
  if (draw(2)) size = draw((uint32_t)size);
  const int fd = open_connection();
  (void)send_all(fd, room, size);
  if (draw(2)) {
    shutdown(fd, SHUT_WR);
    if (read_code(fd) < 0) fail("a changed request got neither an answer nor an end", 0);
  }
  close(fd);
}

static void noise(char *room) {
  const size_t size = draw(MOST);
  for (size_t i = 0; i < size; i++) room[i] = (char)draw(256);
  const int fd = open_connection();
  (void)send_all(fd, room, size);
  shutdown(fd, SHUT_WR);
  if (read_code(fd) < 0) fail("noise got neither an answer nor an end", 0);
  close(fd);
}

// Whole requests that are wrong: each is answered.
static void wrong(char *room) {
  static const struct {
    const char *path, *more, *body;
    int code;
  } requests[] = {{"/translate", "", "{", 400},
                  {"/translate", "", "{\"text\":7}", 400},
                  {"/translate", "", "\xff\xfe", 400},
                  {"/nothing", "", "{}", 404},
                  {"/score", "", "{\"text\":\"a\"}", 404},
                  {"/health", "", "{}", 405},
                  {"/%01%ff/../translate", "", "{}", 404},
                  {"/translate?x=%zz&y", "X: y\r\nX: z\r\n", "{}", 400}};
  const uint32_t which = draw(sizeof requests / sizeof *requests);
  const char *body = requests[which].body;
  const size_t size = write_post(room, requests[which].path, requests[which].more, strlen(body), body, strlen(body));
  const int fd = open_connection();
  if (!send_all(fd, room, size)) fail("a wrong request was not read", errno);
  const int code = read_code(fd);
  if (code != requests[which].code) fail(requests[which].path, code);
  close(fd);
}

// Goes away while its request is in work, once with a reset.
static void cut(char *room) {
  const char body[] = "{\"text\":[\"Ein Satz.\",\"Noch ein Satz, der etwas dauert.\"]}";
  const size_t size = write_post(room, "/translate", "", sizeof body - 1, body, sizeof body - 1);
  const int fd = open_connection();
  (void)send_all(fd, room, size);
  const struct linger reset = {.l_onoff = 1, .l_linger = 0};
  if (draw(2)) setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  close(fd);
}

// Connections that send a byte now and then, while all the others are served.
static int slow[SLOW];

static void drip(char *room) {
  const char body[] = "{\"text\":\"";
  const uint32_t which = draw(SLOW);
  if (slow[which] >= 0 && draw(8) == 0) {
    close(slow[which]);
    slow[which] = -1;
  }
  if (slow[which] < 0) {
    slow[which] = open_connection();
    const size_t size = write_post(room, "/translate", "", 100000, body, sizeof body - 1);
    (void)send_all(slow[which], room, draw((uint32_t)size));
  }
  (void)send_all(slow[which], "x", 1);
}

// Asks for far more than the buffers of a connection hold, and reads a little at a time.
static int read_slowly(void) {
  static const char request[] = "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n";
  char bytes[256];
  const int fd = open_connection_of(2048);
  for (int i = 0; i < 400 && send_all(fd, request, sizeof request - 1); i++) continue;
  while (recv(fd, bytes, sizeof bytes, 0) > 0) usleep(20000);
  close(fd);
  return 0;
}

int main(int argc, char **argv) {
  if (argc != 2 && argc != 4) return 2;
  port = atoi(argv[1]);
  if (argc == 2) return read_slowly();
  const long count = atol(argv[2]);
  state = strtoull(argv[3], NULL, 10) * 2654435761u + 88172645463325252u;
  char *room = malloc(MOST + 4096);
  if (!room) return 1;
  for (int i = 0; i < SLOW; i++) slow[i] = -1;
  void (*const ways[])(char *) = {changed, noise, wrong, cut, drip, changed};
  for (long i = 0; i < count; i++) {
    if (i % 4 == 0)
      good(room);
    else
      ways[draw(sizeof ways / sizeof *ways)](room);
  }
  for (int i = 0; i < SLOW; i++)
    if (slow[i] >= 0) close(slow[i]);
  good(room);
  free(room);
  printf("%ld requests\n", count);
  return 0;
}
