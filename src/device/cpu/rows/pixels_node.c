// The numbers of pixels are looked up, so this kernel has a single version for all instruction sets.
#include "ops/pixels.h"

#include <string.h>

#include "device/cpu/cpu_kernels.h"

tarn_status tarn__cpu_pixels(const tarn__exec *exec, const tarn__node *node) {
  const uint8_t *bytes = node->in[TARN__PIXELS_BYTES]->data;
  const int32_t *ids = node->in[TARN__PIXELS_IDS]->data;
  const tarn__tensor *x = node->out[0];
  const bool bf16 = x->dtype == TARN__BF16;
  const size_t size = tarn__dtype_size(x->dtype);
  float numbers[256];
  uint16_t rounded[256];
  for (int i = 0; i < 256; i++) {
    numbers[i] = (float)tarn__pixel_value((uint8_t)i);
    rounded[i] = tarn__bf16_from_f32(numbers[i]);
  }
#pragma omp parallel for num_threads(exec->threads)
  for (int64_t r = 0; r < x->rows; r++) {
    const uint8_t *from = bytes + r * x->cols;
    char *to = (char *)x->data + (size_t)(r * x->cols) * size;
    if (ids[r] == 0)
      memset(to, 0, (size_t)x->cols * size);
    else if (bf16)
      for (int64_t c = 0; c < x->cols; c++) ((uint16_t *)(void *)to)[c] = rounded[from[c]];
    else
      for (int64_t c = 0; c < x->cols; c++) ((float *)(void *)to)[c] = numbers[from[c]];
  }
  return TARN_STATUS_OK;
}
