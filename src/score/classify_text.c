// Labels lines of text.
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/work.h"
#include "comm/ranks.h"
#include "score/classifier_share.h"

enum { BLOCK_BYTES = 4 << 20 };

// The properties of a line before it has answers.
typedef struct line_made {
  int64_t predictions;  // 1, or the number of its words in its row
  bool truncated, replaced;
} line_made;

// The lines of a batch so far, as rows in the classifier's arrays.
typedef struct filling {
  int64_t rows, sentences, predictions, longest;
  const char *path;
  const char *const *lines;
  const size_t *lengths;
  size_t count;
  int64_t before;  // earlier lines of the file
} filling;

static tarn_status grow(tarn_classifier *c, int64_t rows, int64_t sentences, int64_t predictions) {
  TARN_TRY(tarn__grow(&c->ids, &c->ids_room, (size_t)rows, sizeof *c->ids));
  TARN_TRY(tarn__grow(&c->positions, &c->positions_room, (size_t)rows, sizeof *c->positions));
  TARN_TRY(tarn__grow(&c->segments, &c->segments_room, (size_t)rows, sizeof *c->segments));
  TARN_TRY(tarn__grow(&c->offsets, &c->offsets_room, (size_t)sentences + 1, sizeof *c->offsets));
  TARN_TRY(tarn__grow(&c->selected, &c->selected_room, (size_t)predictions, sizeof *c->selected));
  return tarn__grow(&c->zeros, &c->zeros_room, (size_t)predictions, sizeof *c->zeros);
}

static int64_t front(const tarn_classifier *c) { return c->first >= 0 ? 1 : 0; }

// Adds the row of c->pair or c->words to the batch.
static tarn_status add_row(tarn_classifier *c, filling *f, const line_made *made) {
  const int32_t *ids = c->of_words ? c->words.ids : c->pair.ids;
  const int64_t tokens = c->of_words ? c->words.length : c->pair.length;
  const int64_t second = c->of_words ? tokens : c->pair.second;
  const int64_t before = front(c), length = tokens + before, segments = c->checkpoint->config->model.segments;
  TARN_REQUIRE(f->rows + length <= INT32_MAX, DATA, "a line of %lld tokens is too long", (long long)length);
  TARN_TRY(grow(c, f->rows + length, f->sentences + 1, f->predictions + made->predictions));
  if (before) c->ids[f->rows] = c->first;
  memcpy(c->ids + f->rows + before, ids, (size_t)tokens * sizeof *ids);
  for (int64_t i = 0; i < length; i++) c->segments[f->rows + i] = segments > 1 && i >= second + before;
  int32_t *selected = c->selected + f->predictions;
  for (int64_t i = 0; i < made->predictions; i++) {
    if (c->of_words) selected[i] = (int32_t)(f->rows + before) + c->words.first[i];
    c->zeros[f->predictions + i] = 0;
  }
  c->offsets[0] = 0;
  f->rows += length;
  if (c->of_words)
    tarn__word_rows(selected, selected, made->predictions, (int32_t)f->rows - 1, c->checkpoint->config->head.pool);
  f->predictions += made->predictions;
  c->offsets[++f->sentences] = (int32_t)f->rows;
  if (length > f->longest) f->longest = length;
  return TARN_STATUS_OK;
}

