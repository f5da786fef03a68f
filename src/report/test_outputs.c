// Translations of the test set.
#include "report/test_outputs.h"
#include "run/names.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "eval/statistics.h"
#include "report/sentence_bleu.h"
#include "run/run_file.h"
#include "tarn/score.h"

// The two scores of translations.
typedef struct kind {
  const char *name;
  double (*score)(const tarn_results_run *run);
  const char *(*signature)(const tarn_results_run *run);
} kind;

static double bleu_score(const tarn_results_run *run) { return run->test_bleu; }
static double chrf_score(const tarn_results_run *run) { return run->test_chrf; }
static const char *bleu_signature(const tarn_results_run *run) { return run->test_signature; }
static const char *chrf_signature(const tarn_results_run *run) { return run->test_chrf_signature; }
static const kind bleu_kind = {"BLEU", bleu_score, bleu_signature};
static const kind chrf_kind = {"chrF", chrf_score, chrf_signature};

typedef struct work {
  struct tarn__results_table_memory *table;
  const kind *kind;
  tarn_statistics **statistics;  // (systems)
  size_t *runs;                  // (systems) the run of each
  size_t systems;
  double *sums;                 // space for the sums of any statistics
  tarn_score_lines references;  // open if a run has its own outputs
  size_t sentences;             // of every system
  // Those of the first run; tarn__table_check() has checked that all agree.
  bool known;
  tarn_bleu_options bleu;
  tarn_chrf_options chrf;
  size_t missing;   // finished runs with a score whose outputs, references or signature no longer exist
  size_t untested;  // finished runs without a score
} work;

// The value of a key in a signature, "lc" for "case:lc", in a buffer of 64 bytes.
static const char *signature_word(char word[64], const char *signature, const char *key) {
  size_t length = strlen(key);
  for (const char *part = signature; part; part = strchr(part, '|') ? strchr(part, '|') + 1 : NULL) {
    if (strncmp(part, key, length) != 0 || part[length] != ':') continue;
    snprintf(word, 64, "%.*s", (int)strcspn(part + length + 1, "|"), part + length + 1);
    return word;
  }
  return "";
}

static tarn_status parse_bleu(tarn_bleu_options *bleu, const char *signature) {
  char word[64];
  tarn_bleu_default(bleu);
  bleu->lowercase = strcmp(signature_word(word, signature, "case"), "lc") == 0;
  TARN_TRY(tarn_bleu_tokenizer_parse(&bleu->tokenizer, signature_word(word, signature, "tok")));
  TARN_REQUIRE(strcmp(signature_word(word, signature, "smooth"), "exp") == 0, DATA,
               "only BLEU with smooth:exp can be tested");
  return TARN_STATUS_OK;
}

// The orders that tarn test uses; other programs may have written others.
static tarn_status parse_chrf(tarn_chrf_options *chrf, const char *signature) {
  char words[3][64];
  tarn_chrf_default(chrf);
  chrf->lowercase = strcmp(signature_word(words[0], signature, "case"), "lc") == 0;
  TARN_REQUIRE(strcmp(signature_word(words[0], signature, "nc"), "6") == 0 &&
                   strcmp(signature_word(words[1], signature, "nw"), "0") == 0 &&
                   strcmp(signature_word(words[2], signature, "space"), "no") == 0,
               DATA, "only chrF with nc:6, nw:0 and space:no can be tested");
  return TARN_STATUS_OK;
}

static tarn_status explain_signature(tarn_status status, const tarn_results_run *run) {
  if (status == TARN_STATUS_OK) return status;
  return tarn__fail_prefix(TARN_STATUS_DATA, "%s/" TARN__RUN_TEST ", signature: ", run->path);
}

tarn_status tarn__test_outputs_bleu_options(tarn_bleu_options *options, const tarn_results_run *run) {
  return explain_signature(parse_bleu(options, run->test_signature), run);
}

