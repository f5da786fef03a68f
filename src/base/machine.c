#include "base/machine.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

// Strips spaces at the ends and reduces others to single ones.
static void squeeze(char *name, size_t size, const char *text) {
  size_t used = 0;
  for (; *text && used + 1 < size; text++) {
    const bool space = *text == ' ' || *text == '\t' || *text == '\n';
    if (!space)
      name[used++] = *text;
    else if (used > 0 && name[used - 1] != ' ')
      name[used++] = ' ';
  }
  if (used > 0 && name[used - 1] == ' ') used--;
  name[used] = '\0';
}

static FILE *open_list(void) {
  FILE *file;
  do file = fopen("/proc/cpuinfo", "re");
  while (!file && errno == EINTR);
  return file;
}

static bool read_line(char *line, int size, FILE *file) {
  errno = 0;
  while (!fgets(line, size, file)) {
    if (errno != EINTR) return false;
    errno = 0;
    clearerr(file);
  }
  return true;
}

void tarn__processor(char name[TARN__PROCESSOR_TEXT]) {
  char line[512];
  struct utsname system;
  FILE *file = open_list();
  *name = '\0';
  while (file && !*name && read_line(line, sizeof line, file)) {
    const char *colon = strncmp(line, "model name", strlen("model name")) == 0 ? strchr(line, ':') : NULL;
    if (colon) squeeze(name, TARN__PROCESSOR_TEXT, colon + 1);
  }
  if (file) fclose(file);
  if (!*name) squeeze(name, TARN__PROCESSOR_TEXT, uname(&system) == 0 ? system.machine : "unknown processor");
}

void tarn__date(char text[TARN__DATE_TEXT]) {
  const time_t now = time(NULL);
  struct tm utc;
  *text = '\0';
  if (gmtime_r(&now, &utc)) strftime(text, TARN__DATE_TEXT, "%Y-%m-%dT%H:%M:%SZ", &utc);
}
