#include "tarn/lab/sweep.h"

#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json_io.h"
#include "base/memory.h"
#include "description/description.h"
#include "run/file_kind.h"
#include "run/names.h"
#include "store/checkpoint.h"
#include "tarn/classify.h"
#include "tarn/lm.h"
#include "tarn/measure.h"
#include "tarn/translate.h"
#include "text/json_text.h"

void tarn_testset_default(tarn_testset_options *options) {
  *options = (tarn_testset_options){.overlong = TARN_TRANSLATE_OVERLONG_REFUSE};
}

// Whether this rank has no result, because rank 0 has it.
static bool helps(const tarn_testset_options *o) { return tarn_ranks_rank(o->ranks) > 0; }

// The translations, kept until all are complete.
typedef struct hypotheses {
  char **lines;
  size_t count, capacity;
} hypotheses;

static tarn_status keep(void *user, const tarn_translate_result *result) {
  hypotheses *all = user;
  const tarn_translate_hypothesis *best = &result->hypotheses[0];
  TARN_TRY(tarn__grow(&all->lines, &all->capacity, all->count + 1, sizeof *all->lines));
  TARN_TRY(tarn__strndup(&all->lines[all->count], best->text, best->length));
  all->count++;
  return TARN_STATUS_OK;
}

static void hypotheses_close(hypotheses *all) {
  for (size_t i = 0; i < all->count; i++) tarn__free(all->lines[i]);
  tarn__free(all->lines);
  *all = (hypotheses){0};
}

static tarn_status write_hypotheses(const char *run, const hypotheses *all) {
  char path[PATH_MAX];
  tarn__writer *writer;
  TARN_TRY(tarn__path_join(path, run, TARN__RUN_HYPOTHESES));
  TARN_TRY(tarn__writer_open(&writer, path));
  tarn_status status = TARN_STATUS_OK;
  for (size_t i = 0; i < all->count && status == TARN_STATUS_OK; i++) {
    status = tarn__writer_put(writer, all->lines[i], strlen(all->lines[i]));
    if (status == TARN_STATUS_OK) status = tarn__writer_put(writer, "\n", 1);
  }
  if (status == TARN_STATUS_OK) return tarn__writer_commit(&writer);
  tarn__writer_abort(&writer);
  return status;
}