// Encodes a line whose words have labels.
static tarn_status encode_words(tarn_classifier *c, const filling *f, line_made *made, size_t line) {
  const long long number = (long long)(f->before + (int64_t)line + 1);
  const int64_t longest = c->checkpoint->config->model.max_length;
  tarn__piece text = {f->lines[line], f->lengths[line]};
  const tarn_status status =
      tarn__repair(&c->repaired[0], &text.text, &text.length, c->options.strict, &made->replaced);
  if (status != TARN_STATUS_OK) return tarn__fail_prefix(status, "%s:%lld: ", f->path, number);
  TARN_TRY(tarn__sentence_words_make(&c->words, c->checkpoint->target, &text, longest - front(c)));
  TARN_REQUIRE(c->words.words > 0, DATA, "%s:%lld: a sentence without a word", f->path, number);
  TARN_REQUIRE(!c->words.empty, DATA, "%s:%lld: word %lld gives no token", f->path, number, (long long)c->words.empty);
  TARN_REQUIRE(c->words.whole > 0, DATA, "%s:%lld: its first word has more tokens than the model takes (%lld)", f->path,
               number, (long long)longest);
  made->predictions = c->words.whole;
  made->truncated = c->words.cut_off > 0;
  TARN_REQUIRE(!made->truncated || c->options.overlong == TARN_TRANSLATE_OVERLONG_TRUNCATE, DATA,
               "%s:%lld: %lld tokens, and the model takes %lld; what is overlong is refused here, not truncated",
               f->path, number, (long long)(c->words.length + c->words.cut_off + front(c)), (long long)longest);
  return TARN_STATUS_OK;
}

// Encodes a line: one sentence, or two separated by a tab.
static tarn_status encode(tarn_classifier *c, const filling *f, line_made *made, size_t line) {
  const char *text = f->lines[line], *end = text + f->lengths[line];
  const char *tab = memchr(text, '\t', (size_t)(end - text));
  const long long number = (long long)(f->before + (int64_t)line + 1);
  tarn__piece pieces[2] = {{text, (size_t)((tab ? tab : end) - text)}, {0}};
  if (tab) pieces[1] = (tarn__piece){tab + 1, (size_t)(end - tab - 1)};
  TARN_REQUIRE(!tab || !memchr(tab + 1, '\t', pieces[1].length), DATA,
               "%s:%lld: more than one tab; a line has one sentence, or two that a tab separates", f->path, number);
  for (int i = 0; i < (tab ? 2 : 1); i++) {
    bool replaced = false;
    const tarn_status status =
        tarn__repair(&c->repaired[i], &pieces[i].text, &pieces[i].length, c->options.strict, &replaced);
    if (status != TARN_STATUS_OK) return tarn__fail_prefix(status, "%s:%lld: ", f->path, number);
    made->replaced |= replaced;
  }
  const int64_t longest = c->checkpoint->config->model.max_length;
  TARN_REQUIRE(longest >= 4 + front(c), USAGE, "model.max_length %lld is too short for a sentence", (long long)longest);
  TARN_TRY(tarn__sentence_pair_make(&c->pair, c->checkpoint->target, &pieces[0], &pieces[1], longest - front(c)));
  TARN_REQUIRE(!c->pair.empty, DATA, "%s:%lld: a sentence that gives no token", f->path, number);
  made->predictions = 1;
  made->truncated = c->pair.cut_off > 0;
  TARN_REQUIRE(!made->truncated || c->options.overlong == TARN_TRANSLATE_OVERLONG_TRUNCATE, DATA,
               "%s:%lld: %lld tokens, and the model takes %lld; what is overlong is refused here, not truncated",
               f->path, number, (long long)(c->pair.length + c->pair.cut_off + front(c)), (long long)longest);
  return TARN_STATUS_OK;
}

// The batch of the rows so far.
static void make_batch(tarn__batch *batch, tarn_classifier *c, const filling *f) {
  const tarn_config *config = c->checkpoint->config;
  tarn__packed_positions(c->positions, c->offsets, f->sentences);
  if (!c->of_words) tarn__pooled_rows(c->selected, c->offsets, f->sentences, config->head.pool);
  *batch = (tarn__batch){.source = {.sentences = f->sentences},
                         .target = {.sentences = f->sentences,
                                    .rows = f->rows,
                                    .longest = f->longest,
                                    .ids = c->ids,
                                    .positions = c->positions,
                                    .offsets = c->offsets,
                                    .segments = config->model.segments > 0 ? c->segments : NULL},
                         .predictions = f->predictions,
                         .selected = c->selected,
                         // The labels are unknown; the loss computed from them is ignored.
                         .targets = c->zeros,
                         .values = (const float *)(const void *)c->zeros};
}

