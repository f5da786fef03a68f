#include "foreign/hf_tensors.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "device/transfer.h"
#include "store/checkpoint.h"

tarn_status tarn__hf_tensors_open(tarn__hf_tensors *tensors, const char *path, const char *prefix) {
  void *memory;
  tensors->prefix = prefix;
  TARN_TRY(tarn__safetensors_open(&tensors->file, path));
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, tensors->file.count + 1, sizeof(bool)));
  tensors->used = memory;
  return TARN_STATUS_OK;
}

void tarn__hf_tensors_close(tarn__hf_tensors *tensors) {
  tarn__safetensors_close(&tensors->file);
  tarn__free(tensors->used);
  tensors->used = NULL;
}

const tarn__stored *tarn__hf_tensors_find(const tarn__hf_tensors *tensors, const char *name) {
  char full[256];
  snprintf(full, sizeof full, "%s%s", tensors->prefix, name);
  const tarn__stored *tensor = tarn__safetensors_find(&tensors->file, full);
  return tensor ? tensor : tarn__safetensors_find(&tensors->file, name);
}

static size_t element_size(const tarn__stored *tensor) {
  if (strcmp(tensor->dtype, "F32") == 0) return 4;
  return strcmp(tensor->dtype, "F16") == 0 || strcmp(tensor->dtype, "BF16") == 0 ? 2 : 0;
}

tarn_status tarn__hf_tensors_check(tarn__hf_tensors *tensors, const tarn__stored *tensor, const char *name,
                                   int64_t rows, int64_t cols) {
  const char *path = tensors->file.path;
  TARN_REQUIRE(tensor, DATA, "%s: tensor \"%s\" is missing", path, name);
  TARN_REQUIRE(element_size(tensor) > 0, DATA, "%s: tensor \"%s\" has type %s where F32, F16 or BF16 was expected",
               path, tensor->name, tensor->dtype);
  bool vector = tensor->dims == 1 && rows == 1 && tensor->shape[0] == cols;
  bool matrix = tensor->dims == 2 && tensor->shape[0] == rows && tensor->shape[1] == cols;
  char shape[128] = "";
  for (int i = 0; i < tensor->dims; i++)
    snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%s%lld", i ? ", " : "", (long long)tensor->shape[i]);
  char wanted[64];
  if (rows == 1)
    snprintf(wanted, sizeof wanted, "%lld", (long long)cols);
  else
    snprintf(wanted, sizeof wanted, "%lld, %lld", (long long)rows, (long long)cols);
  TARN_REQUIRE(vector || matrix, DATA, "%s: tensor \"%s\" has the shape [%s] where [%s] was expected", path,
               tensor->name, shape, wanted);
  tensors->used[tensor - tensors->file.tensors] = true;
  return TARN_STATUS_OK;
}

static float half_to_float(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float size = exponent == 31  ? (fraction ? NAN : INFINITY)
                     : exponent == 0 ? ldexpf((float)fraction, -24)
                                     : ldexpf((float)(fraction + 1024), exponent - 25);
  return bits >> 15 ? -size : size;
}

static float read_element(const tarn__stored *tensor, size_t index) {
  const char *at = (const char *)tensor->data + index * element_size(tensor);
  float value;
  uint16_t half;
  if (element_size(tensor) == 4) {
    memcpy(&value, at, sizeof value);
    return value;
  }
  memcpy(&half, at, sizeof half);
  return tensor->dtype[0] == 'B' ? tarn__bf16_to_f32(half) : half_to_float(half);
}

tarn_status tarn__hf_tensors_read(const tarn__hf_tensors *tensors, float *values, const tarn__stored *tensor,
                                  size_t first, size_t count) {
  bool finite = true;
  for (size_t i = 0; i < count; i++) {
    values[i] = read_element(tensor, first + i);
    finite &= isfinite(values[i]) != 0;
  }
  TARN_REQUIRE(finite, DATA, "%s: tensor \"%s\" holds numbers that are not finite", tensors->file.path, tensor->name);
  return TARN_STATUS_OK;
}
