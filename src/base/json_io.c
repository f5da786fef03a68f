// jansson (2.14) does not check whether its text buffer could grow: out of memory it reads on beyond the buffer. So a
// failing allocation leaves it at once (longjmp), and its allocations so far are freed.
#include "base/json_io.h"

#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"

// The allocation functions that the process has given to jansson are kept and called.
static json_malloc_t take;
static json_free_t give_back;

// The outstanding allocations of a call of jansson on this thread.
static _Thread_local struct {
  bool active;
  jmp_buf out;
  void **blocks;
  size_t count, capacity;
} work;

static void *take_or_leave(size_t size) {
  if (!work.active) return take(size);
  if (tarn__grow(&work.blocks, &work.capacity, work.count + 1, sizeof *work.blocks) != TARN_STATUS_OK)
    longjmp(work.out, 1);
  void *memory = take(size);
  if (!memory) longjmp(work.out, 1);
  work.blocks[work.count++] = memory;
  return memory;
}

static void forget_and_give_back(void *memory) {
  // The freed block was usually allocated a moment ago.
  for (size_t i = work.active ? work.count : 0; i-- > 0;) {
    if (work.blocks[i] != memory) continue;
    work.blocks[i] = work.blocks[--work.count];
    break;
  }
  give_back(memory);
}

static void watch(void) {
  json_get_alloc_funcs(&take, &give_back);
  json_set_alloc_funcs(take_or_leave, forget_and_give_back);
}

static void begin(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, watch);
  work.active = true;
}

// With `failed`, frees jansson's allocations.
static void end(bool failed) {
  work.active = false;
  for (size_t i = 0; failed && i < work.count; i++) give_back(work.blocks[i]);
  tarn__free(work.blocks);
  work.blocks = NULL;
  work.count = work.capacity = 0;
}

// One of these precedes every value but the first. Those within strings do not count. Returns the byte before the first
// value that is too many; `size`: there is none.
static size_t values_end(const char *text, size_t size) {
  if (size <= TARN__JSON_VALUES) return size;
  bool inside = false;
  size_t values = 1;
  for (size_t i = 0; i < size; i++) {
    const char c = text[i];
    if (inside && c == '\\')
      i++;
    else if (c == '"')
      inside = !inside;
    else if (!inside && (c == ',' || c == ':' || c == '[' || c == '{'))
      values++;
    if (values > TARN__JSON_VALUES) return i;
  }
  return size;
}

// In the form in which jansson reports damage.
static void say_too_many(json_error_t *error, const char *text, size_t position) {
  *error = (json_error_t){.line = 1, .position = position < INT_MAX ? (int)position : INT_MAX};
  for (size_t i = 0; i < position; i++) error->line += text[i] == '\n';
  snprintf(error->text, sizeof error->text, "more than %d values", TARN__JSON_VALUES);
}

// Two machines that made one record, which git could not join.
static void say_conflict(json_error_t *error, const char *text, size_t size) {
  static const char mark[] = "\n<<<<<<< ";
  const size_t length = sizeof mark - 2;
  const bool begins = size > length && memcmp(text, mark + 1, length) == 0;
  if (!begins && !memmem(text, size, mark, sizeof mark - 1)) return;
  snprintf(error->text, sizeof error->text,
           "an unresolved conflict of git: keep one side of the folder (git checkout --ours FOLDER)");
}

tarn_status tarn__json_parse(json_t **out, const char *text, size_t size, size_t flags, json_error_t *error) {
  const size_t past = values_end(text, size);
  if (past < size) {
    *out = NULL;
    if (error) say_too_many(error, text, past);
    return TARN_STATUS_OK;
  }
  begin();
  if (setjmp(work.out) != 0) {
    end(true);
    *out = NULL;
    return tarn__fail(TARN_STATUS_MEMORY, "out of memory: %zu bytes of JSON were read", size);
  }
  *out = json_loadb(text, size, flags, error);
  end(false);
  if (!*out && error) say_conflict(error, text, size);
  return TARN_STATUS_OK;
}

tarn_status tarn__json_file(json_t **out, const char *path, size_t flags, json_error_t *error) {
  char *text;
  size_t size;
  *out = NULL;
  TARN_TRY(tarn__file_read(path, &text, &size));
  tarn_status status = tarn__json_parse(out, text, size, flags, error);
  tarn__free(text);
  return status;
}

char *tarn__json_dump(const json_t *object, size_t flags) {
  if (!object) return NULL;
  begin();
  if (setjmp(work.out) != 0) {
    end(true);
    return NULL;
  }
  char *text = json_dumps(object, flags);
  end(false);
  return text;
}
