// A separate folder for a test that writes files: the working directory while the test runs, removed afterwards.
#ifndef TARN_TESTS_SANDBOX_H
#define TARN_TESTS_SANDBOX_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char sandbox_path[64];

static inline int sandbox_remove_one(const char *path, const struct stat *info, int type, struct FTW *ftw) {
  (void)info;
  (void)type;
  (void)ftw;
  return remove(path);
}

// For cmocka's group setup and teardown.
static inline int sandbox_open(void **state) {
  (void)state;
  snprintf(sandbox_path, sizeof sandbox_path, "/tmp/tarn-test-XXXXXX");
  return mkdtemp(sandbox_path) && chdir(sandbox_path) == 0 ? 0 : -1;
}

static inline int sandbox_close(void **state) {
  (void)state;
  return chdir("/") == 0 ? nftw(sandbox_path, sandbox_remove_one, 16, FTW_DEPTH | FTW_PHYS) : -1;
}

// Writes a text file in the sandbox; the test stops if that fails.
static inline void sandbox_write(const char *path, const void *data, size_t size) {
  FILE *file = fopen(path, "wb");
  if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0) abort();
}

#endif
