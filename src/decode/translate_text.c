// Translation of lines of text, whose tokens translate_encode.c makes, up to the detokenized result.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/threads.h"
#include "base/work.h"
#include "comm/ranks.h"
#include "decode/mbr.h"
#include "decode/translate_state.h"
#include "graph/profile.h"
#include "task/task.h"

void tarn_translator_default(tarn_translator_options *options) {
  *options = (tarn_translator_options){.beam = 0,
                                       .length_penalty = NAN,
                                       .max_len_a = NAN,
                                       .max_len_b = -1,
                                       .max_tokens = 0,
                                       .n_best = 1,
                                       .placeholder_penalty = NAN,
                                       .window = 2000,
                                       .precision = TARN_TRANSLATE_PRECISION_AUTO,
                                       .overlong = TARN_TRANSLATE_OVERLONG_TRUNCATE,
                                       .strict = false,
                                       .threads = 0,
                                       .temperature = 1.0,
                                       .top_p = 1.0,
                                       .seed = 1};
  tarn_decoding_default(&options->decoding);
}

// Fills in options from the description. Those that the model's kind of decoding does not have must not be given, and
// keep their defaults.
static tarn_status fill_options(tarn_translator_options *options, const tarn__checkpoint *checkpoint) {
  const tarn_config_translate *description = &checkpoint->config->translate;
  const tarn__task *task = tarn__config_task(checkpoint->config);
  struct {
    const char *word;
    bool given;
    int64_t *integer;
    double *real;
    double value;
  } all[] = {
      {"beam", options->beam != 0, &options->beam, NULL, (double)description->beam},
      {"length_penalty", !isnan(options->length_penalty), NULL, &options->length_penalty, description->length_penalty},
      {"max_len_a", !isnan(options->max_len_a), NULL, &options->max_len_a, description->max_len_a},
      {"max_len_b", options->max_len_b >= 0, &options->max_len_b, NULL, (double)description->max_len_b},
      {"max_tokens", options->max_tokens != 0, &options->max_tokens, NULL, (double)description->max_tokens},
      {"iterations", options->iterations != 0, &options->iterations, NULL, (double)description->iterations},
      {"length_beam", options->length_beam != 0, &options->length_beam, NULL, (double)description->length_beam},
      {"placeholder_penalty", !isnan(options->placeholder_penalty), NULL, &options->placeholder_penalty,
       description->placeholder_penalty}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    char text[2 * TARN__TASK_TEXT];
    const bool has = tarn__decoding_has(text, task, all[i].word);
    TARN_REQUIRE(has || !all[i].given, USAGE, "%s: %s", checkpoint->path, text);
    if (!has || all[i].given) continue;
    if (all[i].integer) *all[i].integer = (int64_t)all[i].value;
    if (all[i].real) *all[i].real = all[i].value;
  }
  return TARN_STATUS_OK;
}

bool tarn__translate_forces(const tarn_translator_options *options) {
  return options->force_columns || options->force_words_count > 0;
}

void tarn__translate_core(tarn__translator_options *core, const tarn_translator *t,
                          const tarn_translator_options *options, const tarn__steering *steering) {
  const tarn_config_translate *description = &t->checkpoint->config->translate;
  tarn__translator_default(core);
  if (options->beam != 0) core->beam = options->beam;  // those that the model does not have keep their defaults
  if (!isnan(options->length_penalty)) core->length_penalty = options->length_penalty;
  if (!isnan(options->max_len_a)) core->max_len_a = options->max_len_a;
  if (options->max_len_b >= 0) core->max_len_b = options->max_len_b;
  core->max_tokens = options->max_tokens;
  core->n_best = options->samples > 0 ? options->samples : options->n_best;  // the best are chosen by text
  core->samples = options->samples;
  core->sampling = (tarn__sampling){.temperature = options->temperature,
                                    .top_k = options->top_k,
                                    .top_p = options->top_p,
                                    .seed = options->seed,
                                    .min_p = options->decoding.min_p,
                                    .typical_p = options->decoding.typical_p};
  core->min_length = description->min_length;
  core->early_stopping = description->early_stopping;
  core->allow_unk = description->allow_unk;
  if (options->iterations != 0) core->iterations = options->iterations;
  if (options->length_beam != 0) core->length_beam = options->length_beam;
  if (!isnan(options->placeholder_penalty)) core->placeholder_penalty = options->placeholder_penalty;
  core->mask = tarn_vocab_special(t->checkpoint->target, TARN_SPECIAL_MASK);
  core->threads = tarn__threads();
  core->profile = options->profile;
  core->pad = tarn_vocab_pad(t->checkpoint->target);
  core->unk = tarn_vocab_unk(t->checkpoint->target);
  core->rounding = tarn__rounding_of(options->precision);
  core->comm = tarn__ranks_comm(options->ranks);
  core->processing = tarn__processing_acts(&steering->processing) ? &steering->processing : NULL;
  core->groups = options->decoding.groups;
  core->diversity = options->decoding.diversity_penalty;
  core->forced = tarn__translate_forces(options);
  core->coverage_penalty = options->coverage_penalty;
  core->alignment = options->alignment;
}

