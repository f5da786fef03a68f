#include "progress_show.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "colour.h"
#include "progress_line.h"
#include "tarn/process.h"

progress_settings progress_wanted;

enum { PARTS = 5, KINDS = 16 };  // parts of a line; kinds of work with a remembered last line
static const double SHOWN_FROM = 1.0, PLAIN_EVERY = 10.0, EVERY = 0.1;  // seconds

// "1234 sentences", "12.3 M sentences", "1.2 GB".
static void amount(char text[PROGRESS_PART], double number, const char *unit) {
  static const char *const scales[] = {"", "k", "M", "G", "T", "P"};
  const bool bytes = strcmp(unit, "bytes") == 0;
  int scale = 0;
  // Small numbers stay unabbreviated.
  if (bytes || number >= 1e6)
    for (; number >= 1000 && scale < 5; scale++) number /= 1000;
  const int digits = (scale > 0 || number < 10) && number < 100 && number != floor(number) ? number < 10 ? 2 : 1 : 0;
  snprintf(text, PROGRESS_PART, "%.*f %s%s%s", digits, number, scales[scale], bytes || !scale ? "" : " ",
           bytes ? "B" : unit);
}

static void describe(char parts[PARTS][PROGRESS_PART], const tarn_progress *p) {
  char time[32];
  size_t used = 0;
  memset(parts, 0, PARTS * sizeof *parts);
  snprintf(parts[used++], PROGRESS_PART, "%s", p->what);
  if (isfinite(p->share)) {
    snprintf(parts[used++], PROGRESS_PART, "%.0f %%", floor(100 * p->share));
    if (p->share > 0.002)
      snprintf(parts[used++], PROGRESS_PART, "%s left", cli_time(time, p->seconds * (1 - p->share) / p->share));
  } else {
    snprintf(parts[used++], PROGRESS_PART, "%s so far", cli_time(time, p->seconds));
  }
  if (!*p->unit || p->done <= 0) return;
  amount(parts[used], p->done / p->seconds, p->unit);
  strcat(parts[used++], "/s");
  amount(parts[used++], p->done, p->unit);
}

static double seconds_now(void) {
  struct timespec clock;
  clock_gettime(CLOCK_MONOTONIC, &clock);
  return (double)clock.tv_sec + 1e-9 * (double)clock.tv_nsec;
}

// One line per kind of work every ten seconds, however often it restarts, like validations.
static bool is_due(const char what[PROGRESS_PART]) {
  static struct told {
    char what[PROGRESS_PART];
    double when;
  } told[KINDS];
  struct told *place = told;
  const double now = seconds_now();
  for (int i = 0; i < KINDS; i++) {
    if (strcmp(told[i].what, what) == 0) {
      place = &told[i];
      break;
    }
    if (told[i].when < place->when) place = &told[i];
  }
  if (strcmp(place->what, what) == 0 && now - place->when < PLAIN_EVERY) return false;
  memcpy(place->what, what, PROGRESS_PART);
  place->when = now;
  return true;
}

static void show_plain(const tarn_progress *p, char parts[PARTS][PROGRESS_PART]) {
  if (p->over || !is_due(parts[0])) return;
  fprintf(stderr, "tarn:");
  for (int i = 0; i < PARTS && *parts[i]; i++) fprintf(stderr, "%s %s", i ? " " : "", parts[i]);
  fprintf(stderr, "\n");
}

static void receive(void *user, const tarn_progress *p) {
  char parts[PARTS][PROGRESS_PART];
  size_t count = 0;
  (void)user;
  if (progress_wanted.quiet || (p->seconds < SHOWN_FROM && !p->over && !progress_wanted.asked)) return;
  describe(parts, p);
  while (count < PARTS && *parts[count]) count++;
  if (p->over)
    progress_line_clear();
  else
    progress_line_show((const char(*)[PROGRESS_PART])parts, count);
  if (progress_wanted.asked && !colour_is_terminal(stderr)) show_plain(p, parts);
}

void progress_start(void) { tarn_progress_set(receive, NULL); }

void progress_own_at(progress_own *work, double done) {
  const double now = seconds_now();
  work->done = done;
  if (work->begun <= 0) work->begun = now;
  if (now < work->due) return;
  work->due = now + EVERY;
  const tarn_progress p = {work->what, work->unit, done, NAN, now - work->begun, false};
  receive(NULL, &p);
}

void progress_own_end(progress_own *work) {
  if (work->due <= 0) return;
  const tarn_progress p = {work->what, work->unit, work->done, NAN, seconds_now() - work->begun, true};
  receive(NULL, &p);
}
