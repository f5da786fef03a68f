// Log-probabilities of lines of text: tokenization, scoring of ids, sums.
#include "score/lm_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/threads.h"
#include "base/work.h"
#include "comm/ranks.h"
#include "score/scorer.h"
#include "store/checkpoint.h"
#include "task/task.h"
#include "text/line_block.h"
#include "text/repair.h"

struct tarn_lm {
  tarn_lm_options options;
  tarn__checkpoint *checkpoint;
  tarn__scorer *scorer;
  bool masked;     // a masked language model: its ends of sentence are not predicted
  int64_t begins;  // 1: it reads a token before w1 .. wn
  // The lines of one call; the number of earlier lines of the file.
  int64_t before;
  tarn_vocab_ids ids;
  tarn__scorer_sentence *sentences;
  size_t sentences_capacity;
  tarn_vocab_text kept;  // of a truncated line
  tarn__repaired repaired;
  tarn__arena results;
  // The window of tarn_lm_score_file().
  tarn__line_block block;
  tarn_lm_line *window;
  size_t window_capacity;
};

void tarn_lm_default(tarn_lm_options *options) {
  *options = (tarn_lm_options){.precision = TARN_TRANSLATE_PRECISION_AUTO,
                               .overlong = TARN_TRANSLATE_OVERLONG_REFUSE,
                               .max_tokens = 4096,
                               .window = 4000};
}

static tarn_status open_all(tarn_lm *lm, const char *path) {
  const tarn_lm_options *o = &lm->options;
  TARN_REQUIRE(o->window >= 1 && o->window <= 10000000, USAGE, "window must be from 1 to 10000000, not %lld",
               (long long)o->window);
  TARN_TRY(tarn__checkpoint_check_use(o->threads, o->overlong));
  tarn__threads_set(o->threads);
  TARN_TRY(tarn__checkpoint_open_use(&lm->checkpoint, path, &lm->options.precision, NULL));
  TARN_TRY(tarn__task_require(lm->checkpoint->config, TARN__USE_SCORE_TEXT, path));
  tarn__scorer_options core;
  tarn__scorer_default(&core);
  core.max_tokens = o->max_tokens;
  core.threads = tarn__threads();
  core.comm = tarn__ranks_comm(o->ranks);
  core.rounding = tarn__rounding_of(o->precision);
  const tarn_config *config = lm->checkpoint->config;
  lm->masked = (tarn__config_task(config)->sections >> TARN__TASK_MASKING & 1u) != 0;
  if (lm->masked) {
    core.mask = tarn_vocab_special(lm->checkpoint->target, TARN_SPECIAL_MASK);
    TARN_TRY(tarn__task_first(&core.first, config, lm->checkpoint->target));
    TARN_REQUIRE(core.mask >= 0, DATA, "%s: its vocabulary has no mask token", path);
    lm->begins = core.first >= 0;
  }
  return tarn__scorer_open(&lm->scorer, lm->checkpoint->model, tarn_vocab_eos(lm->checkpoint->target), &core);
}

tarn_status tarn_lm_open(tarn_lm **out, const char *path, const tarn_lm_options *options) {
  *out = NULL;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(tarn_lm)));
  tarn_lm *lm = memory;
  lm->options = *options;
  tarn_status status = open_all(lm, path);
  if (status != TARN_STATUS_OK) {
    tarn_lm_close(&lm);
    return status;
  }
  *out = lm;
  return TARN_STATUS_OK;
}

void tarn_lm_close(tarn_lm **out) {
  tarn_lm *lm = *out;
  if (!lm) return;
  tarn__scorer_close(&lm->scorer);
  tarn__checkpoint_close(&lm->checkpoint);
  tarn_vocab_ids_close(&lm->ids);
  tarn_vocab_text_close(&lm->kept);
  tarn__free(lm->sentences);
  tarn__free(lm->repaired.data);
  tarn__arena_close(&lm->results);
  tarn__line_block_close(&lm->block);
  tarn__free(lm->window);
  tarn__free(lm);
  *out = NULL;
}