// What only models that write token by token have, and what other ranks do not get.
static tarn_status check_kind(const tarn_translator_options *options, const tarn__checkpoint *checkpoint) {
  const struct {
    bool given, shared;
    const char *name;
  } all[] = {{options->prefixes, false, "prefixes"},
             {tarn__translate_forces(options), false, "forced texts"},
             {options->alignment, false, "alignment"},
             {options->coverage_penalty != 0.0, true, "a coverage penalty"}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    char text[40];
    if (!all[i].given) continue;
    TARN_REQUIRE(tarn__config_task(checkpoint->config)->decoding == TARN__DECODING_TOKENS, USAGE,
                 "%s: only models that translate token by token have %s", checkpoint->path, all[i].name);
    snprintf(text, sizeof text, "translation with %s", all[i].name);
    if (!all[i].shared) TARN_TRY(tarn__ranks_must_be_one(options->ranks, text));
  }
  TARN_REQUIRE(options->coverage_penalty >= -100.0 && options->coverage_penalty <= 100.0, USAGE,
               "the coverage penalty must be from -100 to 100, not %g", options->coverage_penalty);
  TARN_REQUIRE(options->coverage_penalty == 0.0 || options->decoding.mbr == TARN_MBR_NONE, USAGE,
               "a coverage penalty has no effect with minimum Bayes risk");
  if (!tarn__translate_forces(options)) return TARN_STATUS_OK;
  TARN_REQUIRE(options->samples == 0 && options->beam > 1, USAGE,
               "forced texts need a search with a beam of 2 or more");
  TARN_REQUIRE(options->decoding.groups <= 1, USAGE, "forced texts exclude groups of the beam");
  return TARN_STATUS_OK;
}

tarn_status tarn__translate_steer(tarn__steering *steering, tarn__forced_text *forced, tarn_translator_options *options,
                                  const tarn__checkpoint *checkpoint) {
  TARN_TRY(tarn__steering_open(steering, &options->decoding, NULL, 0, checkpoint->target));
  TARN_TRY(tarn__forced_text_open(forced, options->force_words, options->force_words_count, checkpoint->target,
                                  checkpoint->config->model.max_length - 1));
  options->decoding = steering->decoding;
  options->force_words = forced->words;
  const bool samples = options->samples > 0;
  TARN_REQUIRE(!samples || (options->n_best >= 1 && options->n_best <= options->samples), USAGE,
               "n-best must be from 1 to the samples of %lld, not %lld", (long long)options->samples,
               (long long)options->n_best);
  TARN_TRY(tarn__steering_check_drawing(options->temperature, options->top_k, options->top_p, samples));
  return tarn__steering_check_search(&options->decoding, samples || options->beam == 0 ? 1 : options->beam,
                                     options->samples);
}

