// The tokens of a text file, line by line.
#include "base/status.h"
#include "base/work.h"
#include "tarn/vocab.h"
#include "text/lines.h"

static tarn_status encode_lines(const tarn_vocab *vocab, tarn__lines *lines, tarn__work *work, tarn_vocab_ids *ids,
                                tarn_vocab_sink sink, void *user) {
  for (;;) {
    const char *text;
    size_t length;
    TARN_TRY(tarn__lines_next(lines, &text, &length));
    if (!text) return TARN_STATUS_OK;
    TARN_TRY(tarn_vocab_encode(vocab, ids, text, length));
    TARN_TRY(sink(user, ids));
    tarn__work_at(work, (double)lines->number, tarn__lines_share(lines));
  }
}

tarn_status tarn_vocab_encode_file(const tarn_vocab *vocab, int64_t *replaced, const char *path, bool strict,
                                   tarn_vocab_sink sink, void *user) {
  tarn__lines lines = {0};
  tarn_vocab_ids ids = {0};
  *replaced = 0;
  TARN_TRY(tarn__lines_open(&lines, path, strict));
  tarn__work work;
  tarn__work_begin(&work, "encoding", "lines");
  tarn_status status = encode_lines(vocab, &lines, &work, &ids, sink, user);
  tarn__work_end(&work);
  *replaced = lines.replaced;
  tarn_vocab_ids_close(&ids);
  tarn__lines_close(&lines);
  return status;
}