static tarn_status read_signature(work *w, const tarn_results_run *run) {
  if (w->kind == &bleu_kind) return tarn__test_outputs_bleu_options(&w->bleu, run);
  return explain_signature(parse_chrf(&w->chrf, run->test_chrf_signature), run);
}

static double score(void *user, size_t system, const uint32_t *times) {
  const work *w = user;
  return tarn__statistics_score_of(w->statistics[system], times, w->sums);
}

// All runs have the same references, so the lengths of these must agree.
static tarn_status check_references(const work *w, const tarn_statistics *statistics, const char *name) {
  const tarn_statistics *first = w->statistics[0];
  for (size_t i = 0; w->kind == &bleu_kind && i < statistics->sentences; i++) {
    const size_t at = (i + 1) * TARN__BLEU_WIDTH - 1;
    TARN_REQUIRE(
        statistics->values[at] == first->values[at], DATA,
        "%s: the reference of its sentence %zu has %.0f words, and that of %s %.0f: they were tested on other texts",
        name, i + 1, statistics->values[at], w->table->results->runs[w->runs[0]].path, first->values[at]);
  }
  return TARN_STATUS_OK;
}

// Adds the statistics of a run, read from the file `name`, of these references (NULL: recorded without them).
static tarn_status add_system(work *w, size_t run, tarn_statistics *statistics, const char *name,
                              const char *references) {
  const double expected = w->kind->score(&w->table->results->runs[run]);
  w->statistics[w->systems] = statistics;
  w->runs[w->systems++] = run;
  if (!w->sums) {
    void *memory;
    TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, statistics->width, sizeof *w->sums));
    w->sums = memory;
    w->sentences = statistics->sentences;
  }
  TARN_REQUIRE(statistics->sentences == w->sentences, DATA, "%s: it has %zu sentences, and that of %s %zu", name,
               statistics->sentences, w->table->results->runs[w->runs[0]].path, w->sentences);
  const double value = tarn__statistics_score_of(statistics, NULL, w->sums);
  TARN_REQUIRE(fabs(value - expected) < 1e-6, DATA,
               "%s: its %s%s%s is %.4f, but " TARN__RUN_TEST " says %.4f: they do not belong together", name,
               w->kind->name, references ? " against " : "", references ? references : "", value, expected);
  return check_references(w, statistics, name);
}

static tarn_status count_run(work *w, size_t run, const tarn_score_lines *hypotheses) {
  const char *const *streams[] = {w->references.items};
  tarn_statistics *statistics;
  TARN_TRY(tarn_score_lines_match(hypotheses, &w->references));
  if (w->kind == &bleu_kind) {
    tarn_bleu_result result;
    TARN_TRY(tarn_bleu_statistics(&statistics, &result, hypotheses->items, streams, hypotheses->count, 1, &w->bleu));
  } else {
    tarn_chrf_result result;
    TARN_TRY(tarn_chrf_statistics(&statistics, &result, hypotheses->items, streams, hypotheses->count, 1, &w->chrf));
  }
  return add_system(w, run, statistics, hypotheses->name, w->references.name);
}

static tarn_status read_outputs(work *w, size_t index, const char *path) {
  tarn_score_lines hypotheses;
  if (!w->references.items)
    TARN_TRY(tarn_score_lines_open(&w->references, w->table->results->runs[index].test_reference));
  TARN_TRY(tarn_score_lines_open(&hypotheses, path));
  tarn_status status = count_run(w, index, &hypotheses);
  tarn_score_lines_close(&hypotheses);
  return status;
}

static tarn_status read_recorded(work *w, size_t index, const char *path) {
  tarn_statistics *statistics;
  TARN_TRY(tarn__sentence_bleu_read(&statistics, path, &w->bleu, w->kind->signature(&w->table->results->runs[index])));
  return add_system(w, index, statistics, path, NULL);
}

static bool exists(const char *path) { return path && tarn__file_exists(path); }