static tarn_status open_all(tarn_translator *t, const char *path) {
  tarn_translator_options *options = &t->options;
  TARN_REQUIRE(options->window >= 1 && options->window <= 10000000, USAGE,
               "window must be from 1 to 10000000, not %lld", (long long)options->window);
  TARN_TRY(tarn__checkpoint_check_use(options->threads, options->overlong));
  tarn__threads_set(options->threads);
  TARN_TRY(tarn__checkpoint_open_use(&t->checkpoint, path, &options->precision, &options->prune));
  TARN_TRY(tarn__task_require(t->checkpoint->config, TARN__USE_TRANSLATE, path));
  TARN_TRY(fill_options(options, t->checkpoint));
  TARN_TRY(check_kind(options, t->checkpoint));
  TARN_TRY(tarn__translate_steer(&t->steering, &t->forced, options, t->checkpoint));
  tarn__translator_options core;
  tarn__translate_core(&core, t, options, &t->steering);
  return tarn__translator_open(&t->translator, t->checkpoint->model, tarn_vocab_eos(t->checkpoint->target), &core);
}

tarn_status tarn_translator_open(tarn_translator **translator, const char *path,
                                 const tarn_translator_options *options) {
  *translator = NULL;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(tarn_translator)));
  tarn_translator *t = memory;
  t->options = *options;
  tarn_status status = open_all(t, path);
  if (status != TARN_STATUS_OK) {
    tarn_translator_close(&t);
    return status;
  }
  *translator = t;
  return TARN_STATUS_OK;
}

void tarn_translator_close(tarn_translator **translator) {
  tarn_translator *t = *translator;
  if (!t) return;
  tarn__translator_close(&t->translator);
  tarn__checkpoint_close(&t->checkpoint);
  tarn_vocab_ids_close(&t->line_ids);
  tarn__line_encoders_close(t);
  tarn_vocab_text_close(&t->text);
  tarn_vocab_ids_close(&t->whole);
  tarn__steering_close(&t->steering);
  tarn__forced_text_close(&t->forced);
  tarn__free(t->prefix_ids);
  tarn__free(t->prefix_offsets);
  tarn__free(t->ids);
  tarn__free(t->offsets);
  tarn__free(t->translations);
  tarn__free(t->repaired.data);
  tarn__arena_close(&t->results);
  tarn__line_block_close(&t->block);
  tarn__free(t->window);
  tarn__free(t);
  *translator = NULL;
}

tarn_status tarn__translate_options(const tarn_translator *t, tarn_translator_options *wanted,
                                    const tarn_translator_options *options) {
  *wanted = t->options;
  wanted->beam = options->beam;
  wanted->length_penalty = options->length_penalty;
  wanted->max_len_a = options->max_len_a;
  wanted->max_len_b = options->max_len_b;
  wanted->max_tokens = options->max_tokens;
  wanted->n_best = options->n_best;
  wanted->samples = options->samples;
  wanted->temperature = options->temperature;
  wanted->top_k = options->top_k;
  wanted->top_p = options->top_p;
  wanted->seed = options->seed;
  wanted->decoding = options->decoding;
  wanted->prefixes = options->prefixes;
  wanted->force_words = options->force_words;
  wanted->force_words_count = options->force_words_count;
  wanted->force_columns = options->force_columns;
  wanted->coverage_penalty = options->coverage_penalty;
  wanted->alignment = options->alignment;
  wanted->iterations = options->iterations;
  wanted->length_beam = options->length_beam;
  wanted->placeholder_penalty = options->placeholder_penalty;
  TARN_TRY(fill_options(wanted, t->checkpoint));
  return check_kind(wanted, t->checkpoint);
}

tarn_status tarn_translator_set(tarn_translator *translator, const tarn_translator_options *options) {
  tarn_translator_options wanted;
  TARN_TRY(tarn__translate_options(translator, &wanted, options));
  tarn__steering before = translator->steering;
  tarn__forced_text forced_before = translator->forced;
  tarn_status status =
      tarn__translate_steer(&translator->steering, &translator->forced, &wanted, translator->checkpoint);
  tarn__translator_options core;
  tarn__translate_core(&core, translator, &wanted, &translator->steering);
  if (status == TARN_STATUS_OK) status = tarn__translator_set(translator->translator, &core);
  if (status != TARN_STATUS_OK) {
    tarn__steering_close(&translator->steering);
    tarn__forced_text_close(&translator->forced);
    translator->steering = before;
    translator->forced = forced_before;
    return status;
  }
  tarn__steering_close(&before);
  tarn__forced_text_close(&forced_before);
  translator->options = wanted;
  translator->lines = 0;
  return TARN_STATUS_OK;
}

