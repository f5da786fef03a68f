#include "colour.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool colour_is_terminal(FILE *stream) {
  const char *term = getenv("TERM");
  return isatty(fileno(stream)) && !(term && strcmp(term, "dumb") == 0);
}

const char *colour_on(FILE *stream, colour which) {
  static const char *const codes[] = {"\033[0m", "\033[1m", "\033[1;31m", "\033[32m", "\033[33m"};
  const char *refused = getenv("NO_COLOR");
  return (refused && *refused) || !colour_is_terminal(stream) ? "" : codes[which];
}