const char *tarn_lm_path(const tarn_lm *lm) { return lm->checkpoint->path; }
bool tarn__lm_strict(const tarn_lm *lm) { return lm->options.strict; }
bool tarn__lm_truncates(const tarn_lm *lm) { return lm->options.overlong == TARN_TRANSLATE_OVERLONG_TRUNCATE; }
int64_t tarn__lm_max_tokens(const tarn_lm *lm) { return lm->options.max_tokens; }
tarn__scorer *tarn__lm_scorer(tarn_lm *lm) { return lm->scorer; }
const tarn_vocab *tarn__lm_vocab(const tarn_lm *lm) { return lm->checkpoint->target; }
bool tarn__lm_masked(const tarn_lm *lm) { return lm->masked; }
int64_t tarn__lm_longest(const tarn_lm *lm) { return tarn__model_longest(lm->checkpoint->model); }
bool tarn__lm_helps(const tarn_lm *lm) { return tarn_ranks_rank(lm->options.ranks) > 0; }
int tarn__lm_ranks(const tarn_lm *lm) { return tarn_ranks_count(lm->options.ranks); }
int64_t tarn__lm_window(const tarn_lm *lm) { return lm->checkpoint->config->model.max_length; }
const char *tarn_lm_piece(const tarn_lm *lm, int32_t id) { return tarn_vocab_piece(lm->checkpoint->target, id); }

// Lengths of the tokens' text: the whole line, or its kept part.
static tarn_status measure(tarn_lm *lm, tarn_lm_line *out, const char *line, size_t length, int64_t tokens) {
  const int64_t ends = !lm->masked;
  if (out->truncated) {
    TARN_TRY(tarn_vocab_decode(lm->checkpoint->target, &lm->kept, lm->ids.data, (size_t)tokens));
    line = lm->kept.data;
    length = lm->kept.length;
  }
  out->characters = (int64_t)tarn_vocab_characters(line, length) + ends;
  out->bytes = (int64_t)length + ends;
  return TARN_STATUS_OK;
}

// The tokens of a line, and the sentence to be scored.
static tarn_status encode(tarn_lm *lm, tarn_lm_line *out, tarn__scorer_sentence *sentence, const char *line,
                          size_t length) {
  const int64_t most = tarn__model_longest(lm->checkpoint->model) - lm->begins;
  *out = (tarn_lm_line){0};
  TARN_TRY(tarn__repair(&lm->repaired, &line, &length, lm->options.strict, &out->replaced));
  TARN_TRY(tarn_vocab_encode(lm->checkpoint->target, &lm->ids, line, length));
  int64_t tokens = (int64_t)lm->ids.count;
  out->cut = lm->ids.parts > 1;
  const int32_t unknown = tarn_vocab_unk(lm->checkpoint->target);
  if (tokens > most - 1) {
    TARN_REQUIRE(tarn__lm_truncates(lm), DATA,
                 "%lld tokens, and the model takes %lld with the end of sentence; what is overlong is refused here, "
                 "not truncated",
                 (long long)tokens + 1, (long long)most);
    tokens = most - 1;
    out->truncated = true;
  }
  TARN_TRY(measure(lm, out, line, length, tokens));
  void *memory;
  TARN_TRY(tarn__arena_alloc(&lm->results, &memory, (size_t)tokens + 1, sizeof(int32_t)));
  int32_t *ids = memory;
  if (tokens > 0) memcpy(ids, lm->ids.data, (size_t)tokens * sizeof *ids);
  for (int64_t t = 0; t < tokens; t++) out->unknown += ids[t] == unknown;
  ids[tokens] = tarn_vocab_eos(lm->checkpoint->target);
  TARN_TRY(tarn__arena_alloc(&lm->results, &memory, (size_t)tokens + 1, sizeof(double)));
  out->tokens = tokens + !lm->masked;
  out->ids = ids;
  out->log_probabilities = memory;
  *sentence = (tarn__scorer_sentence){.ids = ids, .length = tokens + 1, .log_probabilities = memory};
  return TARN_STATUS_OK;
}

static void share_prefix(const tarn__scorer_sentence *first, tarn__scorer_sentence *second) {
  while (second->known < first->length && second->known < second->length &&
         first->ids[second->known] == second->ids[second->known])
    second->known++;
}