const char *tarn_translator_path(const tarn_translator *translator) { return translator->checkpoint->path; }

tarn__checkpoint *tarn__translator_checkpoint(tarn_translator *translator) { return translator->checkpoint; }

const tarn_translator_options *tarn_translator_settings(const tarn_translator *translator) {
  return &translator->options;
}

void tarn_translator_summary(const tarn_translator *translator, tarn_translate_summary *summary) {
  tarn__translator_stats stats;
  tarn__translator_get_stats(translator->translator, &stats);
  *summary = translator->summary;
  const tarn__comm *comm = tarn__ranks_comm(translator->options.ranks);
  summary->iterations = comm && comm->size > 1 ? 0 : stats.iterations;
}

// One line in, one line out.
void tarn__translate_line(char *text, size_t length) {
  for (size_t i = 0; i < length; i++)
    if (text[i] == '\n' || text[i] == '\r' || !text[i]) text[i] = ' ';
}

// The text of one hypothesis behind a prefix.
static tarn_status decode_hypothesis(tarn_translator *t, tarn_translate_hypothesis *out,
                                     const tarn__hypothesis *hypothesis, const tarn__translated *from) {
  const tarn__phrase *prefix = &from->prefix;
  // The end of sentence is removed here, because not every vocabulary recognises its own.
  const size_t before = (size_t)prefix->length, own = (size_t)hypothesis->length - 1;
  const int32_t *ids = hypothesis->ids;
  if (before > 0) {
    TARN_TRY(tarn__grow(&t->whole.data, &t->whole.capacity, before + own, sizeof *ids));
    memcpy(t->whole.data, prefix->ids, before * sizeof *ids);
    memcpy(t->whole.data + before, ids, own * sizeof *ids);
    ids = t->whole.data;
  }
  TARN_TRY(tarn_vocab_decode(t->checkpoint->target, &t->text, ids, before + own));
  char *text;
  size_t length;
  TARN_TRY(tarn__repair_copy(from->memory, &text, &length, t->text.data, t->text.length));
  tarn__translate_line(text, length);
  *out = (tarn_translate_hypothesis){.text = text,
                                     .length = length,
                                     .tokens = hypothesis->length,
                                     .log_probability = hypothesis->log_probability,
                                     .score = hypothesis->score,
                                     .attention = hypothesis->attention};
  return TARN_STATUS_OK;
}

// Puts the samples of a line in the order of their scores, or of their expected utilities, and keeps the best.
static tarn_status rank(const tarn__translated *from, tarn_translate_hypothesis *hypotheses) {
  tarn__translation *translation = from->translation;
  const int64_t count = translation->count;
  void *memory;
  TARN_TRY(tarn__arena_alloc(from->memory, &memory, (size_t)count,
                             sizeof(tarn__hypothesis) + sizeof(tarn_translate_hypothesis)));
  tarn__hypothesis *ranked = memory;
  tarn_translate_hypothesis *texts = (tarn_translate_hypothesis *)(void *)(ranked + count);
  TARN_TRY(tarn__arena_alloc(from->memory, &memory, (size_t)count, sizeof(double) + sizeof(char *) + sizeof(int32_t)));
  double *expected = memory;
  const char **lines = (const char **)(void *)(expected + count);
  int32_t *order = (int32_t *)(void *)(lines + count);
  for (int64_t i = 0; i < count; i++) {
    int64_t at = i;
    texts[i] = hypotheses[i];
    lines[i] = texts[i].text;
    for (; at > 0 && texts[order[at - 1]].score < texts[i].score; at--) order[at] = order[at - 1];
    order[at] = (int32_t)i;
  }
  const tarn_mbr mbr = from->options->decoding.mbr;
  if (mbr != TARN_MBR_NONE) TARN_TRY(tarn__mbr_rank(mbr, lines, count, expected, order));
  for (int64_t i = 0; i < count; i++) {
    hypotheses[i] = texts[order[i]];
    if (mbr != TARN_MBR_NONE) hypotheses[i].score = expected[order[i]];
    ranked[i] = translation->hypotheses[order[i]];
  }
  *translation = (tarn__translation){ranked, from->options->n_best};
  return TARN_STATUS_OK;
}