void tarn__classifier_tell(tarn_classifier *c, tarn_classify_result *result, const float *answers, int64_t row) {
  const int32_t classes = c->names.count;
  if (!classes) {
    result->number = (double)answers[row];
    return;
  }
  for (int32_t k = 0; k < classes; k++) {
    c->probabilities[k] = exp((double)answers[row * classes + k]);
    int32_t at = k;
    for (; at > 0 && c->probabilities[c->order[at - 1]] < c->probabilities[k]; at--) c->order[at] = c->order[at - 1];
    c->order[at] = k;
  }
  result->probabilities = c->probabilities;
  result->order = c->order;
}

// Fills a batch with lines [first, *last).
static tarn_status fill_batch(tarn_classifier *c, tarn__batch *batch, filling *f, line_made *made, size_t first,
                              size_t *last) {
  f->rows = f->sentences = f->predictions = f->longest = 0;
  for (*last = first; *last < f->count && (*last == first || f->rows < c->options.max_tokens); ++*last) {
    made[*last] = (line_made){0};
    TARN_TRY((c->of_words ? encode_words : encode)(c, f, &made[*last], *last));
    TARN_TRY(add_row(c, f, &made[*last]));
  }
  make_batch(batch, c, f);
  return TARN_STATUS_OK;
}

// Reports the words of a line, whose answers begin at number `row`. Words that were cut off have none.
static tarn_status give_words(tarn_classifier *c, const filling *f, const line_made *made, size_t line,
                              const float *answers, int64_t row, tarn_classify_sink sink, void *user) {
  const char *text = f->lines[line];
  size_t length = f->lengths[line];
  bool replaced = false;
  int64_t words = 0;
  TARN_TRY(tarn__repair(&c->repaired[0], &text, &length, c->options.strict, &replaced));
  const char *at = text, *end = text + length;
  while (tarn__next_word(&at, end).length > 0) words++;
  at = text;
  for (int64_t w = 0; w < words; w++) {
    const tarn__piece word = tarn__next_word(&at, end);
    tarn_classify_result result = {.truncated = made->truncated,
                                   .replaced = made->replaced,
                                   .text = word.text,
                                   .length = word.length,
                                   .word = w,
                                   .words = words};
    if (w < made->predictions) tarn__classifier_tell(c, &result, answers, row + w);
    TARN_TRY(sink(user, f->before + (int64_t)line + 1, &result));
  }
  return TARN_STATUS_OK;
}

// Reports `count` lines from `first` on.
static tarn_status give(tarn_classifier *c, const filling *f, const line_made *made, size_t first, int64_t count,
                        const float *answers, tarn_classify_sink sink, void *user) {
  int64_t row = 0;
  for (size_t line = first; line < first + (size_t)count; row += made[line++].predictions) {
    if (c->of_words) {
      TARN_TRY(give_words(c, f, &made[line], line, answers, row, sink, user));
      continue;
    }
    tarn_classify_result result = {.truncated = made[line].truncated, .replaced = made[line].replaced};
    tarn__classifier_tell(c, &result, answers, row);
    TARN_TRY(sink(user, f->before + (int64_t)line + 1, &result));
  }
  return TARN_STATUS_OK;
}

// Lines [first, *last): a batch.
static tarn_status run_some(tarn_classifier *c, filling *f, line_made *made, size_t first, size_t *last,
                            tarn_classify_sink sink, void *user) {
  tarn__batch batch;
  const float *answers;
  double loss;
  TARN_TRY(fill_batch(c, &batch, f, made, first, last));
  TARN_TRY(tarn__classifier_run(c, &batch, &answers, &loss));
  return give(c, f, made, first, batch.target.sentences, answers, sink, user);
}

