#include "base/machine.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
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

// What follows the colon of a line that begins with `key`; NULL: another line.
static const char *value_of(const char *line, const char *key) {
  const char *colon = strncmp(line, key, strlen(key)) == 0 ? strchr(line, ':') : NULL;
  return colon ? colon + 1 : NULL;
}

// Processors by the numbers of implementer and part (register MIDR_EL1), those that run Linux and are common.
static const char *arm_name(unsigned long implementer, unsigned long part) {
  static const struct {
    unsigned short implementer, part;
    const char *name;
  } known[] = {
      {0x41, 0xd03, "Cortex-A53"},  {0x41, 0xd04, "Cortex-A35"},  {0x41, 0xd05, "Cortex-A55"},
      {0x41, 0xd07, "Cortex-A57"},  {0x41, 0xd08, "Cortex-A72"},  {0x41, 0xd09, "Cortex-A73"},
      {0x41, 0xd0a, "Cortex-A75"},  {0x41, 0xd0b, "Cortex-A76"},  {0x41, 0xd0c, "Neoverse-N1"},
      {0x41, 0xd0d, "Cortex-A77"},  {0x41, 0xd40, "Neoverse-V1"}, {0x41, 0xd41, "Cortex-A78"},
      {0x41, 0xd44, "Cortex-X1"},   {0x41, 0xd47, "Cortex-A710"}, {0x41, 0xd49, "Neoverse-N2"},
      {0x41, 0xd4f, "Neoverse-V2"}, {0x41, 0xd84, "Neoverse-V3"}, {0x41, 0xd8e, "Neoverse-N3"},
      {0xc0, 0xac3, "Ampere-1"},
  };
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
    if (known[i].implementer == implementer && known[i].part == part) return known[i].name;
  return NULL;
}

void tarn__processor_in(char name[TARN__PROCESSOR_TEXT], FILE *list) {
  char line[512];
  unsigned long implementer = 0;
  const char *value;
  *name = '\0';
  while (list && !*name && read_line(line, sizeof line, list)) {
    if ((value = value_of(line, "model name"))) squeeze(name, TARN__PROCESSOR_TEXT, value);
    if ((value = value_of(line, "CPU implementer"))) implementer = strtoul(value, NULL, 16);
    if (!(value = value_of(line, "CPU part"))) continue;
    const unsigned long part = strtoul(value, NULL, 16);
    const char *known = arm_name(implementer, part);
    if (known)
      squeeze(name, TARN__PROCESSOR_TEXT, known);
    else
      snprintf(name, TARN__PROCESSOR_TEXT, "ARM processor 0x%lx 0x%lx", implementer, part);
  }
}

void tarn__processor(char name[TARN__PROCESSOR_TEXT]) {
  struct utsname system;
  FILE *file = open_list();
  tarn__processor_in(name, file);
  if (file) fclose(file);
  if (!*name) squeeze(name, TARN__PROCESSOR_TEXT, uname(&system) == 0 ? system.machine : "unknown processor");
}

void tarn__date(char text[TARN__DATE_TEXT]) {
  const time_t now = time(NULL);
  struct tm utc;
  *text = '\0';
  if (gmtime_r(&now, &utc)) strftime(text, TARN__DATE_TEXT, "%Y-%m-%dT%H:%M:%SZ", &utc);
}
