// A part of a text file: every n-th line, or a range of bytes.
#include "base/file.h"
#include "base/work.h"
#include "tarn/split.h"
#include "text/lines.h"

enum { BLOCK = 1 << 16 };

typedef struct task {
  const tarn_split_options *options;
  tarn_split_result *result;
  tarn__lines lines;
  tarn__input input;
  tarn__writer *taken, *rest;
  tarn__work work;
  bool whole;  // the text has all bytes of the range
} task;

void tarn_split_default(tarn_split_options *options) { *options = (tarn_split_options){0}; }

static tarn_status put_line(tarn__writer *writer, const char *text, size_t length) {
  if (!writer) return TARN_STATUS_OK;
  TARN_TRY(tarn__writer_put(writer, text, length));
  return tarn__writer_put(writer, "\n", 1);
}

static tarn_status split_lines(task *t, const char *file) {
  const tarn_split_options *o = t->options;
  const int64_t first = o->first > 0 ? o->first : o->every;
  TARN_TRY(tarn__lines_open(&t->lines, file, false));
  t->lines.raw = t->lines.verbatim = true;
  for (;;) {
    const char *text;
    size_t length;
    TARN_TRY(tarn__lines_next(&t->lines, &text, &length));
    if (!text) return TARN_STATUS_OK;
    tarn__work_at(&t->work, (double)t->lines.number, tarn__lines_share(&t->lines));
    const int64_t number = t->lines.number - o->header;
    const bool header = number <= 0, taken = number % o->every == first % o->every;
    if (header || taken) TARN_TRY(put_line(t->taken, text, length));
    if (header || !taken) TARN_TRY(put_line(t->rest, text, length));
    t->result->taken += !header && taken;
    t->result->rest += !header && !taken;
  }
}

// A byte within a character of UTF-8.
static bool is_inner(char byte) { return ((unsigned char)byte & 0xC0) == 0x80; }

// The bytes from `from` to `from + bytes`, both moved back to the beginning of a character. What may precede it is held
// back: at most three bytes, which a character that begins before `from` and ends behind it would have.
static tarn_status split_bytes(task *t, const char *file) {
  const tarn_split_options *o = t->options;
  char block[BLOCK], held[4];
  size_t got, held_count = 0;
  int64_t at = 0;
  bool within = false;
  TARN_TRY(tarn__input_open(&t->input, file));
  for (;; at += (int64_t)got) {
    TARN_TRY(tarn__input_read(&t->input, block, sizeof block, &got));
    if (got == 0) break;
    tarn__work_at(&t->work, t->input.given, tarn__input_share(&t->input));
    for (size_t i = 0; i < got; i++) {
      // A byte is only known to be in the range when the next character begins: until then it is held.
      if (!is_inner(block[i]) || held_count == sizeof held) {
        if (within) TARN_TRY(tarn__writer_put(t->taken, held, held_count));
        t->result->taken += within ? (int64_t)held_count : 0;
        held_count = 0;
      }
      held[held_count++] = block[i];
      const int64_t place = at + (int64_t)i;
      if (place == o->from) within = true;
      if (place - o->from == o->bytes - 1) t->whole = true;
      if (place - o->from == o->bytes) return TARN_STATUS_OK;
    }
  }
  if (within) TARN_TRY(tarn__writer_put(t->taken, held, held_count));
  t->result->taken += within ? (int64_t)held_count : 0;
  return TARN_STATUS_OK;
}

static tarn_status check(const tarn_split_options *o) {
  TARN_REQUIRE(o->every >= 0, USAGE, "every: at least 1, not %lld", (long long)o->every);
  if (o->every == 0) {
    TARN_REQUIRE(o->bytes > 0 && o->from >= 0, USAGE,
                 "a part of a text is every n-th of its lines, or a range of at least one byte");
    TARN_REQUIRE(!o->rest && o->header == 0 && o->first == 0, USAGE,
                 "a range of bytes has no header lines, no first line and no rest");
    return TARN_STATUS_OK;
  }
  TARN_REQUIRE(o->bytes == 0 && o->from == 0 && !o->exact, USAGE,
               "either every n-th line is taken, or a range of bytes");
  TARN_REQUIRE(o->first >= 0 && o->first <= o->every, USAGE, "the first line taken is 1 to %lld, not %lld",
               (long long)o->every, (long long)o->first);
  TARN_REQUIRE(o->header >= 0, USAGE, "header: at least 0 lines, not %lld", (long long)o->header);
  return TARN_STATUS_OK;
}

static tarn_status run(task *t, const char *output, const char *file) {
  const tarn_split_options *o = t->options;
  TARN_TRY(check(o));
  TARN_REQUIRE(*output && (!o->rest || *o->rest), USAGE, "the path of a part is empty");
  TARN_REQUIRE(!o->rest || !tarn__file_same(output, o->rest), USAGE, "%s: both parts cannot be one file", output);
  TARN_REQUIRE(!tarn__file_same(output, file) && (!o->rest || !tarn__file_same(o->rest, file)), USAGE,
               "%s: a part cannot replace the text that it is taken from", file);
  TARN_TRY(tarn__mkdir_of_file(output));
  TARN_TRY(tarn__writer_open(&t->taken, output));
  if (o->rest) {
    TARN_TRY(tarn__mkdir_of_file(o->rest));
    TARN_TRY(tarn__writer_open(&t->rest, o->rest));
  }
  TARN_TRY(o->every > 0 ? split_lines(t, file) : split_bytes(t, file));
  TARN_REQUIRE(t->result->taken > 0, DATA, "%s: %s", file,
               o->every > 0 ? "there is no line to take" : "ends before the range of bytes begins");
  TARN_REQUIRE(!o->exact || t->whole, DATA, "%s: ends after %lld bytes of the range, which has %lld", file,
               (long long)t->result->taken, (long long)o->bytes);
  TARN_TRY(tarn__writer_commit(&t->taken));
  return t->rest ? tarn__writer_commit(&t->rest) : TARN_STATUS_OK;
}

tarn_status tarn_split_write(tarn_split_result *result, const char *output, const char *file,
                             const tarn_split_options *options) {
  *result = (tarn_split_result){0};
  task t = {.options = options, .result = result};
  tarn__work_begin(&t.work, "taking a part of a text", options->every > 0 ? "lines" : "bytes");
  tarn_status status = run(&t, output, file);
  tarn__work_end(&t.work);
  tarn__writer_abort(&t.taken);
  tarn__writer_abort(&t.rest);
  tarn__lines_close(&t.lines);
  tarn__input_close(&t.input);
  return status;
}