// The same with a batch for each rank.
static tarn_status share_some(tarn_classifier *c, filling *f, line_made *made, size_t first, size_t *last,
                              tarn_classify_sink sink, void *user) {
  const int ranks = c->share.comm->size;
  tarn__batch batch;
  bool more;
  tarn__share_begin(&c->share);
  *last = first;
  for (int r = 0; r < ranks && *last < f->count; r++) {
    TARN_TRY(fill_batch(c, &batch, f, made, *last, last));
    tarn__classifier_put(c, r, &batch);
  }
  TARN_TRY(tarn__classifier_round(c, &more));
  for (int r = 0; r < ranks; r++) {
    const float *answers;
    double loss;
    TARN_TRY(tarn__classifier_take(c, r, &batch, &answers, &loss));
    TARN_TRY(give(c, f, made, first, batch.target.sentences, answers, sink, user));
    first += (size_t)batch.target.sentences;
  }
  return TARN_STATUS_OK;
}

static tarn_status run_lines(tarn_classifier *c, filling *f, line_made *made, tarn_classify_sink sink, void *user) {
  for (size_t first = 0, last; first < f->count; first = last) {
    TARN_TRY((c->share.comm ? share_some : run_some)(c, f, made, first, &last, sink, user));
    tarn__work_within(tarn__work_at_hand(), (double)last / (double)f->count);
  }
  return TARN_STATUS_OK;
}

static tarn_status run_file(tarn_classifier *c, tarn__lines *lines, tarn__work *work, line_made *made,
                            tarn_classify_sink sink, void *user) {
  filling f = {.path = lines->path};
  lines->raw = true;
  lines->prompt = true;
  for (;;) {
    const double share = tarn__lines_share(lines), before = (double)f.before;
    TARN_TRY(tarn__line_block_read(&c->block, lines, (size_t)c->options.window, BLOCK_BYTES));
    if (c->block.count == 0) return TARN_STATUS_OK;
    tarn__work_part(work, before, share, before + (double)c->block.count, tarn__lines_share(lines));
    f.lines = c->block.lines;
    f.lengths = c->block.lengths;
    f.count = c->block.count;
    TARN_TRY(run_lines(c, &f, made, sink, user));
    f.before += (int64_t)c->block.count;
  }
}

static tarn_status check_text(const tarn_classifier *c) {
  TARN_REQUIRE(!tarn_classifier_verb(c)->images, USAGE, "%s: it is an image classifier, which reads no text (tarn %s)",
               c->checkpoint->path, tarn_classifier_verb(c)->word);
  return TARN_STATUS_OK;
}

tarn_status tarn_classifier_file(tarn_classifier *c, const char *path, tarn_classify_sink sink, void *user) {
  void *made;
  tarn__lines lines;
  TARN_TRY(check_text(c));
  if (tarn_ranks_rank(c->options.ranks) > 0) return tarn__classifier_help(c);
  TARN_TRY(tarn__lines_open(&lines, path, false));
  tarn_status status = tarn__alloc(&made, TARN__MEMORY_OTHER, (size_t)c->options.window, sizeof(line_made));
  if (status == TARN_STATUS_OK) {
    tarn__work work;
    tarn__work_begin(&work, tarn_classifier_verb(c)->doing, "lines");
    status = run_file(c, &lines, &work, made, sink, user);
    tarn__work_end(&work);
    tarn__free(made);
  }
  tarn__lines_close(&lines);
  return status == TARN_STATUS_OK && c->share.comm ? tarn__share_end(&c->share) : status;
}

tarn_status tarn_classifier_lines(tarn_classifier *c, const char *const *lines, const size_t *lengths, size_t count,
                                  tarn_classify_sink sink, void *user) {
  void *made;
  TARN_TRY(check_text(c));
  TARN_TRY(tarn__ranks_must_be_one(c->options.ranks, "tarn_classifier_lines()"));
  TARN_TRY(tarn__alloc(&made, TARN__MEMORY_OTHER, count, sizeof(line_made)));
  filling f = {.path = "text", .lines = lines, .lengths = lengths, .count = count};
  const tarn_status status = run_lines(c, &f, made, sink, user);
  tarn__free(made);
  return status;
}
