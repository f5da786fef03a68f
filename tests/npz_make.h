// Small zip archives of arrays, as tests and seeds need them: stored, with what may be wrong in them. Include it after
// cmocka.h.
#ifndef TARN_TESTS_NPZ_MAKE_H
#define TARN_TESTS_NPZ_MAKE_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct npz_maker {
  uint8_t bytes[16384], directory[4096];
  size_t size, directory_size;
  int count;
} npz_maker;

// What to do wrongly with the next file.
typedef struct npz_wrong {
  uint32_t checksum;  // is added to it
  uint32_t size;      // is added to the uncompressed size in the directory
  uint16_t flags, method;
} npz_wrong;

static inline void npz_put(uint8_t *to, size_t *at, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; i++) to[(*at)++] = (uint8_t)(value >> (8 * i));
}

// The checksum of zip, bit by bit.
static inline uint32_t npz_checksum(const uint8_t *data, size_t size) {
  uint32_t sum = 0xFFFFFFFFu;
  for (size_t i = 0; i < size; i++) {
    sum ^= data[i];
    for (int k = 0; k < 8; k++) sum = sum >> 1 ^ (sum & 1 ? 0xEDB88320u : 0);
  }
  return ~sum;
}

static inline void npz_add_file(npz_maker *m, const char *name, const uint8_t *data, size_t size, npz_wrong wrong) {
  const uint32_t sum = npz_checksum(data, size) + wrong.checksum;
  const size_t place = m->size, length = strlen(name);
  for (int directory = 0; directory < 2; directory++) {
    uint8_t *to = directory ? m->directory : m->bytes;
    size_t *at = directory ? &m->directory_size : &m->size;
    npz_put(to, at, directory ? 0x02014B50 : 0x04034B50, 4);
    if (directory) npz_put(to, at, 20, 2);  // made by
    npz_put(to, at, 20, 2);                 // needed
    npz_put(to, at, wrong.flags, 2);
    npz_put(to, at, wrong.method, 2);
    npz_put(to, at, 0, 4);  // time and date
    npz_put(to, at, sum, 4);
    npz_put(to, at, size, 4);
    npz_put(to, at, size + wrong.size, 4);
    npz_put(to, at, length, 2);
    npz_put(to, at, 0, 2);                 // extra field
    if (directory) npz_put(to, at, 0, 6);  // comment, disk, internal attributes
    if (directory) npz_put(to, at, 0, 4);  // external attributes
    if (directory) npz_put(to, at, place, 4);
    memcpy(to + *at, name, length);
    *at += length;
  }
  memcpy(m->bytes + m->size, data, size);
  m->size += size;
  m->count++;
}

// An array with this header.
static inline void npz_add(npz_maker *m, const char *name, const char *header, const void *values, size_t size,
                           npz_wrong wrong) {
  uint8_t data[4096] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
  size_t at = 8;
  npz_put(data, &at, strlen(header), 2);
  memcpy(data + at, header, strlen(header));
  at += strlen(header);
  if (size) memcpy(data + at, values, size);
  npz_add_file(m, name, data, at + size, wrong);
}

// Writes what was added; `count` is added to the number of files.
static inline size_t npz_finish(npz_maker *m, int count) {
  const size_t place = m->size;
  memcpy(m->bytes + m->size, m->directory, m->directory_size);
  m->size += m->directory_size;
  npz_put(m->bytes, &m->size, 0x06054B50, 4);
  npz_put(m->bytes, &m->size, 0, 4);
  npz_put(m->bytes, &m->size, (uint64_t)(m->count + count), 2);
  npz_put(m->bytes, &m->size, (uint64_t)(m->count + count), 2);
  npz_put(m->bytes, &m->size, m->directory_size, 4);
  npz_put(m->bytes, &m->size, place, 4);
  npz_put(m->bytes, &m->size, 0, 2);
  return m->size;
}

#endif
