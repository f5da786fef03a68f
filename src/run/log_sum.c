#include "run/log_sum.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"

void tarn__log_sum_add(tarn__log_sum *sum, const char *text, size_t size) {
  for (size_t begin = 0; begin < size;) {
    const char *newline = memchr(text + begin, '\n', size - begin);
    if (!newline) return;
    const size_t length = (size_t)(newline - (text + begin)) + 1;
    sum->hash = tarn__hash64(text + begin, length, sum->hash);
    sum->bytes += (int64_t)length;
    begin += length;
  }
}

json_t *tarn__log_sum_write(const tarn__log_sum *sum) {
  char hash[17];
  snprintf(hash, sizeof hash, "%016" PRIx64, sum->hash);
  return json_pack("{s:I, s:s}", "bytes", (json_int_t)sum->bytes, "hash", hash);
}

tarn_status tarn__log_sum_read(tarn__log_sum *sum, const json_t *object, const char *file) {
  *sum = (tarn__log_sum){0};
  if (!object) return TARN_STATUS_OK;
  const json_t *bytes = json_object_get(object, "bytes");
  const char *hash = json_string_value(json_object_get(object, "hash"));
  TARN_REQUIRE(json_is_integer(bytes) && json_integer_value(bytes) >= 0 && hash && strlen(hash) == 16 &&
                   strspn(hash, "0123456789abcdef") == 16,
               DATA, "%s: the length and hash of the log are damaged", file);
  *sum = (tarn__log_sum){json_integer_value(bytes), strtoull(hash, NULL, 16)};
  return TARN_STATUS_OK;
}

void tarn__log_compare_text(char why[TARN__LOG_WHY], const char *text, int64_t size, const tarn__log_sum *sum,
                            bool whole, int64_t update) {
  tarn__log_sum found = {0};
  why[0] = '\0';
  if (size < sum->bytes || (whole && size > sum->bytes)) {
    snprintf(why, TARN__LOG_WHY, "it ends at byte %lld, and ended at byte %lld at update %lld", (long long)size,
             (long long)sum->bytes, (long long)update);
    return;
  }
  tarn__log_sum_add(&found, text, (size_t)sum->bytes);
  if (found.bytes != sum->bytes || found.hash != sum->hash)
    snprintf(why, TARN__LOG_WHY, "its first %lld bytes are not those of update %lld", (long long)sum->bytes,
             (long long)update);
}

tarn_status tarn__log_text(char **text, size_t *size, const char *path) {
  if (tarn__file_exists(path)) return tarn__file_read(path, text, size);
  *size = 0;
  return tarn__strdup(text, "");
}

tarn_status tarn__log_compare(char why[TARN__LOG_WHY], const char *path, const tarn__log_sum *sum, bool whole,
                              int64_t update) {
  char *text;
  size_t size;
  TARN_TRY(tarn__log_text(&text, &size, path));
  tarn__log_compare_text(why, text, (int64_t)size, sum, whole, update);
  tarn__free(text);
  return TARN_STATUS_OK;
}
