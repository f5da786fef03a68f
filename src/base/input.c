#include "base/input.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/unpack.h"

enum { PACKED_BYTES = 1 << 16 };
static const size_t MOST_BYTES = 1 << 30;  // per step: zlib counts with 32 bits
// Text compresses to a tenth of its size, and repetitive text to a hundredth. Beyond this size a larger factor can only
// be meant to fill up memory or a disk.
static const double BOMB_BYTES = 1 << 26, BOMB_TIMES = 250;

struct tarn__input_pack {
  const tarn__unpack_kind *kind;
  void *state;
  uint8_t bytes[PACKED_BYTES];
  size_t at, end;
  bool ended;    // of the file
  bool between;  // a compressed text has ended, and no further one has begun
};

// The remaining size of a regular file.
static void measure(tarn__input *input) {
  struct stat info;
  if (fstat(input->fd, &info) != 0 || !S_ISREG(info.st_mode)) return;
  const off_t at = lseek(input->fd, 0, SEEK_CUR);
  if (at >= 0 && info.st_size > at) input->whole = (double)(info.st_size - at);
}

tarn_status tarn__input_open(tarn__input *input, const char *path) {
  const bool standard = strcmp(path, "-") == 0 || strcmp(path, "/dev/stdin") == 0;
  *input = (tarn__input){.path = standard ? "standard input" : path};
  // Opening /dev/stdin again would restart a regular file from its beginning, and fails for a socket.
  input->fd = standard ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
  TARN_REQUIRE(input->fd >= 0, IO, "%s: cannot read: %s", input->path, strerror(errno));
  input->open = true;
  measure(input);
  return TARN_STATUS_OK;
}

void tarn__input_close(tarn__input *input) {
  if (input->open) close(input->fd);
  if (input->packed && input->packed->kind) input->packed->kind->close(input->packed->state);
  tarn__free(input->packed);
  *input = (tarn__input){0};
}

static tarn_status read_bytes(tarn__input *input, void *bytes, size_t size, size_t *got) {
  // read(), not fread(), which waits for all bytes: a pipe delivers its lines as they come.
  ssize_t count;
  do count = read(input->fd, bytes, size);
  while (count < 0 && errno == EINTR);
  *got = 0;
  TARN_REQUIRE(count >= 0, IO, "%s: cannot read: %s", input->path, strerror(errno));
  *got = (size_t)count;
  input->taken += (double)count;
  return TARN_STATUS_OK;
}

static tarn_status fill(tarn__input *input) {
  struct tarn__input_pack *p = input->packed;
  size_t got;
  memmove(p->bytes, p->bytes + p->at, p->end - p->at);
  p->end -= p->at;
  p->at = 0;
  TARN_TRY(read_bytes(input, p->bytes + p->end, PACKED_BYTES - p->end, &got));
  p->end += got;
  p->ended = got == 0;
  return TARN_STATUS_OK;
}

// Begins to decompress if these first bytes say so, and moves them to the buffer of compressed bytes.
static tarn_status look(tarn__input *input, const void *bytes, size_t *size) {
  bool open;
  void *memory;
  const tarn__unpack_kind *kind = tarn__unpack_find(bytes, *size, &open);
  if (!kind && !open) return TARN_STATUS_OK;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof *input->packed));
  struct tarn__input_pack *p = input->packed = memory;
  memcpy(p->bytes, bytes, *size);
  p->end = *size;
  while (!kind && open && !p->ended) {
    TARN_TRY(fill(input));
    kind = tarn__unpack_find(p->bytes, p->end, &open);
  }
  *size = 0;
  if (!kind) return TARN_STATUS_OK;
  TARN_REQUIRE(kind->open, UNSUPPORTED,
               "%s: compressed by %s, which this build cannot unpack; unpack it first, or install %s and build tarn "
               "again",
               input->path, kind->name, kind->package);
  TARN_TRY(kind->open(&p->state));
  p->kind = kind;
  return TARN_STATUS_OK;
}

// Only the first bytes, or a prefix of them, looked compressed.
static size_t give_plain(struct tarn__input_pack *p, void *bytes, size_t size) {
  const size_t count = size < p->end - p->at ? size : p->end - p->at;
  memcpy(bytes, p->bytes + p->at, count);
  p->at += count;
  return count;
}

