#include "json_memory.h"

#include <setjmp.h>
#include <stdatomic.h>
#include <stdlib.h>

static atomic_bool memory_ended;

// Blocks allocated and not freed while reading on this thread.
static _Thread_local struct {
  bool active;
  jmp_buf out;
  void **blocks;
  size_t count, room;
} reading;

static void *leave(void *memory) {
  free(memory);
  memory_ended = true;
  if (reading.active) longjmp(reading.out, 1);
  return NULL;
}

// Records a block allocated while reading. False: out of memory.
static bool note(void *memory) {
  if (reading.count == reading.room) {
    const size_t room = 2 * reading.room + 64;
    void **blocks = realloc(reading.blocks, room * sizeof *blocks);
    if (!blocks) return false;
    reading.blocks = blocks;
    reading.room = room;
  }
  reading.blocks[reading.count++] = memory;
  return true;
}

void *json_memory_take(size_t size) {
  void *memory = malloc(size);
  return memory && (!reading.active || note(memory)) ? memory : leave(memory);
}

static void give_back(void *memory) {
  // Freed blocks are usually recent ones.
  for (size_t i = reading.active ? reading.count : 0; i-- > 0;) {
    if (reading.blocks[i] != memory) continue;
    reading.blocks[i] = reading.blocks[--reading.count];
    break;
  }
  free(memory);
}

void json_memory_start(void) { json_set_alloc_funcs(json_memory_take, give_back); }

bool json_memory_ended(void) { return memory_ended; }

static void end(bool failed) {
  reading.active = false;
  for (size_t i = 0; failed && i < reading.count; i++) free(reading.blocks[i]);
  free(reading.blocks);
  reading.blocks = NULL;
  reading.count = reading.room = 0;
}

// Reads a text, or a file if that is not NULL.
static json_t *read_either(const char *text, size_t size, FILE *file, size_t flags, json_error_t *error, bool *ended) {
  *ended = false;
  reading.active = true;
  if (setjmp(reading.out) != 0) {
    end(true);
    *ended = true;
    return NULL;
  }
  json_t *read = file ? json_loadf(file, flags, error) : json_loadb(text, size, flags, error);
  end(false);
  return read;
}

json_t *json_memory_read(const char *text, size_t size, size_t flags, json_error_t *error, bool *ended) {
  return read_either(text, size, NULL, flags, error, ended);
}

json_t *json_memory_read_file(FILE *file, size_t flags, json_error_t *error, bool *ended) {
  return read_either(NULL, 0, file, flags, error, ended);
}
