#include "data/idx.h"

enum { BYTES = 0x08, IMAGES = 3, COLOURED = 4, LABELS = 1 };  // the type of the numbers, and dimensions of the array

static tarn_status read_all(tarn__idx *idx, uint8_t *bytes, size_t size, bool *whole) {
  size_t done = 0, got = 1;
  while (done < size && got > 0) {
    TARN_TRY(tarn__input_read(&idx->input, bytes + done, size - done, &got));
    done += got;
  }
  *whole = done == size;
  return TARN_STATUS_OK;
}

static tarn_status read_number(tarn__idx *idx, int64_t *number) {
  uint8_t bytes[4] = {0};
  bool whole;
  TARN_TRY(read_all(idx, bytes, sizeof bytes, &whole));
  TARN_REQUIRE(whole, DATA, "%s: a truncated IDX file: it ends within its header", idx->input.path);
  *number = (int64_t)bytes[0] << 24 | (int64_t)bytes[1] << 16 | (int64_t)bytes[2] << 8 | (int64_t)bytes[3];
  return TARN_STATUS_OK;
}

static tarn_status read_head(tarn__idx *idx, bool labels) {
  uint8_t magic[4] = {0};
  bool whole;
  int64_t height = 1, width = 1, channels = 1;
  TARN_TRY(read_all(idx, magic, sizeof magic, &whole));
  const bool right = labels ? magic[3] == LABELS : magic[3] == IMAGES || magic[3] == COLOURED;
  TARN_REQUIRE(whole && magic[0] == 0 && magic[1] == 0 && magic[2] == BYTES && right, DATA,
               "%s: not an IDX file of %s: it begins with the bytes %02X %02X %02X %02X, not 00 00 08 %s%s",
               idx->input.path, labels ? "labels" : "images", magic[0], magic[1], magic[2], magic[3],
               labels ? "01" : "03 or 00 00 08 04", !labels && whole ? ", and is not in PNG" : "");
  TARN_TRY(read_number(idx, &idx->count));
  if (!labels) TARN_TRY(read_number(idx, &height));
  if (!labels) TARN_TRY(read_number(idx, &width));
  if (magic[3] == COLOURED) TARN_TRY(read_number(idx, &channels));
  TARN_REQUIRE(idx->count > 0, DATA, "%s: an IDX file without %s", idx->input.path, labels ? "labels" : "images");
  TARN_REQUIRE(tarn__image_size_fits(height, width, channels), DATA,
               "%s: images of %lld x %lld pixels with %lld channels; expected 1 or 3, and " TARN__IMAGE_LIMITS,
               idx->input.path, (long long)height, (long long)width, (long long)channels);
  idx->size = (tarn__image_size){(int32_t)height, (int32_t)width, (int32_t)channels};
  return TARN_STATUS_OK;
}

tarn_status tarn__idx_open(tarn__idx *idx, const char *path, bool labels) {
  *idx = (tarn__idx){0};
  TARN_TRY(tarn__input_open(&idx->input, path));
  const tarn_status status = read_head(idx, labels);
  if (status != TARN_STATUS_OK) tarn__idx_close(idx);
  return status;
}

void tarn__idx_close(tarn__idx *idx) {
  tarn__input_close(&idx->input);
  *idx = (tarn__idx){0};
}

tarn_status tarn__idx_next(tarn__idx *idx, uint8_t *bytes) {
  bool whole;
  TARN_TRY(read_all(idx, bytes, (size_t)tarn__image_bytes(idx->size), &whole));
  TARN_REQUIRE(whole, DATA, "%s: a truncated IDX file: it ends after %lld of %lld", idx->input.path,
               (long long)idx->read, (long long)idx->count);
  idx->read++;
  return TARN_STATUS_OK;
}

tarn_status tarn__idx_finish(tarn__idx *idx) {
  uint8_t byte;
  bool more;
  TARN_TRY(read_all(idx, &byte, 1, &more));
  TARN_REQUIRE(!more, DATA, "%s: a damaged IDX file: bytes follow the %lld that its header counts", idx->input.path,
               (long long)idx->count);
  return TARN_STATUS_OK;
}
