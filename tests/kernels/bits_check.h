// The record of bits: all that a test's fast kernels compute goes into one hash for each instruction set, and bits.txt
// has what that must be. So neither another compiler nor another version or level of optimisation may change a bit:
// what decides them (products that are fused with sums, the order of sums) is written in the kernels.
//
// Where a change means to change bits, or a test gets other cases, record anew:
//   TARN_RECORD_BITS=/tmp/bits build/release/tests/test_NAME
// appends the lines that take the place of the old ones. On record are the bits of x86-64 and of 64-bit ARM; not those
// of other devices (TARN_DEVICE), which scripts/gpu.sh compares with those of a second run.
#ifndef TARN_TESTS_BITS_CHECK_H
#define TARN_TESTS_BITS_CHECK_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/cpu/isa/isa.h"

#define BITS_NONE UINT64_C(14695981039346656037)

// FNV-1a of all values so far, and of those since the last line of a trace.
typedef struct bits_record {
  uint64_t hash, since;
  uint64_t count;
} bits_record;

static bits_record bits_so_far = {BITS_NONE, BITS_NONE, 0};

// Values as doubles; every NaN counts as the same one, because which operand's NaN an instruction passes on is left to
// compilers.
static inline void bits_add(const double *values, size_t n) {
  for (size_t i = 0; i < n; i++) {
    const double value = isnan(values[i]) ? (double)NAN : values[i];
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    for (int byte = 0; byte < 8; byte++) {
      bits_so_far.hash = (bits_so_far.hash ^ (bits >> 8 * byte & 0xFF)) * 1099511628211u;
      bits_so_far.since = (bits_so_far.since ^ (bits >> 8 * byte & 0xFF)) * 1099511628211u;
    }
  }
  bits_so_far.count += n;
}

static inline void bits_add_floats(const float *values, size_t n) {
  for (size_t i = 0; i < n; i++) {
    const double value = (double)values[i];
    bits_add(&value, 1);
  }
}

// The instruction set. Plain C has other bits on ARM, all of whose processors multiply and add with one rounding.
static inline const char *bits_isa(void) {
#ifdef TARN_ARM
  if (tarn__isa_now() == TARN__ISA_PORTABLE) return "portable_arm";
#endif
  return tarn__isa_name();
}

// What computes: an instruction set, or another device.
static inline const char *bits_name(void) {
  const char *device = getenv("TARN_DEVICE");
  return device != NULL ? device : bits_isa();
}

// For an own look at where bits part: with TARN_TRACE_BITS, a line after every run of a graph.
static inline void bits_trace(const char *what) {
  static int number;
  if (getenv("TARN_TRACE_BITS"))
    fprintf(stderr, "%s %d %s: %016llx\n", bits_name(), number++, what, (unsigned long long)bits_so_far.since);
  bits_so_far.since = BITS_NONE;
}

// The line of the record that begins as `own` does up to its third space, for this test and instruction set. Of other
// processors than x86-64 and 64-bit ARM there is none.
static inline bool bits_on_record(char line[160], const char *own, FILE *record) {
#if defined(TARN_X86) || defined(TARN_ARM)
  const size_t name = (size_t)(strchr(strchr(own, ' ') + 1, ' ') - own) + 1;
  while (fgets(line, 160, record))
    if (strncmp(line, own, name) == 0) return true;
#else
  (void)line, (void)own, (void)record;
#endif
  return false;
}

static inline const char *bits_program(void) {
  static char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  if (length <= 0) return "";
  path[length] = '\0';
  return strrchr(path, '/') + 1;
}

// Whether this process leaves the comparison with the reference to the record of bits: what is on record was compared
// with it when it was recorded, and equal bits are as near to it. The reference takes most of the time of a kernel's
// test, so the first of the instruction sets alone is compared with both; as a sample (TARN_SAMPLE) with every third
// case (check_proven() of kernel_check.h): the reference then runs in each test, and its cases are those of the record.
#define BITS_PROVE "TARN_BITS_PROVE"
static inline bool bits_prove(void) {
  static int prove = -1;
  if (prove >= 0) return prove;
  prove = 0;
  char line[160], own[160];
  const bool asked = (getenv(BITS_PROVE) || getenv("TARN_SAMPLE")) && !getenv("TARN_RECORD_BITS");
  FILE *file = asked ? fopen(TARN_SOURCE_DIR "/tests/kernels/bits.txt", "r") : NULL;
  if (file == NULL) return false;
  snprintf(own, sizeof own, "%s %s ", bits_program(), bits_isa());
  prove = bits_on_record(line, own, file);
  fclose(file);
  return prove;
}

// Compares with the record of the test program of this name; returns the number of failures, 0 or 1.
static inline int bits_end(const char *program) {
  char line[160], own[160];
  snprintf(own, sizeof own, "%s %s %llu %016llx\n", program, bits_name(), (unsigned long long)bits_so_far.count,
           (unsigned long long)bits_so_far.hash);
  const char *record = getenv("TARN_RECORD_BITS");
  FILE *file = fopen(record ? record : TARN_SOURCE_DIR "/tests/kernels/bits.txt", record ? "a" : "r");
  if (!file) {
    fprintf(stderr, "bits: the record cannot be opened\n");
    return 1;
  }
  int failures = 0;
  if (record)
    fputs(own, file);
  else if (bits_on_record(line, own, file) && strcmp(line, own) != 0) {
    fprintf(stderr, "bits: not those on record\n  record %s  now    %s", line, own);
    failures = 1;
  }
  fclose(file);
  return failures;
}

#endif
