#include "base/small_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"

tarn_status tarn__small_file_read(const char *path, char **data, size_t *size, int64_t most, const char *what) {
  struct stat info;
  TARN_REQUIRE(stat(path, &info) == 0, IO, "%s: cannot read: %s", path, strerror(errno));
  TARN_REQUIRE(S_ISREG(info.st_mode) && info.st_size <= most, DATA,
               "%s: not %s: it is a special file or has more than %lld bytes", path, what, (long long)most);
  return tarn__file_read(path, data, size);
}
