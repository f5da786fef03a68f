#include "progress_line.h"

#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "colour.h"
#include "tarn/text.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // protects the following, and the line on the terminal
static FILE *stand;                                       // NULL: standard error
static bool open_line;

static FILE *stream(void) { return stand ? stand : stderr; }

bool progress_line_stands_on(FILE *given) {
  pthread_mutex_lock(&lock);
  stand = given;
  pthread_mutex_unlock(&lock);
  return colour_is_terminal(given);
}

// Usable columns of a line: a character in the last column would make some terminals wrap. Queried each time, as the
// window may be resized.
static size_t room(void) {
  struct winsize size;
  const bool known = ioctl(fileno(stream()), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return (known ? size.ws_col : 80) - (size_t)1;
}

static size_t columns(const char *text) { return tarn_text_columns(text, strlen(text), SIZE_MAX, NULL); }

static void show(const char (*parts)[PROGRESS_PART], size_t count) {
  FILE *file = stream();
  if (!colour_is_terminal(file)) return;
  if (file != stdout) fflush(stdout);  // flushes earlier output first
  const size_t most = room();
  size_t fits;
  size_t used = tarn_text_columns(parts[0], strlen(parts[0]), most, &fits);
  fprintf(file, "\r%s%.*s%s", colour_on(file, COLOUR_BOLD), (int)fits, parts[0], colour_on(file, COLOUR_NONE));
  for (size_t i = 1; i < count && used + 2 + columns(parts[i]) <= most; i++) {
    used += 2 + columns(parts[i]);
    fprintf(file, "  %s", parts[i]);
  }
  fprintf(file, "\033[K");
  fflush(file);
  open_line = true;
}

void progress_line_show(const char (*parts)[PROGRESS_PART], size_t count) {
  pthread_mutex_lock(&lock);
  show(parts, count);
  pthread_mutex_unlock(&lock);
}

void progress_line_hold(void) {
  pthread_mutex_lock(&lock);
  if (!open_line) return;
  fprintf(stream(), "\r\033[K");
  fflush(stream());
  open_line = false;
}

void progress_line_release(void) { pthread_mutex_unlock(&lock); }

void progress_line_clear(void) {
  progress_line_hold();
  progress_line_release();
}

void progress_line_make_way(void) {
  if (isatty(STDOUT_FILENO)) progress_line_clear();
}
