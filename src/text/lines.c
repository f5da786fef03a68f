#include "text/lines.h"

#include <string.h>

#include "base/memory.h"
#include "text/cut.h"
#include "text/text_check.h"
#include "text/utf8.h"

enum { CHUNK = 1 << 16, LONGEST_CHARACTER = 8 };  // bytes

tarn_status tarn__lines_open(tarn__lines *lines, const char *path, bool strict) {
  *lines = (tarn__lines){.strict = strict};
  tarn_status status = tarn__input_open(&lines->input, path);
  lines->path = lines->input.path;
  return status;
}

void tarn__lines_close(tarn__lines *lines) {
  tarn__input_close(&lines->input);
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
  size_t got;
  TARN_TRY(tarn__input_read(&lines->input, lines->buffer + lines->end, lines->capacity - lines->end, &got));
  lines->end += got;
  lines->ended = got == 0;
  return TARN_STATUS_OK;
}

bool tarn__lines_is_ready(const tarn__lines *lines, int milliseconds) {
  const size_t left = lines->end - lines->start;
  if (lines->ended || (left > 0 && memchr(lines->buffer + lines->start, '\n', left))) return true;
  return tarn__input_is_ready(&lines->input, milliseconds);
}

double tarn__lines_share(const tarn__lines *lines) {
  // The bytes in the buffer were read but not yet delivered.
  const double waiting = (double)(lines->end - lines->start), given = lines->input.given;
  return tarn__input_share(&lines->input) * (given > 0 ? (given - waiting) / given : 0);
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

// Reads until the end of the line or the file, or until the line is too long: tarn__cut() needs a character beyond the
// limit.
static tarn_status find_line(tarn__lines *lines, const char **line, size_t *size, bool *ended) {
  const char *end = NULL;
  size_t searched = 0;
  for (;;) {
    const size_t left = lines->end - lines->start;
    if (left > searched) end = memchr(lines->buffer + lines->start + searched, '\n', left - searched);
    if (end || lines->ended || (lines->longest > 0 && left > lines->longest + LONGEST_CHARACTER)) break;
    searched = left;
    TARN_TRY(read_more(lines));
  }
  *line = lines->buffer + lines->start;
  *ended = end != NULL;
  *size = end ? (size_t)(end - *line) : lines->end - lines->start;
  return TARN_STATUS_OK;
}

// Takes the first part of an overlong line.
static tarn_status cut(tarn__lines *lines, const char *line, size_t *size) {
  size_t next;
  bool within;
  TARN_REQUIRE(lines->parts, DATA, "%s:%lld: this line has more than %zu bytes; is this a text without line ends?",
               lines->path, (long long)lines->number, lines->longest);
  *size = tarn__cut(&next, &within, line, *size, lines->longest);
  lines->more = true;
  return TARN_STATUS_OK;
}

tarn_status tarn__lines_next(tarn__lines *lines, const char **text, size_t *length) {
  const char *line;
  size_t size;
  bool ended;
  *text = NULL;
  *length = 0;
  TARN_TRY(find_line(lines, &line, &size, &ended));
  if (!ended && size == 0) return TARN_STATUS_OK;
  const size_t at_hand = lines->end - lines->start;
  const bool begins = !lines->more;
  lines->number += begins;
  lines->more = false;
  if (lines->longest > 0 && size > lines->longest) TARN_TRY(cut(lines, line, &size));
  lines->open_end = !ended && !lines->more;
  lines->start += size + (ended && !lines->more);
  TARN_TRY(tarn__text_check(lines->path, lines->number, line, size, begins ? at_hand : 0));
  if (!lines->verbatim && !lines->more && size && line[size - 1] == '\r') size--;
  if (!lines->verbatim && begins && lines->number == 1 && size >= 3 && memcmp(line, "\xEF\xBB\xBF", 3) == 0) {
    line += 3;
    size -= 3;
  }
  *text = line;
  *length = lines->length = size;
  return check(lines, text, length);
}
