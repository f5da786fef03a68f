// The shape of tile registers for all products by tiles. For files NAME_amx.c.
#ifndef TARN_DEVICE_CPU_ISA_AMX_CONFIG_H
#define TARN_DEVICE_CPU_ISA_AMX_CONFIG_H

#include <immintrin.h>
#include <stdint.h>

// All eight tiles are full size: 16 rows of 64 bytes. A constant, because gcc assumes that only the first 8 bytes are
// read and may omit stores to the others.
static inline void tarn__amx_configure(void) {
  static const struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
  } config = {1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
  _tile_loadconfig(&config);
}

// gcc does not know that tile loads read memory: stores to their operands must precede this.
static inline void tarn__amx_written(void) { __asm__ volatile("" ::: "memory"); }

#endif
