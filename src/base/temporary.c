#include "base/temporary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_NAMES = 1000 };  // temporary files of one name and process id

static const char *name_in(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

// The length of the prefix of a name that its temporary name keeps: within the limit on names, and without splitting
// UTF-8 characters.
static int kept_of_name(const char *name) {
  size_t length = strlen(name);
  if (length <= TARN__TEMPORARY_KEEPS) return (int)length;
  length = TARN__TEMPORARY_KEEPS;
  while (length > 0 && ((unsigned char)name[length] & 0xc0) == 0x80) length--;
  return (int)length;
}

// Another process may have removed the new file as dead before it was locked: then it no longer has a name.
static bool lock_new(int fd) {
  struct stat info;
  while (flock(fd, LOCK_EX) != 0 && errno == EINTR) continue;  // other failures: this file system has no locks
  return fstat(fd, &info) != 0 || info.st_nlink > 0;
}

int tarn__temporary_make(char path[PATH_MAX], const char *target, mode_t mode) {
  const char *name = name_in(target);
  const int kept = (int)(name - target) + kept_of_name(name);
  for (int i = 0; i < MOST_NAMES; i++) {
    int length = snprintf(path, PATH_MAX, "%.*s" TARN__TEMPORARY_MARK "%ld", kept, target, (long)getpid());
    if (i > 0 && length < PATH_MAX) length += snprintf(path + length, (size_t)(PATH_MAX - length), ".%d", i);
    errno = ENAMETOOLONG;
    if (length >= PATH_MAX) return -1;
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0 && errno == EEXIST) continue;
    if (fd < 0 || lock_new(fd)) return fd;
    close(fd);
  }
  errno = EEXIST;
  return -1;
}

bool tarn__temporary_number(const char *text) {
  static const char digits[] = "0123456789";
  size_t length = strspn(text, digits);
  if (length == 0 || text[length] != '.') return length > 0 && text[length] == '\0';
  text += length + 1;
  length = strspn(text, digits);
  return length > 0 && text[length] == '\0';
}

// While the lock of a file that still has this name is held here, no other process renames or removes it: both its
// owner and a cleaning process need the lock.
static void remove_if_dead(int folder, const char *name) {
  struct stat here, there;
  const int fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return;
  if (fstat(fd, &here) == 0 && S_ISREG(here.st_mode) && here.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
      fstatat(folder, name, &there, AT_SYMLINK_NOFOLLOW) == 0 && there.st_dev == here.st_dev &&
      there.st_ino == here.st_ino)
    (void)unlinkat(folder, name, 0);
  close(fd);
}

void tarn__temporary_clean(const char *target) {
  char folder[PATH_MAX];
  const char *name = name_in(target);
  const size_t kept = (size_t)kept_of_name(name), mark = strlen(TARN__TEMPORARY_MARK);
  if (name - target >= PATH_MAX) return;
  snprintf(folder, sizeof folder, "%.*s", name == target ? 1 : (int)(name - target), name == target ? "." : target);
  DIR *entries = opendir(folder);
  if (!entries) return;
  for (const struct dirent *entry; (entry = readdir(entries));)
    if (strncmp(entry->d_name, name, kept) == 0 && strncmp(entry->d_name + kept, TARN__TEMPORARY_MARK, mark) == 0 &&
        tarn__temporary_number(entry->d_name + kept + mark))
      remove_if_dead(dirfd(entries), entry->d_name);
  closedir(entries);
}
