#include "data/png_file.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/small_file.h"

#if TARN_PNG
#include <png.h>
#endif

enum { LARGEST = 1 << 28 };  // bytes of a file

static const unsigned char MAGIC[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};

bool tarn__png_is(const char *path) {
  unsigned char first[sizeof MAGIC];
  struct stat info;
  if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) return false;  // what is read of a pipe is gone
  FILE *file = fopen(path, "rbe");
  if (!file) return false;
  const size_t got = fread(first, 1, sizeof first, file);
  fclose(file);
  return got == sizeof first && memcmp(first, MAGIC, sizeof MAGIC) == 0;
}

#if TARN_PNG
// A warning about the pixels themselves is a failure: some of them would be invented.
static bool is_broken(const png_image *png) {
  return PNG_IMAGE_FAILED(*png) || (png->warning_or_error && strncmp(png->message, "IDAT", 4) == 0);
}

static tarn_status decode(tarn__image *image, png_image *png, const void *bytes, size_t size, int channels) {
  static const png_color black = {0, 0, 0};
  png->version = PNG_IMAGE_VERSION;
  (void)png_image_begin_read_from_memory(png, bytes, size);
  TARN_REQUIRE(!is_broken(png), DATA, "a broken PNG: %s", png->message);
  png->flags |= PNG_IMAGE_FLAG_16BIT_sRGB;  // 16 bits are as 8 with more digits, not linear light
  if (channels == 0) channels = png->format & PNG_FORMAT_FLAG_COLOR ? 3 : 1;
  png->format = channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  TARN_REQUIRE(tarn__image_size_fits(png->height, png->width, channels), DATA,
               "an image of %u x %u pixels; expected " TARN__IMAGE_LIMITS, (unsigned)png->height, (unsigned)png->width);
  image->size = (tarn__image_size){(int32_t)png->height, (int32_t)png->width, channels};
  TARN_TRY(tarn__grow(&image->pixels, &image->room, (size_t)tarn__image_bytes(image->size), 1));
  (void)png_image_finish_read(png, &black, image->pixels, 0, NULL);
  TARN_REQUIRE(!is_broken(png), DATA, "a broken PNG: %s", png->message);
  return TARN_STATUS_OK;
}

tarn_status tarn__png_decode(tarn__image *image, const void *bytes, size_t size, int channels) {
  png_image png;
  memset(&png, 0, sizeof png);
  TARN_REQUIRE(size >= sizeof MAGIC && memcmp(bytes, MAGIC, sizeof MAGIC) == 0, DATA, "not an image in PNG");
  const tarn_status status = decode(image, &png, bytes, size, channels);
  png_image_free(&png);
  return status;
}
#else
tarn_status tarn__png_decode(tarn__image *image, const void *bytes, size_t size, int channels) {
  (void)image, (void)bytes, (void)size, (void)channels;
  return tarn__fail(TARN_STATUS_UNSUPPORTED,
                    "this build reads no PNG: install libpng-dev and build tarn again, or give IDX files");
}
#endif

tarn_status tarn__png_read(tarn__image *image, const char *path, int channels) {
  char *bytes;
  size_t size;
  TARN_TRY(tarn__small_file_read(path, &bytes, &size, LARGEST, "a PNG"));
  const tarn_status status = tarn__png_decode(image, bytes, size, channels);
  tarn__free(bytes);
  return status == TARN_STATUS_OK ? status : tarn__fail_prefix(status, "%s: ", path);
}
