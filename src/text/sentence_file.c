// The sentences of text files, one per line.
#include "base/file.h"
#include "base/memory.h"
#include "base/work.h"
#include "tarn/text.h"
#include "text/lines.h"
#include "text/sentences.h"
#include "text/vocab_kind.h"

typedef struct task {
  const tarn_sentences_options *options;
  tarn_sentences_result *result;
  tarn__sentences sentences;
  tarn__lines lines;
  tarn_vocab_text paragraph;  // lines so far
  bool begun, ended;          // a sentence was written; and a document ended after the last one
  tarn__writer *writer;
  tarn__work work;
  size_t files, file;  // their number, and the current one
} task;

void tarn_sentences_default(tarn_sentences_options *options) { *options = (tarn_sentences_options){.language = "en"}; }

static tarn_status write_paragraph(task *t, const char *text, size_t length) {
  TARN_TRY(tarn__sentences_split(&t->sentences, text, length));
  if (t->sentences.count > 0 && t->ended && t->begun) TARN_TRY(tarn__writer_put(t->writer, "\n", 1));
  if (t->sentences.count > 0) {
    t->begun = true;
    t->ended = false;
  }
  for (size_t i = 0; i < t->sentences.count; i++) {
    const tarn__sentence *s = &t->sentences.items[i];
    TARN_TRY(tarn__writer_put(t->writer, text + s->start, s->end - s->start));
    TARN_TRY(tarn__writer_put(t->writer, "\n", 1));
  }
  t->result->paragraphs += t->sentences.count > 0;
  t->result->sentences += (int64_t)t->sentences.count;
  return TARN_STATUS_OK;
}

static tarn_status end_paragraph(task *t) {
  tarn_status status = write_paragraph(t, t->paragraph.data, t->paragraph.length);
  t->paragraph.length = 0;
  return status;
}

static bool is_empty(const char *text, size_t length) {
  for (size_t i = 0; i < length; i++)
    if (text[i] != ' ' && (text[i] < '\t' || text[i] > '\r')) return false;
  return true;
}

static tarn_status read_file(task *t, const char *path) {
  TARN_TRY(tarn__lines_open(&t->lines, path, t->options->strict));
  for (;;) {
    const char *text;
    size_t length;
    TARN_TRY(tarn__lines_next(&t->lines, &text, &length));
    if (!text) break;
    tarn__work_at(&t->work, (double)(t->result->lines + t->lines.number),
                  ((double)t->file + tarn__lines_share(&t->lines)) / (double)t->files);
    if (t->options->documents && is_empty(text, length)) t->ended = true;
    if (!t->options->wrapped) {
      TARN_TRY(write_paragraph(t, text, length));
    } else if (is_empty(text, length)) {
      TARN_TRY(end_paragraph(t));
    } else {
      if (t->paragraph.length) TARN_TRY(tarn__vocab_append(&t->paragraph, " ", 1));
      TARN_TRY(tarn__vocab_append(&t->paragraph, text, length));
    }
  }
  TARN_TRY(end_paragraph(t));
  t->ended = t->options->documents;
  t->result->lines += t->lines.number;
  t->result->replaced += t->lines.replaced;
  tarn__lines_close(&t->lines);
  return TARN_STATUS_OK;
}

static tarn_status run(task *t, const char *output, const char *const *files, size_t count) {
  TARN_REQUIRE(t->options->language, USAGE, "sentences need a language");
  TARN_TRY(tarn__sentence_language_find(&t->sentences.language, t->options->language));
  TARN_REQUIRE(!t->options->documents || !t->options->wrapped, USAGE,
               "an empty line ends a paragraph, so it cannot be the end of a document");
  TARN_REQUIRE(count > 0, USAGE, "sentences need at least one text file");
  TARN_TRY(tarn__mkdir_of_file(output));
  TARN_TRY(tarn__writer_open(&t->writer, output));
  t->files = count;
  for (; t->file < count; t->file++) TARN_TRY(read_file(t, files[t->file]));
  return tarn__writer_commit(&t->writer);
}

tarn_status tarn_sentences_write(tarn_sentences_result *result, const char *output, const char *const *files,
                                 size_t count, const tarn_sentences_options *options) {
  *result = (tarn_sentences_result){0};
  task t = {.options = options, .result = result};
  tarn__work_begin(&t.work, "splitting into sentences", "lines");
  tarn_status status = run(&t, output, files, count);
  tarn__work_end(&t.work);
  tarn__writer_abort(&t.writer);
  tarn__lines_close(&t.lines);
  tarn__sentences_close(&t.sentences);
  tarn_vocab_text_close(&t.paragraph);
  return status;
}
