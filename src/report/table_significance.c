// Significance of differences in test BLEU, from the outputs of runs.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "eval/bootstrap.h"
#include "report/run_files.h"
#include "report/table_build.h"

// What was read of one run's outputs.
typedef struct outputs {
  tarn__bleu_statistics *statistics;  // (sentences); NULL: there are none
} outputs;

typedef struct work {
  struct tarn__results_table_memory *table;
  outputs *runs;  // (runs)
  tarn_score_lines references;
  bool
      known;  // references and bleu are those of the first run with outputs; tarn__table_check() saw that all have them
  tarn_bleu_options bleu;
  size_t missing;   // finished runs with a score whose outputs or references are gone
  size_t untested;  // finished runs without a score
} work;

// The value of a key of a signature, "lc" of "case:lc", in a buffer of 64 bytes.
static const char *signature_word(char word[64], const char *signature, const char *key) {
  size_t length = strlen(key);
  for (const char *part = signature; part; part = strchr(part, '|') ? strchr(part, '|') + 1 : NULL) {
    if (strncmp(part, key, length) != 0 || part[length] != ':') continue;
    snprintf(word, 64, "%.*s", (int)strcspn(part + length + 1, "|"), part + length + 1);
    return word;
  }
  return "";
}

static tarn_status read_signature(tarn_bleu_options *bleu, const tarn_results_run *run) {
  char word[64];
  tarn_bleu_default(bleu);
  const char *signature = run->test_signature ? run->test_signature : "";
  bleu->lowercase = strcmp(signature_word(word, signature, "case"), "lc") == 0;
  tarn_status status = tarn_bleu_tokenizer_parse(&bleu->tokenizer, signature_word(word, signature, "tok"));
  if (status == TARN_STATUS_OK && strcmp(signature_word(word, signature, "smooth"), "exp") != 0)
    status = tarn__fail(TARN_STATUS_DATA, "only BLEU with smooth:exp can be tested");
  if (status != TARN_STATUS_OK) return tarn__fail_prefix(TARN_STATUS_DATA, "%s/test.json, signature: ", run->path);
  return status;
}

static tarn_status count_run(work *w, outputs *out, const tarn_results_run *run, const tarn_score_lines *hypotheses) {
  void *memory;
  tarn__bleu_statistics sums = {0};
  TARN_TRY(tarn_score_lines_match(hypotheses, &w->references));
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, hypotheses->count, sizeof *out->statistics));
  out->statistics = memory;
  TARN_TRY(
      tarn__bleu_sentences(out->statistics, hypotheses->items, &w->references.items, hypotheses->count, 1, &w->bleu));
  for (size_t s = 0; s < hypotheses->count; s++) {
    const tarn__bleu_statistics *one = &out->statistics[s];
    for (int n = 0; n < TARN_BLEU_ORDER; n++) {
      sums.counts[n] += one->counts[n];
      sums.totals[n] += one->totals[n];
    }
    sums.hypothesis_length += one->hypothesis_length;
    sums.reference_length += one->reference_length;
  }
  double score = tarn__bleu_score(&sums, &w->bleu);
  TARN_REQUIRE(fabs(score - run->test_bleu) < 1e-6, DATA,
               "%s: its BLEU against %s is %.4f, but test.json says %.4f: they do not belong together",
               hypotheses->name, w->references.name, score, run->test_bleu);
  return TARN_STATUS_OK;
}

static tarn_status read_run(work *w, size_t index) {
  const tarn_results_run *run = &w->table->results->runs[index];
  const char *path;
  if (run->state != TARN_RESULTS_FINISHED) return TARN_STATUS_OK;
  TARN_TRY(tarn__join(&path, &w->table->arena, run->path, "test.hyp"));
  bool complete = tarn__file_exists(path) && run->test_reference && tarn__file_exists(run->test_reference);
  if (isnan(run->test_bleu) || !complete) {
    *(isnan(run->test_bleu) ? &w->untested : &w->missing) += 1;
    return TARN_STATUS_OK;
  }
  if (!w->known) {
    TARN_TRY(read_signature(&w->bleu, run));
    TARN_TRY(tarn_score_lines_open(&w->references, run->test_reference));
    w->known = true;
  }
  tarn_score_lines hypotheses;
  TARN_TRY(tarn_score_lines_open(&hypotheses, path));
  tarn_status status = count_run(w, &w->runs[index], run, &hypotheses);
  tarn_score_lines_close(&hypotheses);
  return status;
}

