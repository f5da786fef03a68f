// The buffer of a streamed answer of the server: its last event takes no memory, so it arrives whatever was lost
// before.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

static bool refused;
static void *take_memory(void *memory, size_t size) { return refused ? NULL : realloc(memory, size); }

#define realloc take_memory
#include "serve/serve_stream.c"  // NOLINT: of a program
#undef realloc

static int awake, asleep;
// The thread that is woken takes from the stream at once, so it must not be locked then.
static void wake_up(void *user) {
  serve_stream *stream = *(serve_stream **)user;
  awake++;
  assert_int_equal(pthread_mutex_trylock(&stream->lock), 0);
  pthread_mutex_unlock(&stream->lock);
}
static void fall_asleep(void *user) { asleep += user != NULL; }

static void takes(serve_stream *stream, const char *expected) {
  char bytes[3];
  for (size_t at = 0, size = strlen(expected); at < size;) {
    const ssize_t taken = serve_stream_take(stream, bytes, sizeof bytes, fall_asleep);
    assert_true(taken > 0);
    assert_memory_equal(bytes, expected + at, (size_t)taken);
    at += (size_t)taken;
  }
}

static void the_last_bytes_need_no_memory(void **state) {
  char bytes[3];
  serve_stream_total total = {.most = 1 << 20};
  serve_stream stream, *own = &stream;
  (void)state;
  serve_stream_open(&stream, 100, &total, wake_up, &own);
  assert_true(serve_stream_put(&stream, "first", 5));
  takes(&stream, "first");
  assert_int_equal(serve_stream_take(&stream, bytes, sizeof bytes, fall_asleep), SERVE_STREAM_WAIT);
  assert_true(awake == 1 && asleep == 1);
  refused = true;
  static char large[SERVE_STREAM_FREE + 1];
  assert_false(serve_stream_put(&stream, large, sizeof large));
  assert_true(serve_stream_is_read(&stream) && serve_stream_has_begun(&stream));
  assert_int_equal(total.bytes, 0);
  serve_stream_last(&stream, "the last");
  serve_stream_end(&stream);
  takes(&stream, "the last");
  assert_int_equal(serve_stream_take(&stream, bytes, sizeof bytes, fall_asleep), SERVE_STREAM_END);
  serve_stream_close(&stream);
  // Nothing has begun: the request may have a whole answer instead, for which alone its connection wakes.
  serve_stream_open(&stream, 100, &total, wake_up, &own);
  const int before = awake;
  assert_false(serve_stream_put(&stream, "first", 5));
  assert_false(serve_stream_has_begun(&stream));
  assert_int_equal(awake, before);
  serve_stream_end(&stream);
  assert_int_equal(awake, before + 1);
  serve_stream_close(&stream);
  refused = false;
}

static void who_reads_too_slowly_is_cut(void **state) {
  char bytes[3];
  serve_stream_total total = {.most = 1 << 20};
  serve_stream stream, *own = &stream;
  (void)state;
  serve_stream_open(&stream, 8, &total, wake_up, &own);
  assert_true(serve_stream_put(&stream, "of any size", 11));
  assert_false(serve_stream_put(&stream, "more", 4));
  assert_false(serve_stream_is_read(&stream));
  serve_stream_last(&stream, "the last");
  assert_int_equal(serve_stream_take(&stream, bytes, sizeof bytes, fall_asleep), SERVE_STREAM_CUT);
  serve_stream_close(&stream);
  // Of all streams together.
  static char large[2 * SERVE_STREAM_FREE];
  total.most = sizeof large;
  serve_stream_open(&stream, SIZE_MAX, &total, wake_up, &own);
  assert_false(serve_stream_put(&stream, large, sizeof large));
  assert_false(serve_stream_is_read(&stream));
  serve_stream_close(&stream);
  assert_int_equal(total.bytes, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_last_bytes_need_no_memory),
                                     cmocka_unit_test(who_reads_too_slowly_is_cut)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
