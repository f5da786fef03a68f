#include "base/write_all.h"

#include <errno.h>
#include <unistd.h>

bool tarn__write_all(int fd, const void *data, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t now = write(fd, (const char *)data + done, size - done);
    if (now == 0) errno = ENOSPC;
    if (now == 0 || (now < 0 && errno != EINTR)) return false;
    if (now > 0) done += (size_t)now;
  }
  return true;
}
