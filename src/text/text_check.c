#include "text/text_check.h"

#include <string.h>

#include "run/file_kind.h"

enum { LOOKED_AT = 4096 };

static const char *remedy(tarn__file_kind kind) {
  switch (kind) {
    case TARN__FILE_KIND_UTF16:
      return "; convert it with: iconv -f UTF-16 -t UTF-8";
    case TARN__FILE_KIND_UTF32:
      return "; convert it with: iconv -f UTF-32 -t UTF-8";
    case TARN__FILE_KIND_COMPRESSED:
    case TARN__FILE_KIND_ZIP:
      return "; unpack it first (.gz, .xz and .zst are read as they are)";
    default:
      return "";
  }
}

static tarn_status check_kind(const char *path, const char *bytes, size_t size) {
  const tarn__file_kind kind = tarn__file_kind_of(bytes, size < LOOKED_AT ? size : LOOKED_AT);
  switch (kind) {
    case TARN__FILE_KIND_SHARD:
    case TARN__FILE_KIND_MODEL:
    case TARN__FILE_KIND_SERIES:
    case TARN__FILE_KIND_TENSORS:
    case TARN__FILE_KIND_HF_WEIGHTS:
    case TARN__FILE_KIND_VOCAB:
    case TARN__FILE_KIND_UTF16:
    case TARN__FILE_KIND_UTF32:
    case TARN__FILE_KIND_COMPRESSED:
    case TARN__FILE_KIND_ZIP:
    case TARN__FILE_KIND_PICKLE:
    case TARN__FILE_KIND_GGUF:
      return tarn__fail(TARN_STATUS_DATA, "%s: this is %s; a text is a file of lines in UTF-8%s", path,
                        tarn__file_kind_name(kind), remedy(kind));
    default:
      return TARN_STATUS_OK;
  }
}

tarn_status tarn__text_check(const char *path, int64_t number, const char *line, size_t length, size_t at_hand) {
  if (number == 1) TARN_TRY(check_kind(path, line, at_hand));
  TARN_REQUIRE(length == 0 || !memchr(line, 0, length), DATA,
               "%s:%lld: a zero byte, which no text in UTF-8 has; is this text in UTF-16, or no text?", path,
               (long long)number);
  return TARN_STATUS_OK;
}
