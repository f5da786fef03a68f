// The origin of the runs of a report: a line under each figure, so that a picture is self-explanatory.
#include <stdlib.h>
#include <string.h>

#include "description/description.h"
#include "report/report_view.h"
#include "run/names.h"
#include "run/run_file.h"

// Distinct words, in order of appearance; beyond `WORDS` they are only counted.
enum { WORDS = 4 };
typedef struct words {
  const char *items[WORDS];
  size_t count, more;
} words;

static void add_word(words *w, const char *word) {
  if (!word) return;
  for (size_t i = 0; i < w->count; i++)
    if (strcmp(w->items[i], word) == 0) return;
  if (w->count < WORDS)
    w->items[w->count++] = word;
  else
    w->more++;
}

static const char *joined(tarn__report *view, const words *w) {
  const char *text = "";
  for (size_t i = 0; i < w->count; i++) text = tarn__report_text(view, "%s%s%s", text, i ? ", " : "", w->items[i]);
  return w->more ? tarn__report_text(view, "%s and others", text) : text;
}

// Data collected over all started runs.
typedef struct origin {
  words corpora, processors, kernels, versions, threads;
  const char *first, *last;  // days
  size_t runs, undated;      // finished ones, and those of these without a date
} origin;

// "2026-11-23" of a date, or NULL if it is not one.
static const char *day(tarn__report *view, const char *date) {
  static const char shape[] = "dddd-dd-ddT";
  for (size_t i = 0; i < sizeof shape - 1; i++) {
    if (shape[i] == 'd' ? date[i] < '0' || date[i] > '9' : date[i] != shape[i]) return NULL;
  }
  return tarn__report_text(view, "%.10s", date);
}

// Data recorded in run directories; those of earlier versions have no date and no processor.
static tarn_status read_end(origin *o, tarn__report *view, const tarn_results_run *run) {
  const char *date = NULL, *processor = NULL, *kernels = NULL;
  tarn__run_file file = {0};
  bool exists;
  TARN_TRY(tarn__run_file_open(&file, &exists, run->path, TARN__RUN_RESULT, &view->arena));
  if (!exists) return TARN_STATUS_OK;
  tarn_status status = tarn__run_file_text(&file, file.root, "date", &date, &view->arena);
  if (status == TARN_STATUS_OK) status = tarn__run_file_text(&file, file.root, "processor", &processor, &view->arena);
  if (status == TARN_STATUS_OK) status = tarn__run_file_text(&file, file.root, "kernels", &kernels, &view->arena);
  tarn__run_file_close(&file);
  TARN_TRY(status);
  if (date) date = day(view, date);
  o->runs++;
  o->undated += !date;
  if (date && (!o->first || strcmp(date, o->first) < 0)) o->first = date;
  if (date && (!o->last || strcmp(date, o->last) > 0)) o->last = date;
  add_word(&o->processors, processor && kernels ? tarn__report_text(view, "%s (%s)", processor, kernels) : processor);
  return TARN_STATUS_OK;
}

static int ascending(const void *a, const void *b) {
  const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

// "seed 1", "seeds 1 to 3", "seeds 1, 2 and 7"
static tarn_status seeds_of(const char **out, tarn__report *view) {
  void *memory;
  size_t count = 0, kept = 0;
  const char *text = "";
  *out = "";
  TARN_TRY(tarn__arena_alloc(&view->arena, &memory, view->results->run_count, sizeof(int64_t)));
  int64_t *seeds = memory;
  for (size_t i = 0; i < view->results->run_count; i++)
    if (view->results->runs[i].config) seeds[count++] = view->results->runs[i].seed;
  if (count == 0) return TARN_STATUS_OK;
  qsort(seeds, count, sizeof *seeds, ascending);
  for (size_t i = 0; i < count; i++)
    if (kept == 0 || seeds[kept - 1] != seeds[i]) seeds[kept++] = seeds[i];
  for (size_t i = 0; i < kept; i++) {
    size_t last = i;
    while (last + 1 < kept && seeds[last + 1] == seeds[last] + 1) last++;
    if (last < i + 2) last = i;
    text = tarn__report_text(view, "%s%s%lld", text, *text ? ", " : "", (long long)seeds[i]);
    if (last > i) text = tarn__report_text(view, "%s to %lld", text, (long long)seeds[last]);
    i = last;
  }
  *out = tarn__report_text(view, "seed%s %s", kept > 1 ? "s" : "", text);
  return TARN_STATUS_OK;
}

// Appends a part after a semicolon.
static const char *with(tarn__report *view, const char *text, const char *part) {
  return *text && *part ? tarn__report_text(view, "%s; %s", text, part) : *text ? text : part;
}

static const char *when(tarn__report *view, const origin *o) {
  if (!o->first) return o->runs ? "date not recorded" : "";
  const char *undated = "";
  if (o->undated)
    undated = tarn__report_text(view, " (%zu run%s without a date)", o->undated, o->undated == 1 ? "" : "s");
  if (strcmp(o->first, o->last) == 0) return tarn__report_text(view, "trained on %s%s", o->first, undated);
  return tarn__report_text(view, "trained from %s to %s%s", o->first, o->last, undated);
}

static const char *where(tarn__report *view, const origin *o) {
  const char *threads = joined(view, &o->threads);
  const char *processor = o->processors.count ? joined(view, &o->processors) : "processor not recorded";
  if (o->runs == 0) return "";
  if (!*threads) return processor;
  return tarn__report_text(view, "%s, %s thread%s", processor, threads, strcmp(threads, "1") == 0 ? "" : "s");
}

static void describe(tarn__report *view, const origin *o, const char *seeds) {
  const char *text = o->corpora.count ? tarn__report_text(view, "Data: %s", joined(view, &o->corpora)) : "";
  text = with(view, text, seeds);
  text = with(view, text, when(view, o));
  text = with(view, text, where(view, o));
  if (o->versions.count) text = with(view, text, tarn__report_text(view, "tarn %s", joined(view, &o->versions)));
  view->origin = tarn__report_text(view, "%s.", text);
}

// Number of finished runs behind the spreads.
void tarn__report_add_runs(tarn__report_runs *runs, size_t count) {
  runs->some = runs->some || count == 1;
  if (count < 2) return;
  if (runs->least == 0 || count < runs->least) runs->least = count;
  if (count > runs->most) runs->most = count;
}

const char *tarn__report_bars(tarn__report *view, const char *what, const tarn__report_runs *runs) {
  if (runs->most == 0) return "Each model has one run, so no spread is shown.";
  const char *seeds = runs->least < runs->most ? tarn__report_text(view, "%zu to %zu", runs->least, runs->most)
                                               : tarn__report_text(view, "%zu", runs->most);
  return tarn__report_text(view,
                           "%s is the mean plus and minus one sample standard deviation over the runs of %s seeds%s.",
                           what, seeds, runs->some ? "; a model with one run has none" : "");
}

tarn_status tarn__report_origin(tarn__report *view) {
  origin o = {0};
  const char *seeds;
  for (size_t i = 0; i < view->results->run_count; i++) {
    const tarn_results_run *run = &view->results->runs[i];
    if (run->config) add_word(&o.corpora, run->config->data.train);
    add_word(&o.versions, run->version);
    if (run->threads > 0) add_word(&o.threads, tarn__report_text(view, "%lld", (long long)run->threads));
    if (run->state != TARN_RESULTS_PENDING) TARN_TRY(read_end(&o, view, run));
  }
  TARN_TRY(seeds_of(&seeds, view));
  view->date = o.last;
  describe(view, &o, seeds);
  return view->status;
}