// A compressed text may be followed by another one, or by the zeros with which some programs pad a block.
static tarn_status check_behind(const tarn__input *input) {
  struct tarn__input_pack *p = input->packed;
  while (p->at < p->end && p->bytes[p->at] == 0) p->at++;
  if (p->at == p->end) return TARN_STATUS_OK;
  bool open;
  const tarn__unpack_kind *kind = tarn__unpack_find(p->bytes + p->at, p->end - p->at, &open);
  TARN_REQUIRE(kind == p->kind || (open && !p->ended), DATA,
               "%s: bytes that are not %s data follow the compressed text", input->path, p->kind->name);
  if (kind) p->between = false;
  return TARN_STATUS_OK;
}

static tarn_status unpack(tarn__input *input, void *bytes, size_t size, size_t *got) {
  struct tarn__input_pack *p = input->packed;
  if (size > MOST_BYTES) size = MOST_BYTES;
  tarn__unpack_step step = {p->bytes + p->at, p->end - p->at, bytes, size, p->ended, false, TARN_STATUS_OK};
  const char *wrong = p->kind->step(p->state, &step);
  const bool stuck = step.in_size == p->end - p->at && step.out_size == size;
  p->at = p->end - step.in_size;
  *got = size - step.out_size;
  p->between = step.over;
  if (step.why != TARN_STATUS_OK)
    return tarn__fail(step.why, "%s: this %s data cannot be unpacked here: %s", input->path, p->kind->name, wrong);
  TARN_REQUIRE(!wrong, DATA, "%s: damaged %s data: %s", input->path, p->kind->name, wrong);
  TARN_REQUIRE(!stuck || step.over || step.in_size == 0, DATA, "%s: damaged %s data", input->path, p->kind->name);
  TARN_REQUIRE(!stuck || step.over || !p->ended, DATA, "%s: truncated %s data", input->path, p->kind->name);
  const double all = input->given + (double)*got;
  TARN_REQUIRE(all < BOMB_BYTES || all < BOMB_TIMES * input->taken, DATA,
               "%s: it unpacks to more than %.0f times its size, as no text does; unpack it with %s if you trust it",
               input->path, BOMB_TIMES, p->kind->name);
  return TARN_STATUS_OK;
}

static tarn_status read_packed(tarn__input *input, void *bytes, size_t size, size_t *got) {
  struct tarn__input_pack *p = input->packed;
  for (;;) {
    if (p->between) TARN_TRY(check_behind(input));
    if (p->between && p->ended) return TARN_STATUS_OK;
    if (!p->between) {
      TARN_TRY(unpack(input, bytes, size, got));
      if (*got > 0) return TARN_STATUS_OK;
    }
    // Bytes left after a compressed text may begin another one.
    if (!p->ended && (p->between || p->at == p->end)) TARN_TRY(fill(input));
  }
}

tarn_status tarn__input_read(tarn__input *input, void *bytes, size_t size, size_t *got) {
  const bool first = input->taken <= 0;
  *got = 0;
  if (!input->packed) TARN_TRY(read_bytes(input, bytes, first && size > PACKED_BYTES ? PACKED_BYTES : size, got));
  if (first && *got > 0) TARN_TRY(look(input, bytes, got));
  struct tarn__input_pack *p = input->packed;
  if (p && p->kind) TARN_TRY(read_packed(input, bytes, size, got));
  if (p && !p->kind && p->at < p->end)
    *got = give_plain(p, bytes, size);
  else if (p && !p->kind)
    TARN_TRY(read_bytes(input, bytes, size, got));
  input->given += (double)*got;
  return TARN_STATUS_OK;
}

bool tarn__input_is_ready(const tarn__input *input, int milliseconds) {
  if (input->packed && input->packed->at < input->packed->end) return true;
  struct pollfd wanted = {.fd = input->fd, .events = POLLIN};
  return poll(&wanted, 1, milliseconds) != 0;
}

double tarn__input_share(const tarn__input *input) {
  return input->whole > 0 ? fmin(input->taken / input->whole, 1.0) : NAN;
}
