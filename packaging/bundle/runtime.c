// What the archives of a bundle (libraries.sh) need of the libraries that it does without.
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/types.h>
#include <unicode/uvernum.h>

// --- Fortran: with these functions LAPACK and ARPACK need neither libgfortran nor libquadmath, whose input and output
// they use only for messages of their own. ---

// LAPACK names the routine and ends the program if one of its arguments is wrong, which is a fault of ours.
void xerbla_(const char *routine, const int *argument, size_t length);
void xerbla_(const char *routine, const int *argument, size_t length) {
  (void)routine, (void)argument, (void)length;
  abort();
}

// ARPACK prints vectors, matrices and times at the levels of its common block `debug`, which are zero: nothing calls
// these.
#define NEVER_CALLED(name) \
  void name(void);         \
  void name(void) { abort(); }
NEVER_CALLED(ivout_)
NEVER_CALLED(dvout_)
NEVER_CALLED(dmout_)
NEVER_CALLED(_gfortran_st_write)
NEVER_CALLED(_gfortran_st_write_done)
NEVER_CALLED(_gfortran_transfer_integer_write)
NEVER_CALLED(_gfortran_transfer_real_write)

// Fortran's `a // b`: the two parts one after the other, cut or filled with spaces to the length.
void _gfortran_concat_string(size_t length, char *joined, size_t a_length, const char *a, size_t b_length,
                             const char *b);
void _gfortran_concat_string(size_t length, char *joined, size_t a_length, const char *a, size_t b_length,
                             const char *b) {
  if (a_length > length) a_length = length;
  if (b_length > length - a_length) b_length = length - a_length;
  memcpy(joined, a, a_length);
  memcpy(joined + a_length, b, b_length);
  memset(joined + a_length + b_length, ' ', length - a_length - b_length);
}

// --- The C library. ---

// By which the C++ library of a newer glibc sees whether locks are needed; an old one does not have it. Zero is always
// right: there may be several threads.
char __libc_single_threaded;

// From which std::random_device takes its numbers since glibc 2.36.
uint32_t arc4random(void);
uint32_t arc4random(void) {
  uint32_t number;
  ssize_t got;
  do got = getrandom(&number, sizeof number, 0);
  while (got < 0 && errno == EINTR);
  if (got != sizeof number) abort();
  return number;
}

// In place of stdin and stderr. ICU's function of time zones, which alone uses the others, is for a part of it that is
// not bundled.
FILE *tarn__stdin, *tarn__stderr;
long tarn__timezone;
char *tarn__tzname[2];

__attribute__((constructor)) static void set_streams(void) {
  tarn__stdin = stdin;
  tarn__stderr = stderr;
}

// --- ICU's data: a table of contents without entries, in ICU's format. ---

#define JOINED(a, b, c) a##b##c
#define DATA_OF(version) JOINED(icudt, version, _dat)

typedef struct {
  uint16_t header_bytes;
  uint8_t magic[2];
  uint16_t info_bytes, reserved;
  uint8_t big_endian, charset, char_bytes, reserved_byte;
  uint8_t format[4], format_version[4], data_version[4];
  uint32_t padding, entries, more[2];
} data_file;

extern const data_file DATA_OF(U_ICU_VERSION_MAJOR_NUM);
_Alignas(16) const data_file DATA_OF(U_ICU_VERSION_MAJOR_NUM) = {
    .header_bytes = 32,
    .magic = {0xda, 0x27},
    .info_bytes = 20,
    .char_bytes = 2,
    .format = {'T', 'o', 'C', 'P'},
    .format_version = {1},
};
