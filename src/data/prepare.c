#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/threads.h"
#include "base/work.h"
#include "data/encoded_lines.h"
#include "data/parts_writer.h"
#include "data/prepare_stream.h"
#include "data/shard.h"
#include "data/shard_format.h"
#include "tarn/data.h"
#include "tarn/plan.h"
#include "tarn/vocab.h"
#include "text/joiners.h"

// Bytes: a limit, so that a text without line ends is not read into memory as one sentence.
enum { LONGEST_LINE = TARN__SHARD_LONGEST };
static const int64_t MOST_USEFUL_MEMORY = 256000000;  // bytes; the blocks of a text being encoded at the same time
static const double CUT_OFF_WARNED = 0.01;            // share of the tokens

void tarn_prepare_default(tarn_prepare_options *options) {
  *options = (tarn_prepare_options){.min_tokens = 2, .max_tokens = 1024, .shard_bytes = TARN_PREPARE_SHARD_BYTES};
}

// One side of the parallel text.
typedef struct side {
  const tarn_vocab *vocab;
  tarn__encoded_lines lines;
  const tarn__encoded_line *line;  // the current one; NULL: there is none
  const int32_t *ids;              // [length] the ids kept
  int64_t length;
  int64_t given;                     // lines
  int64_t tokens, unknown, longest;  // of the sentences kept
  int64_t kept, joined;              // sentences, and those that lost joiners
  int64_t cut_off, left_out;         // tokens of truncated sentences, and of skipped pairs
} side;

typedef struct task {
  const tarn_prepare_options *options;
  tarn_prepare_result *result;
  tarn_vocab *vocab, *target_vocab;
  side source, target;
  tarn__parts_writer *writer;
  int32_t *row;  // [options->pack] packed sentences, each with its end
  int64_t row_used;
  bool in_document;
  tarn__encode_pool *pool;
  size_t memory;  // bytes of the read-ahead, per side
  tarn__work work;
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
  TARN_REQUIRE(o->stream == 0 || (o->stream >= 2 && o->stream <= TARN__SHARD_LONGEST), USAGE,
               "the windows of a stream have 2 to %d tokens, not %lld", TARN__SHARD_LONGEST, (long long)o->stream);
  TARN_REQUIRE(o->pack == 0 || (o->pack >= o->min_tokens && o->pack <= TARN__SHARD_LONGEST), USAGE,
               "sentences are packed into rows of %lld to %d tokens, not %lld", (long long)o->min_tokens,
               TARN__SHARD_LONGEST, (long long)o->pack);
  TARN_REQUIRE((o->stream == 0 && o->pack == 0) || o->text, USAGE, "only one text is %s",
               o->stream ? "cut into windows" : "packed into rows");
  TARN_REQUIRE(o->stream == 0 || o->pack == 0, USAGE, "a text is either cut into windows or packed into rows");
  TARN_REQUIRE((int)o->overlong >= 0 && o->overlong <= TARN_PREPARE_OVERLONG_REFUSE, USAGE,
               "there is no rule %d for sentences that are too long", (int)o->overlong);
  TARN_REQUIRE(o->threads >= 0 && o->threads <= 1024, USAGE, "the threads are 0 to 1024, not %d", o->threads);
  TARN_REQUIRE(o->shard_bytes >= TARN_PREPARE_LEAST_SHARD, USAGE, "a shard has %d bytes at least, not %lld",
               TARN_PREPARE_LEAST_SHARD, (long long)o->shard_bytes);
  TARN_REQUIRE(o->memory == 0 || o->memory >= TARN_PREPARE_LEAST_MEMORY, USAGE,
               "preparing takes %d bytes of memory at least, not %lld", TARN_PREPARE_LEAST_MEMORY,
               (long long)o->memory);
  return TARN_STATUS_OK;
}

static tarn_status open_lines(task *t, side *s, const char *path) {
  TARN_TRY(tarn__encoded_lines_open(&s->lines, s->vocab, t->pool, t->memory, path, t->options->strict));
  s->lines.lines.longest = LONGEST_LINE;
  return TARN_STATUS_OK;
}

static tarn_status open_row(task *t) {
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)t->options->pack, sizeof *t->row));
  t->row = memory;
  return TARN_STATUS_OK;
}

