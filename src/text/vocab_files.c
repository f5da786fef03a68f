#include "text/vocab_files.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"

enum { LARGEST = 1 << 26 };  // bytes of a file

bool tarn__vocab_is_folder(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

const char *tarn__vocab_base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

tarn_status tarn__vocab_sibling(char out[PATH_MAX], const char *path, const char *name) {
  char folder[PATH_MAX];
  if (tarn__vocab_is_folder(path)) return tarn__path_join(out, path, name);
  TARN_REQUIRE(strlen(path) < PATH_MAX, IO, "%s: the path is too long", path);
  const size_t length = (size_t)(tarn__vocab_base_name(path) - path);
  memcpy(folder, path, length);
  folder[length] = '\0';
  return tarn__path_join(out, folder, name);
}

tarn_status tarn__vocab_file_read(const char *path, char **data, size_t *size, const char *whose) {
  struct stat info;
  TARN_REQUIRE(stat(path, &info) == 0, IO, "%s: cannot read: %s", path, strerror(errno));
  TARN_REQUIRE(S_ISREG(info.st_mode) && info.st_size <= LARGEST, DATA,
               "%s: not a file of %s vocabulary: it is a special file or has more than %d bytes", path, whose, LARGEST);
  return tarn__file_read(path, data, size);
}
