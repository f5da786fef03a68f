#include "data/prepare_stream.h"

#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/work.h"
#include "data/token_stream.h"
#include "text/joiners.h"

typedef struct task {
  const tarn_prepare_options *options;
  tarn_prepare_result *result;
  tarn_vocab *vocab;
  tarn__token_stream stream;
  tarn__parts_writer *writer;
  int32_t *window;  // [options->stream]
  int64_t used;
  tarn__work work;
} task;

static tarn_status open_all(task *t, tarn__encode_pool *pool, size_t memory) {
  const tarn_prepare_options *o = t->options;
  void *room;
  TARN_TRY(tarn_vocab_open(&t->vocab, o->vocab));
  TARN_TRY(tarn__token_stream_open(&t->stream, t->vocab, pool, memory, o->text, o->strict));
  TARN_TRY(tarn__alloc(&room, TARN__MEMORY_OTHER, (size_t)o->stream, sizeof *t->window));
  t->window = room;
  return tarn__parts_writer_open(&t->writer, o->output, NULL, t->vocab, TARN__SET_WINDOWS, o->shard_bytes);
}

static tarn_status put_window(task *t) {
  if (t->used == 0) return TARN_STATUS_OK;
  tarn_prepare_result *r = t->result;
  const int64_t length = t->used;
  t->used = 0;
  r->pairs++;
  if (length > r->longest_target) r->longest_target = length;
  return tarn__parts_writer_put(t->writer, NULL, 0, t->window, length);
}

static tarn_status add(task *t, const int32_t *ids, int64_t count) {
  const int64_t most = t->options->stream;
  while (count > 0) {
    const int64_t now = count < most - t->used ? count : most - t->used;
    memcpy(t->window + t->used, ids, (size_t)now * sizeof *ids);
    t->used += now;
    ids += now;
    count -= now;
    if (t->used == most) TARN_TRY(put_window(t));
  }
  return TARN_STATUS_OK;
}

static tarn_status add_all(task *t) {
  for (;;) {
    const int32_t *ids;
    int64_t count;
    TARN_TRY(tarn__token_stream_next(&t->stream, &ids, &count));
    if (count == 0) return put_window(t);
    tarn__work_at(&t->work, (double)t->stream.tokens, tarn__lines_share(&t->stream.encoded.lines));
    tarn__parts_writer_measure(t->writer, t->stream.bytes, t->stream.characters);
    TARN_TRY(add(t, ids, count));
  }
}

static tarn_status run(task *t) {
  const tarn__token_stream *s = &t->stream;
  tarn_prepare_result *r = t->result;
  TARN_TRY(add_all(t));
  TARN_REQUIRE(s->tokens > 0, DATA, "%s: the text is empty", s->encoded.lines.path);
  r->lines = s->lines;
  r->target_tokens = s->tokens;
  r->target_unknown = s->unknown;
  r->replaced = s->encoded.lines.replaced;
  r->cut = s->cut;
  r->split = s->split;
  r->bytes = s->bytes;
  r->characters = s->characters;
  tarn__parts_writer_measure(t->writer, s->bytes, s->characters);
  const char *path = s->encoded.lines.path;
  r->parts = tarn__parts_writer_parts(t->writer);
  TARN_TRY(tarn__parts_writer_commit(&t->writer));
  if ((double)s->unknown > TARN_VOCAB_UNKNOWN_WARNED * (double)s->tokens)
    tarn__log(TARN_LOG_WARNING,
              "%s: %.1f %% of its tokens are unknown to %s; is that vocabulary of its language, and large enough?",
              path, 100.0 * (double)s->unknown / (double)s->tokens, t->options->vocab);
  tarn__joiners_warn(path, s->encoded.vocab, t->options->vocab, s->joined, s->lines);
  return TARN_STATUS_OK;
}

tarn_status tarn__prepare_stream(tarn_prepare_result *result, const tarn_prepare_options *options,
                                 tarn__encode_pool *pool, size_t memory) {
  task t = {.options = options, .result = result};
  tarn__work_begin(&t.work, "preparing", "tokens");
  tarn_status status = open_all(&t, pool, memory);
  if (status == TARN_STATUS_OK) status = run(&t);
  tarn__work_end(&t.work);
  tarn__parts_writer_abort(&t.writer);
  tarn__token_stream_close(&t.stream);
  tarn__free(t.window);
  tarn_vocab_close(&t.vocab);
  return status;
}
