#include <limits.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "data/shard.h"
#include "data/shard_format.h"
#include "data/shard_writer.h"
#include "tarn/data.h"
#include "tarn/vocab.h"
#include "text/lines.h"

static const double CUT_OFF_WARNED = 0.01;  // share of the tokens

void tarn_prepare_default(tarn_prepare_options *options) {
  *options = (tarn_prepare_options){.min_tokens = 2, .max_tokens = 1024};
}

// One side of the parallel text.
typedef struct side {
  const tarn_vocab *vocab;
  tarn__lines lines;
  const char *text;  // the line at hand; NULL: there is none
  size_t length;
  tarn_vocab_ids ids;
  int64_t tokens, unknown, longest;  // of what was kept
  int64_t cut_off, left_out;         // tokens of truncated sentences, and of pairs that were left out
} side;

typedef struct task {
  const tarn_prepare_options *options;
  tarn_prepare_result *result;
  tarn_vocab *vocab, *target_vocab;
  side source, target;
  tarn__shard_writer *writer;
} task;

static tarn_status check_options(const tarn_prepare_options *o) {
  TARN_REQUIRE(o->vocab, USAGE, "a vocabulary is needed");
  TARN_REQUIRE(!o->text == (o->source && o->target) && (!o->text || (!o->source && !o->target)), USAGE,
               "either source and target text, or one text for a language model");
  TARN_REQUIRE(!o->text || !o->target_vocab, USAGE, "one text has one vocabulary");
  TARN_REQUIRE(o->output, USAGE, "an output prefix is needed");
  TARN_REQUIRE(o->min_tokens >= 2 && o->min_tokens <= o->max_tokens, USAGE,
               "the shortest sentence has 2 tokens at least and no more than the longest (%lld), not %lld",
               (long long)o->max_tokens, (long long)o->min_tokens);
  TARN_REQUIRE(o->max_tokens >= 2 && o->max_tokens <= TARN__SHARD_LONGEST, USAGE,
               "the longest sentence has 2 to %d tokens, not %lld", TARN__SHARD_LONGEST, (long long)o->max_tokens);
  return TARN_STATUS_OK;
}

static tarn_status open_all(task *t) {
  const tarn_prepare_options *o = t->options;
  TARN_TRY(tarn_vocab_open(&t->vocab, o->vocab));
  if (o->target_vocab) TARN_TRY(tarn_vocab_open(&t->target_vocab, o->target_vocab));
  t->target.vocab = t->vocab;
  if (o->text) {
    TARN_TRY(tarn__lines_open(&t->target.lines, o->text, o->strict));
    return tarn__shard_writer_open(&t->writer, o->output, NULL, t->vocab);
  }
  t->source.vocab = t->vocab;
  t->target.vocab = o->target_vocab ? t->target_vocab : t->vocab;
  TARN_TRY(tarn__lines_open(&t->source.lines, o->source, o->strict));
  TARN_TRY(tarn__lines_open(&t->target.lines, o->target, o->strict));
  return tarn__shard_writer_open(&t->writer, o->output, t->source.vocab, t->target.vocab);
}

// Counts the rest of the longer file, so that the message can say both numbers.
static tarn_status fail_counts(task *t) {
  side *longer = t->source.text ? &t->source : &t->target;
  int64_t first = longer->lines.number;
  while (longer->text) TARN_TRY(tarn__lines_next(&longer->lines, &longer->text, &longer->length));
  return tarn__fail(TARN_STATUS_DATA, "%s has %lld lines and %s has %lld: line %lld of %s has no partner",
                    t->options->source, (long long)t->source.lines.number, t->options->target,
                    (long long)t->target.lines.number, (long long)first,
                    longer == &t->source ? t->options->source : t->options->target);
}

// What the options say of an overlong side: *drop asks to leave the pair out, *cut to truncate it.
static tarn_status limit(const task *t, side *s, bool *drop, bool *cut) {
  int64_t most = t->options->max_tokens - 1;
  if ((int64_t)s->ids.count <= most) return TARN_STATUS_OK;
  TARN_REQUIRE(t->options->overlong != TARN_PREPARE_OVERLONG_REFUSE, DATA,
               "%s:%lld: %zu tokens with the end of sentence, but at most %lld are allowed", s->lines.path,
               (long long)s->lines.number, s->ids.count + 1, (long long)most + 1);
  if (t->options->overlong == TARN_PREPARE_OVERLONG_DROP)
    *drop = true;
  else
    *cut = true;
  return TARN_STATUS_OK;
}

static void truncate(const task *t, side *s) {
  const int64_t more = (int64_t)s->ids.count + 1 - t->options->max_tokens;
  if (more <= 0) return;
  s->cut_off += more;
  s->ids.count -= (size_t)more;
}

// Counts a pair that is left out.
static tarn_status leave_out(task *t) {
  t->source.left_out += (int64_t)t->source.ids.count;
  t->target.left_out += (int64_t)t->target.ids.count;
  return TARN_STATUS_OK;
}

static void count_side(side *s) {
  int64_t length = (int64_t)s->ids.count + 1;
  s->tokens += length;
  if (length > s->longest) s->longest = length;
  for (size_t i = 0; i < s->ids.count; i++) s->unknown += s->ids.data[i] == tarn_vocab_unk(s->vocab);
}