tarn_status tarn__translate_result(tarn_translator *t, tarn_translate_result *result, const tarn__translated *from) {
  static const tarn_translate_hypothesis nothing = {.text = ""};
  const tarn__translation *translation = from->translation;
  void *memory;
  if (!result->source_tokens) {
    t->summary.empty++;
    result->hypotheses = &nothing;
    result->count = 1;
    return TARN_STATUS_OK;
  }
  TARN_TRY(tarn__arena_alloc(from->memory, &memory, (size_t)translation->count, sizeof(tarn_translate_hypothesis)));
  tarn_translate_hypothesis *hypotheses = memory;
  for (int64_t i = 0; i < translation->count; i++)
    TARN_TRY(decode_hypothesis(t, &hypotheses[i], &translation->hypotheses[i], from));
  if (from->options->samples > 0) TARN_TRY(rank(from, hypotheses));
  result->hypotheses = hypotheses;
  result->count = translation->count;
  t->summary.source_tokens += result->source_tokens;
  t->summary.target_tokens += hypotheses[0].tokens;
  t->summary.truncated += result->truncated;
  return TARN_STATUS_OK;
}

// The texts of all lines, whose translations follow each other without those of empty lines.
static tarn_status decode_lines(tarn_translator *t, tarn_translate_result *results, size_t count, int64_t sentences) {
  // Moves each translation to the index of its line, which is never smaller, beginning with the last line.
  for (size_t i = count, s = (size_t)sentences; i-- > 0;)
    t->translations[i] = results[i].source_tokens ? t->translations[--s] : (tarn__translation){0};
  int64_t s = 0;
  for (size_t i = 0; i < count; i++) {
    tarn__translated from = {.options = &t->options, .translation = &t->translations[i], .memory = &t->results};
    if (results[i].source_tokens && t->options.prefixes)
      from.prefix =
          (tarn__phrase){t->prefix_ids + t->prefix_offsets[s], t->prefix_offsets[s + 1] - t->prefix_offsets[s]};
    TARN_TRY(tarn__translate_result(t, &results[i], &from));
    s += results[i].source_tokens > 0;
  }
  return TARN_STATUS_OK;
}

static tarn_status translate_lines(tarn_translator *t, tarn_translate_result *results, const char *const *lines,
                                   const size_t *lengths, size_t count) {
  TARN_TRY(tarn__grow(&t->offsets, &t->offsets_capacity, count + 1, sizeof *t->offsets));
  TARN_TRY(tarn__grow(&t->translations, &t->translations_capacity, count, sizeof *t->translations));
  if (t->options.prefixes) {
    TARN_TRY(tarn__grow(&t->prefix_offsets, &t->prefix_offsets_capacity, count + 1, sizeof *t->prefix_offsets));
    t->prefix_offsets[0] = 0;
  }
  if (tarn__translate_forces(&t->options)) TARN_TRY(tarn__forced_text_begin(&t->forced, count));
  tarn__arena_reset(&t->results);
  int64_t sentences;
  t->lines = 0;
  double begin = tarn__profile_clock(t->options.profile);
  TARN_TRY(tarn__translate_encode_lines(t, results, lines, lengths, count, &sentences));
  TARN_TRY(tarn__profile_work(t->options.profile, "tokenization", begin));
  tarn__translator_prefix(t->translator, t->prefix_ids, t->options.prefixes ? t->prefix_offsets : NULL);
  tarn__translator_force(t->translator, tarn__translate_forces(&t->options) ? t->forced.lines : NULL);
  TARN_TRY(tarn__translator_run(t->translator, t->translations, t->ids, t->offsets, sentences));
  begin = tarn__profile_clock(t->options.profile);
  TARN_TRY(decode_lines(t, results, count, sentences));
  t->lines = count;
  t->summary.lines += (int64_t)count;
  return tarn__profile_work(t->options.profile, "detokenization", begin);
}