static tarn_status open_all(task *t) {
  const tarn_prepare_options *o = t->options;
  TARN_TRY(tarn_vocab_open(&t->vocab, o->vocab));
  if (o->target_vocab) TARN_TRY(tarn_vocab_open(&t->target_vocab, o->target_vocab));
  t->target.vocab = t->vocab;
  if (o->text) {
    TARN_TRY(open_lines(t, &t->target, o->text));
    TARN_TRY(tarn__parts_writer_open(&t->writer, o->output, NULL, t->vocab,
                                     o->pack ? TARN__SET_PACKED : TARN__SET_SENTENCES, o->shard_bytes));
    return o->pack ? open_row(t) : TARN_STATUS_OK;
  }
  t->source.vocab = t->vocab;
  t->target.vocab = o->target_vocab ? t->target_vocab : t->vocab;
  TARN_TRY(open_lines(t, &t->source, o->source));
  TARN_TRY(open_lines(t, &t->target, o->target));
  return tarn__parts_writer_open(&t->writer, o->output, t->source.vocab, t->target.vocab, TARN__SET_SENTENCES,
                                 o->shard_bytes);
}

static tarn_status next_line(side *s) {
  TARN_TRY(tarn__encoded_lines_next(&s->lines, &s->line));
  if (!s->line) return TARN_STATUS_OK;
  s->given++;
  s->ids = s->line->ids;
  s->length = s->line->count;
  return TARN_STATUS_OK;
}

// Counts the rest of the longer file, so that the message can say both numbers.
static tarn_status fail_counts(task *t) {
  side *longer = t->source.line ? &t->source : &t->target;
  int64_t first = longer->given;
  while (longer->line) TARN_TRY(next_line(longer));
  return tarn__fail(TARN_STATUS_DATA, "%s has %lld lines and %s has %lld: line %lld of %s has no partner",
                    t->options->source, (long long)t->source.given, t->options->target, (long long)t->target.given,
                    (long long)first, longer == &t->source ? t->options->source : t->options->target);
}

// Tokens of the longest sentence with its end: a row of packed sentences must hold it whole.
static int64_t longest(const tarn_prepare_options *o) {
  return o->pack > 0 && o->pack < o->max_tokens ? o->pack : o->max_tokens;
}

// Applies the options to an overlong side: *drop asks to skip the pair, *cut to truncate it.
static tarn_status limit(const task *t, side *s, bool *drop, bool *cut) {
  const int64_t most = longest(t->options) - 1;
  if (s->length <= most) return TARN_STATUS_OK;
  TARN_REQUIRE(t->options->overlong != TARN_PREPARE_OVERLONG_REFUSE, DATA,
               "%s:%lld: %lld tokens with the end of sentence, but at most %lld are allowed", s->lines.lines.path,
               (long long)s->line->number, (long long)s->length + 1, (long long)most + 1);
  if (t->options->overlong == TARN_PREPARE_OVERLONG_DROP)
    *drop = true;
  else
    *cut = true;
  return TARN_STATUS_OK;
}

static void truncate(const task *t, side *s) {
  const int64_t more = s->length + 1 - longest(t->options);
  if (more <= 0) return;
  s->cut_off += more;
  s->length -= more;
}

// Counts a skipped pair.
static tarn_status leave_out(task *t) {
  t->source.left_out += t->source.length;
  t->target.left_out += t->target.length;
  return TARN_STATUS_OK;
}

static void count_side(side *s) {
  const int64_t length = s->length + 1;
  const int32_t unknown = tarn_vocab_unk(s->vocab);
  s->tokens += length;
  s->kept++;
  s->joined += tarn__joiners_lost(s->vocab, s->line->text, s->line->length);
  if (length > s->longest) s->longest = length;
  for (int64_t i = 0; i < s->length; i++) s->unknown += s->ids[i] == unknown;
}

// Whether a side is too short, counted in *count if so.
static bool too_short(const task *t, const side *s, int64_t least, int64_t *count) {
  bool less = (s == &t->target || !t->options->text) && s->length + 1 < least;
  *count += less;
  return less;
}

static void count_parts(task *t, const side *s) {
  t->result->cut += s->line->parts > 1;
  t->result->split += (int64_t)s->line->broken;
}

// Writes the packed row. The writer adds its last end of sentence.
static tarn_status put_row(task *t) {
  const int64_t length = t->row_used;
  if (length == 0) return TARN_STATUS_OK;
  t->row_used = 0;
  t->result->pairs++;
  if (length > t->target.longest) t->target.longest = length;
  return tarn__parts_writer_put(t->writer, NULL, 0, t->row, length - 1);
}

static tarn_status pack(task *t) {
  const int64_t length = t->target.length;
  t->result->packed++;
  t->result->documents += !t->in_document;
  t->in_document = true;
  if (t->row_used + length + 1 > t->options->pack) TARN_TRY(put_row(t));
  memcpy(t->row + t->row_used, t->target.ids, (size_t)length * sizeof *t->row);
  t->row_used += length;
  t->row[t->row_used++] = tarn_vocab_eos(t->vocab);
  return TARN_STATUS_OK;
}

