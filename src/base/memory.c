#include "base/memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ADDRESS_SANITIZER 1
#endif
#endif

// Every allocation carries this header in the 64 bytes before it.
typedef struct header {
  void *raw;
  size_t bytes;
  tarn__memory_kind kind;
} header;

#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
enum { ALIGN = 64, ARENA_BLOCK = 0 };  // a block for each piece, so that the sanitizer sees writes beyond one
#else
enum { ALIGN = 64, ARENA_BLOCK = 1 << 20 };
#endif

static atomic_size_t now[TARN__MEMORY_KINDS];
static atomic_size_t peak[TARN__MEMORY_KINDS];
static atomic_uint_fast64_t fail_countdown;

static bool must_fail(void) {
  uint_fast64_t left = atomic_load(&fail_countdown);
  while (left > 0 && !atomic_compare_exchange_weak(&fail_countdown, &left, left - 1)) continue;
  return left == 1;
}

static void count(tarn__memory_kind kind, size_t bytes) {
  size_t total = atomic_fetch_add(&now[kind], bytes) + bytes;
  size_t seen = atomic_load(&peak[kind]);
  while (total > seen && !atomic_compare_exchange_weak(&peak[kind], &seen, total)) continue;
}

static header *header_of(void *pointer) { return (header *)(void *)((char *)pointer - ALIGN); }

#ifndef ADDRESS_SANITIZER
// Large blocks ask for large pages, with which the TLB covers 512 times as much memory at a 512th of the faults. Only
// pages entirely inside the block are advised, so it never holds more memory than requested. It is only advice: if the
// system ignores it, nothing else changes.
static void advise(void *raw, size_t total) {
#ifdef MADV_HUGEPAGE
  const uintptr_t page = 2 << 20, begin = ((uintptr_t)raw + page - 1) / page * page;
  const uintptr_t end = ((uintptr_t)raw + total) / page * page;
  if (begin < end) (void)madvise((char *)raw + (begin - (uintptr_t)raw), end - begin, MADV_HUGEPAGE);
#else
  (void)raw;
  (void)total;
#endif
}
#endif

// Takes zeroed memory from the system and returns the aligned address in it that leaves space for a header in front.
static char *take(void **raw, size_t bytes, size_t total) {
#ifdef ADDRESS_SANITIZER
  // The block ends exactly with the caller's bytes, so that the sanitizer sees the first byte beyond.
  if (posix_memalign(raw, ALIGN, total - ALIGN) != 0) return NULL;
  memset(*raw, 0, ALIGN + bytes);
  return (char *)*raw + ALIGN;
#else
  // calloc, because large blocks then are untouched zero pages: they cost nothing before they are used, and then a page
  // at a time, which may be 2 MB (advise()).
  (void)bytes;
  *raw = calloc(1, total);
  if (*raw) advise(*raw, total);
  return *raw ? (char *)*raw + 2 * ALIGN - (uintptr_t)*raw % ALIGN : NULL;
#endif
}

tarn_status tarn__alloc(void **out, tarn__memory_kind kind, size_t n, size_t size) {
  *out = NULL;
  size_t bytes;
  size_t total;
  TARN_TRY(tarn__mul_size(&bytes, n, size));
  TARN_TRY(tarn__add_size(&total, bytes, 2 * ALIGN));
  void *raw;
  char *user = must_fail() ? NULL : take(&raw, bytes, total);
  TARN_REQUIRE(user, MEMORY, "out of memory: %zu bytes were asked for", bytes);
  *header_of(user) = (header){raw, bytes, kind};
  count(kind, bytes);
  *out = user;
  return TARN_STATUS_OK;
}

void tarn__free(void *pointer) {
  if (!pointer) return;
  const header *h = header_of(pointer);
  atomic_fetch_sub(&now[h->kind], h->bytes);
  free(h->raw);
}

