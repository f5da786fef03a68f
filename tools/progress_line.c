#include "progress_line.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

// Columns that a line may fill: a character in the last one would make some terminals go on to the next line.
static size_t room(void) {
  struct winsize size;
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return (known ? size.ws_col : 80) - (size_t)1;
}

// Characters of a text; one is taken to fill one column.
static size_t columns(const char *text) {
  size_t count = 0;
  for (; *text; text++) count += ((unsigned char)*text & 0xC0) != 0x80;
  return count;
}

// Bytes of the first `count` characters.
static size_t bytes(const char *text, size_t count) {
  size_t at = 0;
  while (text[at] && count-- > 0) do
      at++;
    while (((unsigned char)text[at] & 0xC0) == 0x80);
  return at;
}

void progress_line_show(const char (*parts)[PROGRESS_PART], size_t count) {
  const size_t most = room();
  size_t used = columns(parts[0]);
  printf("\r%.*s", (int)bytes(parts[0], most), parts[0]);
  for (size_t i = 1; i < count && used + 2 + columns(parts[i]) <= most; i++) {
    used += 2 + columns(parts[i]);
    printf("  %s", parts[i]);
  }
  printf("\033[K");
  fflush(stdout);
}

void progress_line_clear(void) { printf("\r\033[K"); }