tarn_status tarn__lm_run(tarn_lm *lm, tarn_lm_line *results, const char *const *lines, const size_t *lengths,
                         size_t count, const int64_t *numbers) {
  TARN_TRY(tarn__grow(&lm->sentences, &lm->sentences_capacity, count, sizeof *lm->sentences));
  tarn__arena_reset(&lm->results);
  for (size_t i = 0; i < count; i++) {
    tarn_status status = encode(lm, &results[i], &lm->sentences[i], lines[i], lengths[i]);
    if (status != TARN_STATUS_OK && numbers)
      return tarn__fail_prefix(status, "line %lld, its %s sentence: ", (long long)numbers[i / 2],
                               i % 2 ? "bad" : "good");
    if (status != TARN_STATUS_OK)
      return tarn__fail_prefix(status, "line %lld: ", (long long)(lm->before + (int64_t)i + 1));
    if (numbers && i % 2 == 1 && !lm->masked) share_prefix(&lm->sentences[i - 1], &lm->sentences[i]);
  }
  TARN_TRY(tarn__scorer_run(lm->scorer, lm->sentences, (int64_t)count));
  for (size_t i = 0; i < count; i++) {
    const tarn__scorer_sentence *s = &lm->sentences[i];
    for (int64_t t = 0; t < s->known; t++) s->log_probabilities[t] = results[i - 1].log_probabilities[t];
    for (int64_t t = 0; t < s->length; t++) results[i].log_probability += s->log_probabilities[t];
  }
  return TARN_STATUS_OK;
}

tarn_status tarn_lm_score(tarn_lm *lm, tarn_lm_line *results, const char *const *lines, const size_t *lengths,
                          size_t count) {
  TARN_TRY(tarn__ranks_must_be_one(lm->options.ranks, "tarn_lm_score()"));
  return tarn__lm_run(lm, results, lines, lengths, count, NULL);
}

void tarn_lm_total_add(tarn_lm_total *total, const tarn_lm_line *line) {
  total->lines++;
  total->tokens += line->tokens;
  total->characters += line->characters;
  total->bytes += line->bytes;
  total->unknown += line->unknown;
  total->truncated += line->truncated;
  total->replaced += line->replaced;
  total->cut += line->cut;
  total->log_probability += line->log_probability;
}

double tarn_lm_perplexity(const tarn_lm_total *total) {
  return total->tokens > 0 ? exp(-total->log_probability / (double)total->tokens) : NAN;
}

static double bits(const tarn_lm_total *total, int64_t units) {
  return units > 0 ? -total->log_probability / log(2.0) / (double)units : NAN;
}

double tarn_lm_bits_per_character(const tarn_lm_total *total) { return bits(total, total->characters); }
double tarn_lm_bits_per_byte(const tarn_lm_total *total) { return bits(total, total->bytes); }

static tarn_status score_windows(tarn_lm *lm, tarn__lines *lines, tarn__work *work, tarn_lm_sink sink, void *user) {
  for (int64_t number = 1;;) {
    tarn__line_block *block = &lm->block;
    const double share = tarn__lines_share(lines), before = (double)(number - 1);
    TARN_TRY(tarn__line_block_read(block, lines, (size_t)lm->options.window, SIZE_MAX));
    if (block->count == 0) return TARN_STATUS_OK;
    tarn__work_part(work, before, share, before + (double)block->count, tarn__lines_share(lines));
    TARN_TRY(tarn__grow(&lm->window, &lm->window_capacity, block->count, sizeof *lm->window));
    lm->before = number - 1;
    tarn_status status = tarn__lm_run(lm, lm->window, block->lines, block->lengths, block->count, NULL);
    lm->before = 0;
    if (status != TARN_STATUS_OK) return tarn__fail_prefix(status, "%s: ", lines->path);
    for (size_t i = 0; i < block->count; i++) TARN_TRY(sink(user, number++, &lm->window[i]));
  }
}

tarn_status tarn_lm_score_file(tarn_lm *lm, const char *path, tarn_lm_sink sink, void *user) {
  tarn__lines lines = {0};
  if (tarn__lm_helps(lm)) return tarn__scorer_help(lm->scorer);
  TARN_TRY(tarn__lines_open(&lines, path, false));
  lines.raw = true;  // each line reports its replaced bytes
  lines.prompt = true;
  tarn__work work;
  tarn__work_begin(&work, "scoring", "lines");
  tarn_status status = score_windows(lm, &lines, &work, sink, user);
  tarn__work_end(&work);
  tarn__lines_close(&lines);
  return status == TARN_STATUS_OK ? tarn__scorer_end(lm->scorer) : status;
}