static tarn_status add_pair(task *t) {
  bool drop = false;
  bool cut = false;
  const tarn_prepare_options *o = t->options;
  if (!o->text) count_parts(t, &t->source);
  count_parts(t, &t->target);
  t->result->lines++;
  if (o->pack && t->target.length == 0) {  // a new document
    t->in_document = false;
    return put_row(t);
  }
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
  if (!o->text) count_side(&t->source);
  count_side(&t->target);
  if (o->pack) return pack(t);
  t->result->pairs++;
  return tarn__parts_writer_put(t->writer, t->source.ids, t->source.length, t->target.ids, t->target.length);
}

static tarn_status add_all(task *t) {
  for (;;) {
    if (!t->options->text) TARN_TRY(next_line(&t->source));
    TARN_TRY(next_line(&t->target));
    tarn__work_at(&t->work, (double)t->target.given, tarn__lines_share(&t->target.lines.lines));
    if (!t->source.line && !t->target.line) return put_row(t);
    if (!t->options->text && (!t->source.line || !t->target.line)) return fail_counts(t);
    TARN_TRY(add_pair(t));
  }
}

static void warn(const task *t, const side *s, const char *vocab) {
  const char *path = s->lines.lines.path;
  if ((double)s->unknown > TARN_VOCAB_UNKNOWN_WARNED * (double)s->tokens)
    tarn__log(TARN_LOG_WARNING,
              "%s: %.1f %% of its tokens are unknown to %s; is that vocabulary of its language, and large enough?",
              path, 100.0 * (double)s->unknown / (double)s->tokens, vocab);
  tarn__joiners_warn(path, s->vocab, vocab, s->joined, s->kept);
  if ((double)s->cut_off > CUT_OFF_WARNED * (double)(s->tokens + s->cut_off))
    tarn__log(TARN_LOG_WARNING,
              "%s: %.1f %% of its tokens were cut off, because sentences are longer than %lld tokens; tarn sentences "
              "splits paragraphs",
              path, 100.0 * (double)s->cut_off / (double)(s->tokens + s->cut_off), (long long)longest(t->options));
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
  r->replaced = t->source.lines.lines.replaced + t->target.lines.lines.replaced;
  r->parts = tarn__parts_writer_parts(t->writer);
  TARN_TRY(tarn__parts_writer_commit(&t->writer));
  if (!o->text) warn(t, &t->source, o->vocab);
  warn(t, &t->target, o->target_vocab ? o->target_vocab : o->vocab);
  return TARN_STATUS_OK;
}

// Half of the memory is for reading ahead, the other half for the rest: program, vocabulary, writing, and an unusually
// long line.
static size_t memory_ahead(const tarn_prepare_options *o) {
  int64_t memory = o->memory;
  if (memory == 0) {
    memory = (int64_t)(tarn_memory_available() / 4);
    if (memory > MOST_USEFUL_MEMORY) memory = MOST_USEFUL_MEMORY;
    if (memory < TARN_PREPARE_LEAST_MEMORY) memory = TARN_PREPARE_LEAST_MEMORY;
  }
  return (size_t)memory / 2;
}

static tarn_status run_text(tarn_prepare_result *result, const tarn_prepare_options *options, tarn__encode_pool *pool) {
  const size_t memory = memory_ahead(options);
  if (options->stream) return tarn__prepare_stream(result, options, pool, memory);
  task t = {.options = options, .result = result, .pool = pool, .memory = options->text ? memory : memory / 2};
  tarn__work_begin(&t.work, "preparing", "lines");
  tarn_status status = run(&t);
  tarn__work_end(&t.work);
  tarn__parts_writer_abort(&t.writer);
  tarn__free(t.row);
  tarn__encoded_lines_close(&t.source.lines);
  tarn__encoded_lines_close(&t.target.lines);
  tarn_vocab_close(&t.vocab);
  tarn_vocab_close(&t.target_vocab);
  return status;
}

tarn_status tarn_prepare_run(tarn_prepare_result *result, const tarn_prepare_options *options) {
  *result = (tarn_prepare_result){0};
  TARN_TRY(check_options(options));
  tarn__encode_pool *pool;
  TARN_TRY(tarn__encode_pool_open(&pool, tarn__threads_set(options->threads)));
  tarn_status status = run_text(result, options, pool);
  tarn__encode_pool_close(&pool);
  return status;
}