static tarn_status read_run(work *w, size_t index) {
  const tarn_results_run *run = &w->table->results->runs[index];
  const char *path, *recorded;
  if (run->state != TARN_RESULTS_FINISHED) return TARN_STATUS_OK;
  if (isnan(w->kind->score(run))) {
    w->untested++;
    return TARN_STATUS_OK;
  }
  TARN_TRY(tarn__join(&path, &w->table->arena, run->path, TARN__RUN_HYPOTHESES));
  TARN_TRY(tarn__join(&recorded, &w->table->arena, run->path, TARN__RUN_BLEU));
  const bool own = exists(path) && exists(run->test_reference);
  if (!w->kind->signature(run) || (!own && (w->kind != &bleu_kind || !exists(recorded)))) {
    w->missing++;
    return TARN_STATUS_OK;
  }
  if (!w->known) TARN_TRY(read_signature(w, run));
  w->known = true;
  return own ? read_outputs(w, index, path) : read_recorded(w, index, recorded);
}

static tarn_status note_missing(const work *w) {
  if (w->missing > 0)
    TARN_TRY(tarn__table_note(w->table,
                              "%zu finished runs have a test %s, but its signature, their " TARN__RUN_HYPOTHESES
                              " or references are not "
                              "there: their configurations get no verdict on it",
                              w->missing, w->kind->name));
  if (w->known && w->untested > 0)
    TARN_TRY(tarn__table_note(w->table, "%zu finished runs have no test %s and no part in verdicts on it", w->untested,
                              w->kind->name));
  return TARN_STATUS_OK;
}

static tarn_status read_runs(work *w) {
  void *memory;
  size_t count = w->table->results->run_count;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, count, sizeof *w->statistics));
  w->statistics = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, count, sizeof *w->runs));
  w->runs = memory;
  for (size_t i = 0; i < count; i++) TARN_TRY(read_run(w, i));
  return note_missing(w);
}

tarn_status tarn__test_outputs_resample(tarn__test_outputs *out, const struct tarn__results_table_memory *t,
                                        const size_t *runs, size_t systems, size_t items,
                                        tarn__bootstrap_score score_of, void *user, const size_t *strata,
                                        size_t stratum_count) {
  void *memory;
  size_t all;
  size_t resamples = (size_t)t->options.resamples;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, t->results->run_count, sizeof *out->resampled));
  out->resampled = memory;
  if (systems == 0) return TARN_STATUS_OK;
  TARN_TRY(tarn__mul_size(&all, systems, resamples + 1));
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, all, sizeof *out->scores));
  out->scores = memory;
  tarn__bootstrap_options options = {
      .resamples = t->options.resamples, .seed = t->options.seed, .strata = strata, .stratum_count = stratum_count};
  double *observed = out->scores + systems * resamples;
  TARN_TRY(tarn__bootstrap(observed, out->scores, systems, items, score_of, user, &options));
  for (size_t i = 0; i < systems; i++) out->resampled[runs[i]] = out->scores + i * resamples;
  out->items = items;
  return TARN_STATUS_OK;
}

static tarn_status translations(tarn__test_outputs *out, struct tarn__results_table_memory *t, const kind *which) {
  work w = {.table = t, .kind = which};
  tarn_status status = read_runs(&w);
  if (status == TARN_STATUS_OK)
    status = tarn__test_outputs_resample(out, t, w.runs, w.systems, w.sentences, score, &w, NULL, 0);
  for (size_t i = 0; i < w.systems; i++) tarn_statistics_close(&w.statistics[i]);
  tarn__free(w.statistics);
  tarn__free(w.runs);
  tarn__free(w.sums);
  tarn_score_lines_close(&w.references);
  return status;
}

tarn_status tarn__test_outputs_bleu(tarn__test_outputs *out, struct tarn__results_table_memory *t) {
  return translations(out, t, &bleu_kind);
}

tarn_status tarn__test_outputs_chrf(tarn__test_outputs *out, struct tarn__results_table_memory *t) {
  return translations(out, t, &chrf_kind);
}

void tarn__test_outputs_close(tarn__test_outputs *outputs) {
  tarn__free(outputs->resampled);
  tarn__free(outputs->scores);
  *outputs = (tarn__test_outputs){0};
}
