#include "text/lines.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "text/text_check.h"
#include "text/utf8.h"

enum { CHUNK = 1 << 16 };

tarn_status tarn__lines_open(tarn__lines *lines, const char *path, bool strict) {
  const bool standard = strcmp(path, "-") == 0 || strcmp(path, "/dev/stdin") == 0;
  *lines = (tarn__lines){.path = standard ? "standard input" : path, .strict = strict};
  // Opening /dev/stdin anew would begin a regular file from its start again, and cannot open a socket.
  const int copy = standard ? dup(STDIN_FILENO) : -1;
  if (!standard) lines->file = fopen(path, "rb");
  if (copy >= 0) lines->file = fdopen(copy, "rb");
  const int error = errno;
  if (!lines->file && copy >= 0) close(copy);
  TARN_REQUIRE(lines->file, IO, "%s: cannot read: %s", lines->path, strerror(error));
  return TARN_STATUS_OK;
}

void tarn__lines_close(tarn__lines *lines) {
  if (lines->file) fclose(lines->file);
  tarn__free(lines->buffer);
  tarn__free(lines->repaired.data);
  *lines = (tarn__lines){0};
}

static tarn_status read_more(tarn__lines *lines) {
  if (lines->start) {
    memmove(lines->buffer, lines->buffer + lines->start, lines->end - lines->start);
    lines->end -= lines->start;
    lines->start = 0;
  }
  TARN_TRY(tarn__grow(&lines->buffer, &lines->capacity, lines->end + CHUNK, 1));
  // read() and not fread(), which waits until the whole chunk is there: a pipe gives its lines as they come.
  ssize_t got;
  do got = read(fileno(lines->file), lines->buffer + lines->end, lines->capacity - lines->end);
  while (got < 0 && errno == EINTR);
  TARN_REQUIRE(got >= 0, IO, "%s: cannot read: %s", lines->path, strerror(errno));
  lines->end += (size_t)got;
  lines->ended = got == 0;
  return TARN_STATUS_OK;
}

static int64_t invalid_bytes(const char *text, size_t length) {
  int64_t count = 0;
  for (size_t at = 0; at < length;) {
    int32_t code;
    const size_t size = tarn__utf8_decode(&code, text + at, length - at);
    if (code < 0) count += (int64_t)size;
    at += size;
  }
  return count;
}

// Replaces invalid bytes in the line, or refuses them.
static tarn_status check(tarn__lines *lines, const char **text, size_t *length) {
  if (lines->raw) return TARN_STATUS_OK;
  bool replaced;
  const char *line = *text;
  const size_t size = *length;
  tarn_status status = tarn__repair(&lines->repaired, text, length, lines->strict, &replaced);
  if (status != TARN_STATUS_OK) return tarn__fail_prefix(status, "%s:%lld: ", lines->path, (long long)lines->number);
  lines->replaced += replaced;
  if (replaced) lines->replaced_bytes += invalid_bytes(line, size);
  return TARN_STATUS_OK;
}

tarn_status tarn__lines_next(tarn__lines *lines, const char **text, size_t *length) {
  *text = NULL;
  *length = 0;
  size_t searched = 0;
  const char *end = NULL;
  for (;;) {
    size_t left = lines->end - lines->start;
    if (left > searched) end = memchr(lines->buffer + lines->start + searched, '\n', left - searched);
    if (end || lines->ended) break;
    searched = left;
    TARN_TRY(read_more(lines));
  }
  const char *line = lines->buffer + lines->start;
  size_t size = end ? (size_t)(end - line) : lines->end - lines->start;
  if (!end && size == 0) return TARN_STATUS_OK;
  const size_t at_hand = lines->end - lines->start;
  lines->start += size + (end != NULL);
  lines->number++;
  TARN_TRY(tarn__text_check(lines->path, lines->number, line, size, at_hand));
  if (size && line[size - 1] == '\r') size--;
  if (lines->number == 1 && size >= 3 && memcmp(line, "\xEF\xBB\xBF", 3) == 0) {
    line += 3;
    size -= 3;
  }
  *text = line;
  *length = lines->length = size;
  return check(lines, text, length);
}