static tarn_status translate_measured(tarn_translator *translator, tarn_translate_result *results,
                                      const char *const *lines, const size_t *lengths, size_t count) {
  TARN_TRY(tarn__profile_peaks(translator->options.profile, translator->checkpoint->model->device, tarn__threads()));
  double start = tarn__seconds();
  tarn__profile_start(translator->options.profile);
  tarn_status status =
      tarn__map_judge(&translator->checkpoint->file.map, translate_lines(translator, results, lines, lengths, count));
  tarn__profile_stop(translator->options.profile);
  translator->summary.seconds += tarn__seconds() - start;
  return status;
}

tarn_status tarn_translator_lines(tarn_translator *translator, tarn_translate_result *results, const char *const *lines,
                                  const size_t *lengths, size_t count) {
  TARN_TRY(tarn__ranks_must_be_one(translator->options.ranks, "tarn_translator_lines()"));
  return translate_measured(translator, results, lines, lengths, count);
}

int64_t tarn_translator_tokens(const tarn_translator *translator, const int32_t **ids, const float **log_probabilities,
                               size_t line, int64_t place) {
  *ids = NULL;
  *log_probabilities = NULL;
  if (line >= translator->lines || place < 0 || place >= translator->translations[line].count) return 0;
  const tarn__hypothesis *hypothesis = &translator->translations[line].hypotheses[place];
  *ids = hypothesis->ids;
  *log_probabilities = hypothesis->log_probabilities;
  return hypothesis->length;
}

int64_t tarn_translator_source(const tarn_translator *translator, const int32_t **ids, size_t line) {
  *ids = NULL;
  if (line >= translator->lines || translator->translations[line].count == 0) return 0;
  // Sentences without tokens have none in front of them either.
  int64_t sentence = 0;
  for (size_t i = 0; i < line; i++) sentence += translator->translations[i].count > 0;
  *ids = translator->ids + translator->offsets[sentence];
  return translator->offsets[sentence + 1] - translator->offsets[sentence];
}

const char *tarn_translator_source_piece(const tarn_translator *translator, int32_t id) {
  return tarn_vocab_piece(translator->checkpoint->source, id);
}

const char *tarn_translator_piece(const tarn_translator *translator, int32_t id) {
  return tarn_vocab_piece(translator->checkpoint->target, id);
}

static tarn_status translate_windows(tarn_translator *t, tarn__lines *lines, tarn__work *work, tarn_translate_sink sink,
                                     void *user) {
  for (int64_t before = 0;; before += (int64_t)t->block.count) {
    tarn__line_block *block = &t->block;
    const double share = tarn__lines_share(lines);
    TARN_TRY(tarn__line_block_read(block, lines, (size_t)t->options.window, SIZE_MAX));
    if (block->count == 0) return TARN_STATUS_OK;
    tarn__work_part(work, (double)before, share, (double)(before + (int64_t)block->count), tarn__lines_share(lines));
    TARN_TRY(tarn__grow(&t->window, &t->window_capacity, block->count, sizeof *t->window));
    t->before = before;
    tarn_status status = translate_measured(t, t->window, block->lines, block->lengths, block->count);
    t->before = 0;
    if (status != TARN_STATUS_OK) return tarn__fail_prefix(status, "%s: ", lines->path);
    for (size_t i = 0; i < block->count; i++) TARN_TRY(sink(user, &t->window[i]));
  }
}

tarn_status tarn_translator_file(tarn_translator *translator, const char *path, tarn_translate_sink sink, void *user) {
  tarn__lines lines = {0};
  if (tarn_ranks_rank(translator->options.ranks) > 0)
    return tarn__translator_help(translator->translator, &translator->checkpoint->file.map);
  TARN_TRY(tarn__lines_open(&lines, path, false));
  lines.raw = true;  // encoding a line handles invalid bytes
  lines.prompt = true;
  tarn__work work;
  tarn__work_begin(&work, "translating", "sentences");
  tarn_status status = translate_windows(translator, &lines, &work, sink, user);
  tarn__work_end(&work);
  tarn__lines_close(&lines);
  return status == TARN_STATUS_OK ? tarn__translator_end(translator->translator) : status;
}
