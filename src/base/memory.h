// Memory of the library: checked sizes, a kind for every large allocation (so that planned and measured bytes can be
// compared), an arena for objects that are freed together, and a switch with which tests fail the n-th allocation.
#ifndef TARN_BASE_MEMORY_H
#define TARN_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// What an allocation is for. The first six are the categories that `tarn plan` prints.
typedef enum tarn__memory_kind {
  TARN__MEMORY_TRAINED,     // trained parameters: master copy and compute copy
  TARN__MEMORY_FROZEN,      // frozen parameters
  TARN__MEMORY_GRADIENT,    // gradients of trained parameters
  TARN__MEMORY_OPTIMISER,   // first and second moments
  TARN__MEMORY_ACTIVATION,  // tensors of a graph
  TARN__MEMORY_WORKSPACE,   // scratch of kernels
  TARN__MEMORY_OTHER,
  TARN__MEMORY_KINDS
} tarn__memory_kind;

// All allocations are aligned to 64 bytes and zeroed. Size 0 gives a valid pointer. Free accepts NULL.
// Fails with TARN_STATUS_MEMORY. `count * size` is checked for overflow.
tarn_status tarn__alloc(void **out, tarn__memory_kind kind, size_t count, size_t size) TARN_CHECKED;
void tarn__free(void *pointer);

// Like realloc for growing arrays of kind OTHER: makes space for at least `need` elements of `size` bytes at *array,
// doubling *capacity. On failure the array is unchanged.
tarn_status tarn__grow(void *array, size_t *capacity, size_t need, size_t size) TARN_CHECKED;

// A copy of a string, or of its first `length` bytes with a final zero byte, as kind OTHER.
tarn_status tarn__strdup(char **out, const char *text) TARN_CHECKED;
tarn_status tarn__strndup(char **out, const char *text, size_t length) TARN_CHECKED;

// Bytes of a kind allocated now, and their maximum so far.
size_t tarn__memory_now(tarn__memory_kind kind);
size_t tarn__memory_peak(tarn__memory_kind kind);

// The kernel's files about available memory. Missing files are ignored.
typedef struct tarn__memory_files {
  const char *machine;     // as /proc/meminfo
  const char *own_groups;  // as /proc/self/cgroup
  const char *groups;      // as the folder /sys/fs/cgroup, of version 1 or 2
} tarn__memory_files;

// tarn_memory_available() from other files, for tests.
size_t tarn__memory_available_by(const tarn__memory_files *files);

// Peak resident memory of the process since the last reset, in bytes; 0 if unknown.
size_t tarn__memory_resident_peak(void);
// Restarts the peak from the memory held now. Without /proc/self/clear_refs the peak remains that of the whole process.
void tarn__memory_reset_peak(void);

// Makes the n-th allocation from now fail (1 = the next); 0 switches this off. For tests.
void tarn__memory_fail_after(uint64_t n);

// a + b and a * b with overflow as TARN_STATUS_DATA ("size overflows"), for sizes that come from files.
tarn_status tarn__add_size(size_t *out, size_t a, size_t b) TARN_CHECKED;
tarn_status tarn__mul_size(size_t *out, size_t a, size_t b) TARN_CHECKED;

// An arena's memory is freed all at once. Reset keeps the blocks, so a step that builds the same graph again allocates
// nothing. Zero-initialise it; every pointer is aligned to 64 bytes and zeroed.
typedef struct tarn__arena {
  struct tarn__arena_block *first, *current;
} tarn__arena;

tarn_status tarn__arena_alloc(tarn__arena *arena, void **out, size_t count, size_t size) TARN_CHECKED;
tarn_status tarn__arena_strdup(tarn__arena *arena, char **out, const char *text) TARN_CHECKED;
void tarn__arena_reset(tarn__arena *arena);
void tarn__arena_close(tarn__arena *arena);

#endif
