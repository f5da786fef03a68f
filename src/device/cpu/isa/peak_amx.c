// Multiply-adds of tiles in registers: four tiles of sums, as many as a latency of 52 cycles requires at 16 cycles per
// instruction.
#include "device/cpu/isa/amx_config.h"
#include "device/cpu/isa/peak_kernels.h"

float tarn__peak_amx(int64_t rounds) {
  _Alignas(64) uint16_t ones[512];
  _Alignas(64) float sums[256];
  for (int i = 0; i < 512; i++) ones[i] = 0x3F80;
  tarn__amx_configure();
  tarn__amx_written();
  _tile_loadd(4, ones, 64);
  _tile_loadd(5, ones, 64);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t n = 0; n < rounds; n++) {
    _tile_dpbf16ps(0, 4, 5);
    _tile_dpbf16ps(1, 4, 5);
    _tile_dpbf16ps(2, 4, 5);
    _tile_dpbf16ps(3, 4, 5);
  }
  _tile_stored(0, sums, 64);
  _tile_release();
  return sums[0];
}
