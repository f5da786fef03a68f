#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz/fuzz.h"

static char own_folder[PATH_MAX];

static void die(const char *what, const char *name) {
  fprintf(stderr, "fuzz: cannot %s %s: %s\n", what, name, strerror(errno));
  abort();
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *ftw) {
  (void)info;
  (void)type;
  (void)ftw;
  return remove(path);
}

void fuzz_remove(const char *folder) {
  if (nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0 && errno != ENOENT) die("remove", folder);
}

static void leave(void) {
  if (chdir("/") == 0) fuzz_remove(own_folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc;
  (void)argv;
  const char *place = getenv("TARN_FUZZ_FOLDER");
  if (!place) place = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
  if (snprintf(own_folder, sizeof own_folder, "%s/tarn-fuzz-XXXXXX", place) >= (int)sizeof own_folder) abort();
  if (!mkdtemp(own_folder) || chdir(own_folder) != 0) die("make", own_folder);
  atexit(leave);
  fuzz_prepare();
  return 0;
}

void fuzz_write(const char *name, const void *data, size_t size) {
  int file = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) die("write", name);
  for (size_t done = 0; done < size;) {
    ssize_t now = write(file, (const char *)data + done, size - done);
    if (now < 0) die("write", name);
    done += (size_t)now;
  }
  close(file);
}

void fuzz_copy(const char *name, const char *path) {
  char from[PATH_MAX];
  if (snprintf(from, sizeof from, "%s/%s", TARN_SOURCE_DIR, path) >= (int)sizeof from) abort();
  FILE *file = fopen(from, "rb");
  if (!file) die("read", from);
  static char bytes[1 << 20];
  size_t size = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  fuzz_write(name, bytes, size);
}

static bool name_is_good(const char *name, size_t length) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./";
  int folders = 0;
  if (length == 0 || length > 80 || name[0] == '/' || name[length - 1] == '/') return false;
  for (size_t i = 0; i < length; i++) {
    if (!memchr(letters, name[i], sizeof letters - 1)) return false;
    if (name[i] != '/') continue;
    folders++;
    if (name[i + 1] == '/') return false;
  }
  return folders <= 3 && !memmem(name, length, "..", 2) && name[0] != '.';
}

// The next line "-- NAME --" at or behind `at`; its end is set, with the line's end. NULL: there is none.
static const char *find_name(const char *at, const char *end, const char **name, size_t *length, const char **next) {
  while (at < end) {
    const char *line_end = memchr(at, '\n', (size_t)(end - at));
    if (!line_end) return NULL;
    size_t size = (size_t)(line_end - at);
    if (size > 6 && memcmp(at, "-- ", 3) == 0 && memcmp(line_end - 3, " --", 3) == 0) {
      *name = at + 3;
      *length = size - 6;
      *next = line_end + 1;
      return at;
    }
    at = line_end + 1;
  }
  return NULL;
}

static bool put(const char *folder, const char *name, size_t length, const char *data, size_t size) {
  char path[PATH_MAX];
  if (!name_is_good(name, length)) return false;
  int used = snprintf(path, sizeof path, "%s/%.*s", folder, (int)length, name);
  for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    if (mkdir(path, 0777) != 0 && errno != EEXIST) return false;
    *slash = '/';
  }
  struct stat info;
  if (used <= 0 || (stat(path, &info) == 0 && S_ISDIR(info.st_mode))) return false;
  char *slash = strrchr(path, '/');
  *slash = '\0';
  bool in_folder = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
  *slash = '/';
  if (in_folder) fuzz_write(path, data, size);
  return in_folder;
}

size_t fuzz_unpack(const char *folder, const uint8_t *data, size_t size) {
  const char *text = (const char *)data;
  const char *end = text + size;
  const char *name, *next, *name_after, *next_after;
  size_t length, length_after, count = 0;
  fuzz_remove(folder);
  if (mkdir(folder, 0777) != 0) die("make", folder);
  const char *at = find_name(text, end, &name, &length, &next);
  while (at && count < 40) {
    const char *after = find_name(next, end, &name_after, &length_after, &next_after);
    const char *stop = after ? after : end;
    count += put(folder, name, length, next, (size_t)(stop - next));
    at = after;
    name = name_after, length = length_after, next = next_after;
  }
  return count;
}

unsigned fuzz_choice(const uint8_t *data, size_t size) {
  unsigned choice = 0;
  for (size_t i = 0; i < size; i++) choice = choice * 31 + data[i];
  return choice >> 4;
}

bool fuzz_good(tarn_status status) {
  if (status == TARN_STATUS_OK) return true;
  const char *line = tarn_error_message();
  if (status == TARN_STATUS_INTERNAL || !*line || strchr(line, '\n')) {
    fprintf(stderr, "fuzz: %s: \"%s\"\n", tarn_status_text(status), line);
    abort();
  }
  if (getenv("TARN_FUZZ_MESSAGES")) fprintf(stderr, "%s\n", line);
  return false;
}

void fuzz_must(tarn_status status) {
  if (fuzz_good(status)) return;
  fprintf(stderr, "fuzz: it should have gone well: \"%s\"\n", tarn_error_message());
  abort();
}
