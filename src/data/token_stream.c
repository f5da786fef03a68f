#include "data/token_stream.h"

#include <string.h>

#include "text/joiners.h"

enum { LONGEST_PART = 1 << 20 };  // bytes of a line encoded at a time

// The token that decodes to a newline, if there is one.
static tarn_status find_line_end(int32_t *id, bool *own, const tarn_vocab *vocab) {
  tarn_vocab_ids ids = {0};
  tarn_vocab_text text = {0};
  tarn_status status = tarn_vocab_encode(vocab, &ids, "\n", 1);
  *own = false;
  *id = tarn_vocab_eos(vocab);
  if (status == TARN_STATUS_OK && ids.count == 1) {
    status = tarn_vocab_decode(vocab, &text, ids.data, 1);
    *own = status == TARN_STATUS_OK && text.length == 1 && text.data[0] == '\n';
    if (*own) *id = ids.data[0];
  }
  tarn_vocab_ids_close(&ids);
  tarn_vocab_text_close(&text);
  return status;
}

tarn_status tarn__token_stream_open(tarn__token_stream *stream, const tarn_vocab *vocab, tarn__encode_pool *pool,
                                    size_t memory, const char *path, bool strict) {
  bool own;
  *stream = (tarn__token_stream){0};
  TARN_TRY(find_line_end(&stream->line_end, &own, vocab));
  TARN_TRY(tarn__encoded_lines_open(&stream->encoded, vocab, pool, memory, path, strict));
  tarn__lines *lines = &stream->encoded.lines;
  lines->longest = LONGEST_PART;
  lines->parts = true;
  lines->verbatim = own;
  lines->raw = own && !strict;
  return TARN_STATUS_OK;
}

void tarn__token_stream_close(tarn__token_stream *stream) {
  tarn__encoded_lines_close(&stream->encoded);
  *stream = (tarn__token_stream){0};
}

static void count_line(tarn__token_stream *s, const tarn__encoded_line *line) {
  const int32_t unknown = tarn_vocab_unk(s->encoded.vocab);
  s->lines = line->number;
  s->bytes += (int64_t)line->length;
  s->characters += (int64_t)tarn_vocab_characters(line->text, line->length);
  s->joined += tarn__joiners_lost(s->encoded.vocab, line->text, line->length);
  s->cut += line->parts > 1 || line->more;
  s->split += (int64_t)line->broken;
  for (int64_t i = 0; i < line->count; i++) s->unknown += line->ids[i] == unknown;
  s->tokens += line->count;
}

// Returns the pending line end.
static void give_line_end(tarn__token_stream *s, const int32_t **ids, int64_t *count) {
  s->due = false;
  s->bytes++;
  s->characters++;
  s->tokens++;
  *ids = &s->line_end;
  *count = 1;
}

tarn_status tarn__token_stream_next(tarn__token_stream *stream, const int32_t **ids, int64_t *count) {
  *count = 0;
  while (*count == 0) {
    const tarn__encoded_line *line = stream->line;
    stream->line = NULL;
    if (!line) TARN_TRY(tarn__encoded_lines_next(&stream->encoded, &line));
    if (!line && stream->due && stream->encoded.lines.open_end) stream->due = false;
    if (stream->due) {
      stream->line = line;
      give_line_end(stream, ids, count);
      return TARN_STATUS_OK;
    }
    if (!line) return TARN_STATUS_OK;
    count_line(stream, line);
    stream->due = !line->more;
    *ids = line->ids;
    *count = line->count;
  }
  return TARN_STATUS_OK;
}
