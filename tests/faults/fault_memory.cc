// Allocations: those of C, and operator new, whose caller would otherwise always be the C++ library.
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <new>

#include "fault_core.h"

namespace {

// dlsym() itself may ask for memory, before it is known where memory comes from; so may a sanitizer that begins.
alignas(16) char early[1 << 18];
size_t early_used;
__thread int looking;

bool is_early(const void *pointer) {
  return pointer >= static_cast<void *>(early) && pointer < static_cast<void *>(early + sizeof early);
}

void *take_early(size_t size) {
  size = (size + 15) / 16 * 16;
  if (early_used + size > sizeof early) return nullptr;
  void *place = early + early_used;
  early_used += size;
  return place;
}

template <class Function>
Function find(Function &known, const char *name) {
  if (!known) {
    looking++;
    known = reinterpret_cast<Function>(fault_next(name));
    looking--;
  }
  return known;
}

// Calls inside of one that was counted are not counted again.
struct Inside {
  Inside() { fault_inside++; }
  ~Inside() { fault_inside--; }
};

void *new_or_throw(const void *caller, const char *name, size_t size) {
  if (fault_allocation(caller)) throw std::bad_alloc();
  Inside inside;
  return reinterpret_cast<void *(*)(size_t)>(fault_next(name))(size);
}

}  // namespace

#define CALLER __builtin_return_address(0)
#define REFUSE_IF_ORDERED(result)   \
  do {                              \
    if (fault_allocation(CALLER)) { \
      errno = ENOMEM;               \
      return result;                \
    }                               \
  } while (0)

extern "C" {

FAULT_EXPORT void *malloc(size_t size) {
  static void *(*next)(size_t);
  if (looking) return take_early(size);
  REFUSE_IF_ORDERED(nullptr);
  if (!find(next, "malloc")) return take_early(size);
  return next(size);
}

FAULT_EXPORT void *calloc(size_t count, size_t size) {
  static void *(*next)(size_t, size_t);
  if (looking) return take_early(count * size);
  REFUSE_IF_ORDERED(nullptr);
  if (!find(next, "calloc")) return take_early(count * size);
  return next(count, size);
}

FAULT_EXPORT void free(void *pointer) {
  static void (*next)(void *);
  if (pointer && !looking && !is_early(pointer)) find(next, "free")(pointer);  // dlsym() frees its messages
}

FAULT_EXPORT void *realloc(void *pointer, size_t size) {
  static void *(*next)(void *, size_t);
  REFUSE_IF_ORDERED(nullptr);
  if (!is_early(pointer)) return find(next, "realloc")(pointer, size);
  void *fresh = malloc(size);
  if (fresh) memcpy(fresh, pointer, size);
  return fresh;
}

FAULT_EXPORT void *reallocarray(void *pointer, size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return nullptr;
  return realloc(pointer, bytes);
}

FAULT_EXPORT int posix_memalign(void **out, size_t alignment, size_t size) {
  static int (*next)(void **, size_t, size_t);
  if (fault_allocation(CALLER)) return ENOMEM;
  return find(next, "posix_memalign")(out, alignment, size);
}

FAULT_EXPORT void *aligned_alloc(size_t alignment, size_t size) {
  static void *(*next)(size_t, size_t);
  REFUSE_IF_ORDERED(nullptr);
  return find(next, "aligned_alloc")(alignment, size);
}

FAULT_EXPORT void *memalign(size_t alignment, size_t size) {
  static void *(*next)(size_t, size_t);
  REFUSE_IF_ORDERED(nullptr);
  return find(next, "memalign")(alignment, size);
}
}

FAULT_EXPORT void *operator new(size_t size) { return new_or_throw(CALLER, "_Znwm", size); }
FAULT_EXPORT void *operator new[](size_t size) { return new_or_throw(CALLER, "_Znam", size); }