// Takes ownership of the object; the text is freed with free().
static tarn_status dump_json(char **text, const char *run, json_t *object) {
  *text = tarn__json_dump(object, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
  json_decref(object);
  TARN_REQUIRE(*text, MEMORY, "out of memory: " TARN__RUN_TEST " of %s", run);
  return TARN_STATUS_OK;
}

static tarn_status write_json(const char *run, char *text) {
  char path[PATH_MAX];
  size_t length = strlen(text);
  TARN_TRY(tarn__path_join(path, run, TARN__RUN_TEST));
  text[length] = '\n';  // replaces the zero byte
  return tarn__file_write(path, text, length + 1);
}

// Takes ownership of the object; NULL: out of memory.
static tarn_status write_object(const char *run, json_t *object) {
  char *text;
  TARN_TRY(dump_json(&text, run, object));
  const tarn_status status = write_json(run, text);
  free(text);
  return status;
}

static const char *name_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

// The scores are formatted before test.hyp is replaced, so only disk errors can occur between the two files.
static tarn_status write_scores(const tarn_testset_options *o, const tarn_testset_result *r, const hypotheses *all,
                                const char *checkpoint, const tarn_translator_options *settings) {
  char *text;
  json_t *object =
      json_pack("{s:f, s:s, s:f, s:s, s:f, s:o, s:I, s:I, s:o, s:s, s:o, s:o}", "bleu", r->bleu, "signature",
                r->bleu_signature, "chrf", r->chrf, "chrf_signature", r->chrf_signature, "seconds", r->seconds,
                "checkpoint", tarn__json_text(name_of(checkpoint)), "sentences", (json_int_t)r->sentences, "beam",
                (json_int_t)r->beam, "length_penalty", r->beam > 0 ? json_real(settings->length_penalty) : json_null(),
                "precision", tarn_translate_precision_name(o->precision), "source", tarn__json_text(o->source),
                "reference", tarn__json_text(o->reference));
  if (object && r->iterations > 0) {
    json_object_set_new(object, "iterations", json_integer((json_int_t)r->iterations));
    if (r->length_beam > 0) json_object_set_new(object, "length_beam", json_integer((json_int_t)r->length_beam));
  }
  if (object && !isnan(settings->placeholder_penalty))
    json_object_set_new(object, "placeholder_penalty", json_real(settings->placeholder_penalty));
  TARN_TRY(dump_json(&text, o->run, object));
  tarn_status status = write_hypotheses(o->run, all);
  if (status == TARN_STATUS_OK) status = write_json(o->run, text);
  free(text);
  return status;
}

static tarn_status score(tarn_testset_result *r, const hypotheses *all, const tarn_score_lines *references,
                         const tarn_config *config) {
  const char *const *streams[] = {references->items};
  tarn_bleu_options bleu;
  tarn_chrf_options chrf;
  tarn_bleu_result b;
  tarn_chrf_result c;
  tarn_bleu_default(&bleu);
  bleu.lowercase = config->valid.lowercase;
  bleu.tokenizer = config->valid.tokenize;
  tarn_chrf_default(&chrf);
  chrf.lowercase = config->valid.lowercase;
  const char *const *lines = (const char *const *)all->lines;
  TARN_TRY(tarn_bleu_corpus(&b, lines, streams, all->count, 1, &bleu));
  TARN_TRY(tarn_chrf_corpus(&c, lines, streams, all->count, 1, &chrf));
  r->bleu = b.score;
  r->chrf = c.score;
  tarn_bleu_signature(r->bleu_signature, &b, &bleu);
  tarn_chrf_signature(r->chrf_signature, &c, &chrf);
  return TARN_STATUS_OK;
}

static tarn_status translate_and_score(tarn_testset_result *r, hypotheses *all, tarn_translator *translator,
                                       const tarn_score_lines *references, const tarn_config *config,
                                       const tarn_testset_options *o) {
  tarn_translate_summary summary;
  TARN_TRY(tarn_translator_file(translator, o->source, keep, all));
  if (helps(o)) return TARN_STATUS_OK;
  TARN_REQUIRE(all->count == references->count, DATA, "%s has %zu lines, but %s has %zu", o->source, all->count,
               o->reference, references->count);
  tarn_translator_summary(translator, &summary);
  const tarn_translator_options *settings = tarn_translator_settings(translator);
  r->sentences = (int64_t)all->count;
  r->beam = settings->beam;
  r->iterations = settings->iterations;
  r->length_beam = settings->length_beam;
  r->seconds = summary.seconds;
  TARN_TRY(score(r, all, references, config));
  return write_scores(o, r, all, tarn_translator_path(translator), settings);
}

static json_t *accuracies(const tarn_minimal_pairs_count *counts, size_t count) {
  json_t *object = json_object();
  for (size_t i = 0; i < count; i++) {
    json_t *name = tarn__json_text(counts[i].name);  // possibly a file name
    bool set = json_object_set_new(object, json_string_value(name), json_real(100.0 * counts[i].accuracy)) == 0;
    json_decref(name);
    if (set) continue;
    json_decref(object);
    return NULL;
  }
  return object;
}

// test.pairs: the correct pairs, so that two models can be compared pair by pair.
static tarn_status put_answers(tarn__writer *writer, const tarn_minimal_pairs_count *paradigm) {
  for (const char *c = paradigm->name; *c; c++) TARN_TRY(tarn__writer_put(writer, *c == '\n' ? "?" : c, 1));
  TARN_TRY(tarn__writer_put(writer, " ", 1));
  TARN_TRY(tarn__writer_put(writer, paradigm->answers, strlen(paradigm->answers)));
  return tarn__writer_put(writer, "\n", 1);
}

static tarn_status write_answers(const char *run, const tarn_minimal_pairs_result *pairs) {
  char path[PATH_MAX];
  tarn__writer *writer;
  TARN_TRY(tarn__path_join(path, run, TARN__RUN_PAIRS));
  TARN_TRY(tarn__writer_open(&writer, path));
  tarn_status status = TARN_STATUS_OK;
  for (size_t i = 0; i < pairs->paradigm_count && status == TARN_STATUS_OK; i++)
    status = put_answers(writer, &pairs->paradigms[i]);
  if (status == TARN_STATUS_OK) return tarn__writer_commit(&writer);
  tarn__writer_abort(&writer);
  return status;
}

static tarn_status write_pairs(const tarn_testset_options *o, const tarn_testset_result *r,
                               const tarn_minimal_pairs_result *pairs, const char *checkpoint) {
  char *text;
  TARN_TRY(dump_json(
      &text, o->run,
      json_pack("{s:f, s:f, s:f, s:I, s:o, s:o, s:I, s:I, s:I, s:I, s:f, s:o, s:s, s:o}", "blimp", r->blimp, "low",
                r->blimp_low, "high", r->blimp_high, "pairs", (json_int_t)r->pairs, "fields",
                accuracies(pairs->fields, pairs->field_count), "paradigms",
                accuracies(pairs->paradigms, pairs->paradigm_count), "unknown", (json_int_t)r->unknown, "truncated",
                (json_int_t)r->truncated, "replaced", (json_int_t)r->replaced, "equal", (json_int_t)r->equal, "seconds",
                r->seconds, "checkpoint", tarn__json_text(name_of(checkpoint)), "precision",
                tarn_translate_precision_name(o->precision), "folder", tarn__json_text(o->blimp))));
  tarn_status status = write_answers(o->run, pairs);
  if (status == TARN_STATUS_OK) status = write_json(o->run, text);
  free(text);
  return status;
}

static tarn_status open_lm(tarn_lm **lm, const tarn_testset_options *o) {
  tarn_lm_options options;
  tarn_lm_default(&options);
  options.precision = o->precision;
  options.overlong = o->overlong;
  options.threads = o->threads;
  options.ranks = o->ranks;
  return tarn_lm_open(lm, o->checkpoint ? o->checkpoint : o->run, &options);
}

static tarn_status run_pairs(tarn_testset_result *r, const tarn_testset_options *o) {
  tarn_lm *lm = NULL;
  tarn_minimal_pairs_result *pairs = NULL;
  tarn_status status = open_lm(&lm, o);
  const double begun = tarn__seconds();
  if (status == TARN_STATUS_OK) status = tarn_minimal_pairs_run(&pairs, lm, o->blimp, NULL, NULL);
  if (status == TARN_STATUS_OK && !helps(o)) {
    r->seconds = tarn__seconds() - begun;
    r->blimp = 100.0 * pairs->overall.accuracy;
    r->blimp_low = 100.0 * pairs->overall.low;
    r->blimp_high = 100.0 * pairs->overall.high;
    r->pairs = pairs->overall.pairs;
    r->unknown = pairs->unknown;
    r->truncated = pairs->truncated;
    r->replaced = pairs->replaced;
    r->equal = pairs->equal;
    status = write_pairs(o, r, pairs, tarn_lm_path(lm));
  }
  tarn_minimal_pairs_close(&pairs);
  tarn_lm_close(&lm);
  return status;
}

static json_t *measures_of(const tarn_classify_test *test) {
  json_t *object = json_object();
  for (int i = 0; i < test->measure_count; i++) {
    const tarn_classify_measure *m = &test->measures[i];
    json_t *one = json_pack("{s:f, s:f, s:f}", "value", m->value, "low", m->low, "high", m->high);
    if (json_object_set_new(object, m->measure->word, one) == 0) continue;
    json_decref(object);
    return NULL;
  }
  return object;
}

static tarn_status write_labels(const tarn_testset_options *o, const tarn_testset_result *r, const char *checkpoint) {
  json_t *object = measures_of(&r->labels);
  json_t *rest = json_pack("{s:f, s:I, s:I, s:f, s:o, s:s, s:o}", "loss", r->labels.loss, "rows",
                           (json_int_t)r->labels.rows, "left_out", (json_int_t)r->labels.left_out, "seconds",
                           r->seconds, "checkpoint", tarn__json_text(name_of(checkpoint)), "precision",
                           tarn_translate_precision_name(o->precision), "data", tarn__json_text(o->labelled));
  const bool words = r->labels.words == 0 || json_object_set_new(rest, "words", json_integer(r->labels.words)) == 0;
  const bool made = object && rest && words && json_object_update(object, rest) == 0;
  json_decref(rest);
  if (!made) {
    json_decref(object);
    object = NULL;
  }
  return write_object(o->run, object);
}

static tarn_status run_labels(tarn_testset_result *r, const tarn_testset_options *o) {
  tarn_classifier *classifier = NULL;
  tarn_classify_options options;
  tarn_classify_default(&options);
  options.precision = o->precision;
  options.threads = o->threads;
  options.ranks = o->ranks;
  tarn_status status = tarn_classifier_open(&classifier, o->checkpoint ? o->checkpoint : o->run, &options);
  if (status == TARN_STATUS_OK) status = tarn_classifier_test(classifier, &r->labels, o->labelled);
  r->seconds = r->labels.seconds;
  if (status == TARN_STATUS_OK && !helps(o)) status = write_labels(o, r, tarn_classifier_path(classifier));
  tarn_classifier_close(&classifier);
  return status;
}

static tarn_status write_text_scores(const tarn_testset_options *o, const tarn_testset_result *r,
                                     const char *checkpoint) {
  const tarn_lm_total *t = &r->text;
  return write_object(
      o->run,
      json_pack("{s:f, s:f, s:f, s:f, s:I, s:I, s:I, s:I, s:I, s:f, s:o, s:s, s:o, s:I, s:I}", "nll",
                -t->log_probability / (double)t->tokens, "ppl", tarn_lm_perplexity(t), "bpc",
                tarn_lm_bits_per_character(t), "bpb", tarn_lm_bits_per_byte(t), "lines", (json_int_t)t->lines, "tokens",
                (json_int_t)t->tokens, "characters", (json_int_t)t->characters, "bytes", (json_int_t)t->bytes,
                "unknown", (json_int_t)t->unknown, "seconds", r->seconds, "checkpoint",
                tarn__json_text(name_of(checkpoint)), "precision", tarn_translate_precision_name(o->precision), "text",
                tarn__json_text(o->text), "window", (json_int_t)o->window, "stride", (json_int_t)o->stride));
}

static tarn_status add_line(void *user, int64_t number, const tarn_lm_line *line) {
  (void)number;
  tarn_lm_total_add(user, line);
  return TARN_STATUS_OK;
}

static tarn_status run_text(tarn_testset_result *r, const tarn_testset_options *o) {
  tarn_lm *lm = NULL;
  tarn_status status = open_lm(&lm, o);
  const double begun = tarn__seconds();
  if (status == TARN_STATUS_OK)
    status = o->stride ? tarn_lm_score_stream(lm, &r->text, o->text, o->window, o->stride, NULL, NULL)
                       : tarn_lm_score_file(lm, o->text, add_line, &r->text);
  if (status == TARN_STATUS_OK && r->text.tokens == 0 && !helps(o))
    status = tarn__fail(TARN_STATUS_DATA, "%s: there is nothing to score", o->text);
  r->seconds = tarn__seconds() - begun;
  if (status == TARN_STATUS_OK && !helps(o)) status = write_text_scores(o, r, tarn_lm_path(lm));
  tarn_lm_close(&lm);
  return status;
}

static tarn_status run_translation(tarn_testset_result *result, const tarn_testset_options *o, const char *path) {
  tarn_config *config = NULL;
  tarn_translator *translator = NULL;
  tarn_score_lines references = {0};
  hypotheses all = {0};
  tarn_translator_options options;
  tarn_translator_default(&options);
  options.beam = o->beam;
  options.precision = o->precision;
  options.threads = o->threads;
  options.ranks = o->ranks;
  tarn_status status = tarn_config_read(&config, path, NULL, 0);
  if (status == TARN_STATUS_OK && !helps(o)) status = tarn_score_lines_open(&references, o->reference);
  if (status == TARN_STATUS_OK)
    status = tarn_translator_open(&translator, o->checkpoint ? o->checkpoint : o->run, &options);
  if (status == TARN_STATUS_OK) status = translate_and_score(result, &all, translator, &references, config, o);
  hypotheses_close(&all);
  tarn_translator_close(&translator);
  tarn_score_lines_close(&references);
  tarn_config_close(&config);
  return status;
}

tarn_status tarn_testset_run(tarn_testset_result *result, const tarn_testset_options *o) {
  char path[PATH_MAX];
  *result = (tarn_testset_result){0};
  const int other = (o->blimp != NULL) + (o->labelled != NULL) + (o->text != NULL);
  TARN_REQUIRE(o->run && other <= 1 && (other ? !o->source && !o->reference : o->source && o->reference), USAGE,
               "a test needs a run, and a source and a reference, or a folder of minimal pairs, or a set with labels, "
               "or a text");
  TARN_REQUIRE(!other || o->beam == 0, USAGE,
               "minimal pairs, labels and texts are scored without a search, so they take no beam");
  TARN_REQUIRE(o->stride >= 0 && o->window >= 0 && (o->stride ? o->text != NULL : o->window == 0), USAGE,
               "a window and its stride are for a text");
  TARN_REQUIRE(tarn_translate_precision_name(o->precision) && o->precision != TARN_TRANSLATE_PRECISION_AUTO, USAGE,
               "the precision of a test is fp32, bf16, int8 or int4");
  TARN_TRY(tarn__checkpoint_check_use(o->threads, o->overlong));
  TARN_REQUIRE(o->blimp || (o->text && !o->stride) || o->overlong == TARN_TRANSLATE_OVERLONG_REFUSE, USAGE,
               "sources are always cut to what the model takes: overlong is for minimal pairs and lines of a text");
  TARN_TRY(tarn__path_join(path, o->run, TARN__RUN_CONFIG));
  if (!tarn__file_exists(path)) {
    tarn_status status = tarn__fail(TARN_STATUS_USAGE, "%s: no run: there is no " TARN__RUN_CONFIG, o->run);
    return tarn__file_kind_explain(status, o->run, TARN__FILE_KIND_RUN);
  }
  if (o->labelled) return run_labels(result, o);
  if (o->text) return run_text(result, o);
  return o->blimp ? run_pairs(result, o) : run_translation(result, o, path);
}