tarn_status tarn__grow(void *array, size_t *capacity, size_t need, size_t size) {
  if (need <= *capacity) return TARN_STATUS_OK;
  size_t larger = *capacity ? *capacity : 8;
  while (larger < need) TARN_TRY(tarn__mul_size(&larger, larger, 2));
  void *fresh;
  TARN_TRY(tarn__alloc(&fresh, TARN__MEMORY_OTHER, larger, size));
  void *old;
  memcpy(&old, array, sizeof old);
  if (old) memcpy(fresh, old, *capacity * size);
  tarn__free(old);
  memcpy(array, &fresh, sizeof fresh);
  *capacity = larger;
  return TARN_STATUS_OK;
}

tarn_status tarn__strndup(char **out, const char *text, size_t length) {
  void *copy;
  size_t bytes;
  *out = NULL;
  TARN_TRY(tarn__add_size(&bytes, length, 1));
  TARN_TRY(tarn__alloc(&copy, TARN__MEMORY_OTHER, bytes, 1));
  memcpy(copy, text, length);
  *out = copy;
  return TARN_STATUS_OK;
}

tarn_status tarn__strdup(char **out, const char *text) { return tarn__strndup(out, text, strlen(text)); }

size_t tarn__memory_now(tarn__memory_kind kind) { return atomic_load(&now[kind]); }
size_t tarn__memory_peak(tarn__memory_kind kind) { return atomic_load(&peak[kind]); }
void tarn__memory_fail_after(uint64_t n) { atomic_store(&fail_countdown, n); }

tarn_status tarn__add_size(size_t *out, size_t a, size_t b) {
  TARN_REQUIRE(!__builtin_add_overflow(a, b, out), DATA, "size overflows: %zu + %zu", a, b);
  return TARN_STATUS_OK;
}

tarn_status tarn__mul_size(size_t *out, size_t a, size_t b) {
  TARN_REQUIRE(!__builtin_mul_overflow(a, b, out), DATA, "size overflows: %zu * %zu", a, b);
  return TARN_STATUS_OK;
}

typedef struct tarn__arena_block {
  struct tarn__arena_block *next;
  size_t size, used;
  char *data;
} block;

static tarn_status block_new(block **out, size_t size) {
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(block)));
  block *b = memory;
  void *data;
  tarn_status status = tarn__alloc(&data, TARN__MEMORY_OTHER, size, 1);
  if (status != TARN_STATUS_OK) {
    tarn__free(b);
    return status;
  }
  *b = (block){.size = size, .data = data};
  *out = b;
  return TARN_STATUS_OK;
}

tarn_status tarn__arena_alloc(tarn__arena *arena, void **out, size_t n, size_t size) {
  *out = NULL;
  size_t bytes;
  TARN_TRY(tarn__mul_size(&bytes, n, size));
  TARN_TRY(tarn__add_size(&bytes, bytes, ALIGN - 1));
  bytes = bytes / ALIGN * ALIGN;
  block *b = arena->current;
  while (b && b->size - b->used < bytes) b = b->next;
  if (!b) {
    TARN_TRY(block_new(&b, bytes > ARENA_BLOCK ? bytes : ARENA_BLOCK));
    if (arena->current) {
      b->next = arena->current->next;
      arena->current->next = b;
    } else {
      arena->first = b;
    }
  }
  arena->current = b;
  *out = b->data + b->used;
  memset(*out, 0, bytes);
  b->used += bytes;
  return TARN_STATUS_OK;
}

tarn_status tarn__arena_strdup(tarn__arena *arena, char **out, const char *text) {
  *out = NULL;
  void *copy;
  size_t bytes = strlen(text) + 1;
  TARN_TRY(tarn__arena_alloc(arena, &copy, bytes, 1));
  memcpy(copy, text, bytes);
  *out = copy;
  return TARN_STATUS_OK;
}

void tarn__arena_reset(tarn__arena *arena) {
  for (block *b = arena->first; b; b = b->next) b->used = 0;
  arena->current = arena->first;
}

void tarn__arena_close(tarn__arena *arena) {
  for (block *b = arena->first; b;) {
    block *next = b->next;
    tarn__free(b->data);
    tarn__free(b);
    b = next;
  }
  *arena = (tarn__arena){0};
}