// Whether a side is too short, counted in *count if so.
static bool too_short(const task *t, const side *s, int64_t least, int64_t *count) {
  bool less = (s == &t->target || !t->options->text) && (int64_t)s->ids.count + 1 < least;
  *count += less;
  return less;
}

static tarn_status encode(task *t, side *s) {
  TARN_TRY(tarn_vocab_encode(s->vocab, &s->ids, s->text, s->length));
  t->result->cut += s->ids.parts > 1;
  t->result->split += (int64_t)s->ids.broken;
  return TARN_STATUS_OK;
}

static tarn_status add_pair(task *t) {
  bool drop = false;
  bool cut = false;
  const tarn_prepare_options *o = t->options;
  if (!o->text) TARN_TRY(encode(t, &t->source));
  TARN_TRY(encode(t, &t->target));
  t->result->lines++;
  if (too_short(t, &t->source, 2, &t->result->empty) || too_short(t, &t->target, 2, &t->result->empty))
    return leave_out(t);
  if (too_short(t, &t->source, o->min_tokens, &t->result->brief) ||
      too_short(t, &t->target, o->min_tokens, &t->result->brief))
    return leave_out(t);
  TARN_TRY(limit(t, &t->source, &drop, &cut));
  TARN_TRY(limit(t, &t->target, &drop, &cut));
  if (drop) {
    t->result->dropped++;
    return leave_out(t);
  }
  truncate(t, &t->source);
  truncate(t, &t->target);
  t->result->truncated += cut;
  t->result->pairs++;
  if (!o->text) count_side(&t->source);
  count_side(&t->target);
  return tarn__shard_writer_put(t->writer, t->source.ids.data, (int64_t)t->source.ids.count, t->target.ids.data,
                                (int64_t)t->target.ids.count);
}

static tarn_status add_all(task *t) {
  for (;;) {
    if (!t->options->text) TARN_TRY(tarn__lines_next(&t->source.lines, &t->source.text, &t->source.length));
    TARN_TRY(tarn__lines_next(&t->target.lines, &t->target.text, &t->target.length));
    if (!t->source.text && !t->target.text) return TARN_STATUS_OK;
    if (!t->options->text && (!t->source.text || !t->target.text)) return fail_counts(t);
    TARN_TRY(add_pair(t));
  }
}

static void warn(const task *t, const side *s, const char *vocab) {
  const char *path = s->lines.path;
  if ((double)s->unknown > TARN_VOCAB_UNKNOWN_WARNED * (double)s->tokens)
    tarn__log(TARN_LOG_WARNING,
              "%s: %.1f %% of its tokens are unknown to %s; is that vocabulary of its language, and large enough?",
              path, 100.0 * (double)s->unknown / (double)s->tokens, vocab);
  if ((double)s->cut_off > CUT_OFF_WARNED * (double)(s->tokens + s->cut_off))
    tarn__log(TARN_LOG_WARNING,
              "%s: %.1f %% of its tokens were cut off, because sentences are longer than %lld tokens; tarn sentences "
              "splits paragraphs",
              path, 100.0 * (double)s->cut_off / (double)(s->tokens + s->cut_off), (long long)t->options->max_tokens);
}

static tarn_status run(task *t) {
  const tarn_prepare_options *o = t->options;
  TARN_TRY(open_all(t));
  TARN_TRY(add_all(t));
  tarn_prepare_result *r = t->result;
  TARN_REQUIRE(r->pairs > 0 || !o->text, DATA,
               "%s: no sentence is left of %lld lines (%lld empty, %lld shorter than the least, %lld overlong)",
               o->text, (long long)r->lines, (long long)r->empty, (long long)r->brief, (long long)r->dropped);
  TARN_REQUIRE(r->pairs > 0, DATA,
               "%s and %s: no pair is left of %lld lines (%lld with an empty side, %lld shorter than the least, %lld "
               "overlong)",
               o->source, o->target, (long long)r->lines, (long long)r->empty, (long long)r->brief,
               (long long)r->dropped);
  r->source_tokens = t->source.tokens;
  r->target_tokens = t->target.tokens;
  r->source_unknown = t->source.unknown;
  r->target_unknown = t->target.unknown;
  r->longest_source = t->source.longest;
  r->longest_target = t->target.longest;
  r->source_left_out = t->source.left_out + t->source.cut_off;
  r->target_left_out = t->target.left_out + t->target.cut_off;
  r->replaced = t->source.lines.replaced + t->target.lines.replaced;
  TARN_TRY(tarn__shard_writer_commit(&t->writer));
  if (!o->text) warn(t, &t->source, o->vocab);
  warn(t, &t->target, o->target_vocab ? o->target_vocab : o->vocab);
  return TARN_STATUS_OK;
}

tarn_status tarn_prepare_run(tarn_prepare_result *result, const tarn_prepare_options *options) {
  *result = (tarn_prepare_result){0};
  TARN_TRY(check_options(options));
  task t = {.options = options, .result = result};
  tarn_status status = run(&t);
  tarn__shard_writer_abort(&t.writer);
  tarn__lines_close(&t.source.lines);
  tarn__lines_close(&t.target.lines);
  tarn_vocab_ids_close(&t.source.ids);
  tarn_vocab_ids_close(&t.target.ids);
  tarn_vocab_close(&t.vocab);
  tarn_vocab_close(&t.target_vocab);
  return status;
}
