// Gives files to a fuzz target, without libFuzzer: every input that ever failed, in every
// build.
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "fuzz/fuzz.h"

static int count;

static void replay_file(const char *path) {
  FILE *file = fopen(path, "rb");
  struct stat info;
  if (!file || fstat(fileno(file), &info) != 0) {
    fprintf(stderr, "replay: cannot read %s\n", path);
    exit(1);
  }
  const size_t size = (size_t)info.st_size;
  uint8_t *data = malloc(size ? size : 1);
  if (!data || fread(data, 1, size, file) != size) {
    fprintf(stderr, "replay: cannot read %s\n", path);
    exit(1);
  }
  fclose(file);
  if (getenv("TARN_FUZZ_MESSAGES")) fprintf(stderr, "%s\n", path);
  (void)LLVMFuzzerTestOneInput(data, size);
  free(data);
  count++;
}

// The mutators are linked, but nothing mutates here.
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t room) {
  (void)data;
  (void)room;
  return size;
}

int main(int argc, char **argv) {
  (void)LLVMFuzzerInitialize(&argc, &argv);
  (void)LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
  for (int i = 1; i < argc; i++) replay_file(argv[i]);
  printf("%d inputs\n", count);
  return count > 0 ? 0 : 1;
}
