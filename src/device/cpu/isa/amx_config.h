// The shape of tile registers that all products by tiles use. For files NAME_amx.c.
#ifndef TARN_DEVICE_CPU_ISA_AMX_CONFIG_H
#define TARN_DEVICE_CPU_ISA_AMX_CONFIG_H

#include <immintrin.h>
#include <stdint.h>

// All eight tiles are whole: 16 rows of 64 bytes. A constant, because gcc sees of what is loaded the first 8 bytes
// alone and may leave out stores to the others.
static inline void tarn__amx_configure(void) {
  static const struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
  } config = {1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
  _tile_loadconfig(&config);
}

// gcc does not know that the loads of tiles read memory: what was written for them must stand before this.
static inline void tarn__amx_written(void) { __asm__ volatile("" ::: "memory"); }

#endif
