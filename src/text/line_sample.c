#include "text/line_sample.h"

#include <stdbool.h>
#include <string.h>

#include "base/memory.h"

enum { SEED = 1, STREAM = 0x73616D70u };

typedef struct tarn__sampled_line {
  uint64_t number;
  size_t length;
} sampled;

enum { LINE_BYTES = 32 };  // overhead of a line in addition to its text, with space to grow

void tarn__line_sample_open(tarn__line_sample *sample, size_t room) {
  *sample = (tarn__line_sample){.room = room, .threshold = UINT64_MAX};
  tarn__random_init(&sample->random, SEED, STREAM);
}

void tarn__line_sample_close(tarn__line_sample *sample) {
  tarn__free(sample->text);
  tarn__free(sample->lines);
  *sample = (tarn__line_sample){0};
}

static bool is_full(const tarn__line_sample *s, size_t more) {
  return s->text_used + more + (size_t)(s->kept + 1) * LINE_BYTES > s->room;
}

// Drops about a quarter of the lines.
static void thin_out(tarn__line_sample *s) {
  const int64_t count = s->kept;
  size_t from = 0;
  s->threshold -= s->threshold / 4;
  s->kept = 0;
  s->text_used = 0;
  for (int64_t i = 0; i < count; i++) {
    const sampled line = s->lines[i];
    if (line.number <= s->threshold) {
      memmove(s->text + s->text_used, s->text + from, line.length);
      s->text_used += line.length;
      s->lines[s->kept++] = line;
    }
    from += line.length;
  }
}

tarn_status tarn__line_sample_put(tarn__line_sample *s, const char *text, size_t length) {
  const uint64_t number = tarn__random_u64(&s->random);
  TARN_REQUIRE(length < s->room / 2, INTERNAL, "a line of %zu bytes in a sample of %zu", length, s->room);
  s->given++;
  while (number <= s->threshold && is_full(s, length)) thin_out(s);
  if (number > s->threshold) return TARN_STATUS_OK;
  TARN_TRY(tarn__grow(&s->text, &s->text_capacity, s->text_used + length, 1));
  TARN_TRY(tarn__grow(&s->lines, &s->lines_capacity, (size_t)s->kept + 1, sizeof *s->lines));
  memcpy(s->text + s->text_used, text, length);
  s->text_used += length;
  s->lines[s->kept++] = (sampled){number, length};
  return TARN_STATUS_OK;
}

void tarn__line_sample_take(tarn__line_sample *s, const char **text, size_t *length) {
  *text = NULL;
  *length = 0;
  if (s->next == s->kept) return;
  *text = s->text + s->next_at;
  *length = s->lines[s->next++].length;
  s->next_at += *length;
}