// The run of a group with that seed and with outputs; NULL if there is none.
static const tarn__bleu_statistics *of_seed(const work *w, size_t group, int64_t seed) {
  const tarn_results *r = w->table->results;
  const tarn_results_group *g = &r->groups[group];
  for (size_t i = 0; i < g->run_count; i++)
    if (r->runs[g->runs[i]].seed == seed) return w->runs[g->runs[i]].statistics;
  return NULL;
}

static tarn_status test_row(work *w, tarn_results_row *row, const tarn__bleu_statistics **pairs) {
  struct tarn__results_table_memory *t = w->table;
  const tarn_results_group *group = &t->results->groups[row->group];
  void *seeds;
  void *tests;
  TARN_TRY(tarn__arena_alloc(&t->arena, &seeds, group->run_count, sizeof *row->seeds));
  TARN_TRY(tarn__arena_alloc(&t->arena, &tests, group->run_count, sizeof *row->per_seed));
  row->seeds = seeds;
  row->per_seed = tests;
  for (size_t i = 0; i < group->run_count; i++) {
    int64_t seed = t->results->runs[group->runs[i]].seed;
    const tarn__bleu_statistics *system = w->runs[group->runs[i]].statistics;
    const tarn__bleu_statistics *baseline = of_seed(w, t->public.baseline, seed);
    if (!system || !baseline) continue;
    pairs[row->seed_count] = system;
    pairs[group->run_count + row->seed_count] = baseline;
    ((int64_t *)seeds)[row->seed_count++] = seed;
  }
  if (row->seed_count == 0) return TARN_STATUS_OK;
  tarn__bootstrap_options options = {.bleu = &w->bleu, .resamples = t->options.resamples, .seed = t->options.seed};
  return tarn__bootstrap(&row->pooled, tests, pairs, pairs + group->run_count, row->seed_count, w->references.count,
                         &options);
}

static tarn_status test_rows(work *w) {
  struct tarn__results_table_memory *t = w->table;
  const tarn_results *r = t->results;
  for (size_t i = 0; i < r->run_count; i++) TARN_TRY(read_run(w, i));
  if (w->missing > 0)
    TARN_TRY(tarn__table_note(t,
                              "%zu finished runs have a test BLEU, but no part in significance: their test.hyp or "
                              "references are not there",
                              w->missing));
  if (w->known && w->untested > 0)
    TARN_TRY(tarn__table_note(t, "%zu finished runs have no test BLEU and no part in significance", w->untested));
  for (size_t g = 0; g < r->group_count && w->known; g++) {
    void *pairs;
    if (t->rows[g].baseline) continue;
    TARN_TRY(tarn__alloc(&pairs, TARN__MEMORY_OTHER, 2 * r->groups[g].run_count, sizeof(tarn__bleu_statistics *)));
    tarn_status status = test_row(w, &t->rows[g], pairs);
    tarn__free(pairs);
    TARN_TRY(status);
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__table_significance(struct tarn__results_table_memory *t) {
  work w = {.table = t};
  void *memory;
  if (t->options.resamples == 0) return TARN_STATUS_OK;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, t->results->run_count, sizeof *w.runs));
  w.runs = memory;
  tarn_status status = test_rows(&w);
  for (size_t i = 0; i < t->results->run_count; i++) tarn__free(w.runs[i].statistics);
  tarn__free(w.runs);
  tarn_score_lines_close(&w.references);
  return status;
}
