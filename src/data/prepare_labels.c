#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/work.h"
#include "data/class_names.h"
#include "data/labelled_table.h"
#include "data/parts_writer.h"
#include "data/sentence_words.h"
#include "data/shard.h"
#include "data/shard_format.h"
#include "tarn/data.h"
#include "tarn/text.h"
#include "text/joiners.h"

static const double CUT_OFF_WARNED = 0.01;  // share of the tokens

void tarn_labelled_default(tarn_labelled_options *options) { *options = (tarn_labelled_options){.max_tokens = 1024}; }

typedef struct task {
  const tarn_labelled_options *options;
  tarn_labelled_result *result;
  tarn_vocab *vocab;
  tarn__labelled_table table;
  tarn__sentence_pair row;
  tarn__sentence_words words;  // of rows whose words have labels
  tarn__parts_writer *writer;
  tarn__class_names classes;
  // [result->rows]; labels of words: [result->tokens]
  int32_t *labels, *segments;
  float *numbers;
  size_t labels_room, segments_room, numbers_room;
  int64_t joined;  // rows that lost joiners
  char decimal;    // decimal mark of numeric labels; 0: none seen yet
  tarn__work work;
} task;

static tarn_status check_options(const tarn_labelled_options *o) {
  TARN_REQUIRE(o->vocab, USAGE, "a vocabulary is needed");
  TARN_REQUIRE(o->table && o->label && o->text, USAGE, "a table with a column of labels and one of texts is needed");
  TARN_REQUIRE(o->output, USAGE, "an output prefix is needed");
  TARN_REQUIRE(!o->delimiter || strchr(",;\t|", o->delimiter), USAGE,
               "the fields of a table with texts are divided by a comma, a semicolon, a tab or a bar, not by \"%c\"",
               o->delimiter);
  TARN_REQUIRE(!o->decimal || strchr(".,", o->decimal), USAGE, "the decimal mark is a point or a comma, not \"%c\"",
               o->decimal);
  TARN_REQUIRE(!o->decimal || o->numbers, USAGE, "a decimal mark is of labels that are numbers");
  TARN_REQUIRE(!o->numbers || !o->labels_from, USAGE, "numbers have no classes that could come from another set");
  TARN_REQUIRE(!o->per_word || !(o->numbers || o->pair), USAGE,
               "labels of words are classes, and their rows have one text");
  TARN_REQUIRE(o->max_tokens >= 4 && o->max_tokens <= TARN__SHARD_LONGEST, USAGE,
               "the longest row has 4 to %d tokens, not %lld", TARN__SHARD_LONGEST, (long long)o->max_tokens);
  TARN_REQUIRE((int)o->overlong >= 0 && o->overlong <= TARN_PREPARE_OVERLONG_REFUSE, USAGE,
               "there is no rule %d for rows that are too long", (int)o->overlong);
  return TARN_STATUS_OK;
}

// Copies the classes of the training set.
static tarn_status take_classes(task *t, const tarn__shard *shard) {
  const char *path = t->options->labels_from;
  TARN_REQUIRE(shard->classes > 0, DATA, "%s: its sentences have no classes%s", shard->path,
               shard->numbers ? " but numbers" : "");
  TARN_REQUIRE(strcmp(shard->target_vocab_hash, tarn_vocab_hash(t->vocab)) == 0, DATA,
               "%s: it was made with another vocabulary than %s", path, t->options->vocab);
  for (int32_t c = 0; c < shard->classes; c++)
    TARN_TRY(tarn__class_names_add(&t->classes, shard->names[c], strlen(shard->names[c])));
  return tarn__shard_unchanged(shard);
}

static tarn_status open_all(task *t) {
  const tarn_labelled_options *o = t->options;
  const tarn__labelled_columns columns = {o->label, o->text, o->pair, o->header, o->delimiter};
  TARN_TRY(tarn_vocab_open(&t->vocab, o->vocab));
  TARN_TRY(tarn__labelled_table_open(&t->table, o->table, &columns, o->strict));
  if (o->labels_from) {
    tarn__shard shard;
    TARN_TRY(tarn__shard_open(&shard, o->labels_from));
    tarn_status status = take_classes(t, &shard);
    tarn__shard_close(&shard);
    TARN_TRY(status);
  }
  // One shard of any size; the parts of an older set are removed.
  return tarn__parts_writer_open(&t->writer, o->output, NULL, t->vocab, TARN__SET_SENTENCES, INT64_MAX);
}

static tarn_status fail_class(const task *t, const char *label, int length) {
  const tarn__labelled_table *table = &t->table;
  const long long line = (long long)table->lines.number;
  char word[TARN__SHARD_NAME_LONGEST + 1];
  snprintf(word, sizeof word, "%.*s", length, label);
  const char *nearest =
      tarn_text_nearest(word, (const char *const *)(const void *)t->classes.names, (size_t)t->classes.count);
  if (nearest)
    return tarn__fail(TARN_STATUS_DATA, "%s:%lld: \"%s\" is none of the %d classes of %s; the nearest is \"%s\"",
                      table->lines.path, line, word, t->classes.count, t->options->labels_from, nearest);
  return tarn__fail(TARN_STATUS_DATA, "%s:%lld: \"%s\" is none of the %d classes of %s, such as \"%s\"",
                    table->lines.path, line, word, t->classes.count, t->options->labels_from, t->classes.names[0]);
}

// The number of a label among the classes, in order of appearance.
static tarn_status find_class(task *t, int32_t *number, const tarn__piece *label) {
  *number = tarn__class_names_find(&t->classes, label->text, label->length);
  if (*number >= 0) return TARN_STATUS_OK;
  if (t->options->labels_from) return fail_class(t, label->text, (int)label->length);
  *number = t->classes.count;
  const tarn_status status = tarn__class_names_add(&t->classes, label->text, label->length);
  if (status == TARN_STATUS_OK) return status;
  return tarn__fail_prefix(status, "%s:%lld: ", t->table.lines.path, (long long)t->table.lines.number);
}

// The decimal mark of the labels: the given one, or that of the first label that has one. A comma that may separate
// thousands does not count.
static tarn_status find_mark(task *t, const char *word) {
  const bool comma = strchr(word, ',');
  if (t->decimal || (!comma && !strchr(word, '.'))) return TARN_STATUS_OK;
  TARN_REQUIRE(
      !comma || !tarn__decimal_may_be_thousands(word), DATA,
      "%s:%lld: the comma of \"%s\" may be a mark of thousands or a decimal comma; say the latter with --decimal "
      "comma",
      t->table.lines.path, (long long)t->table.lines.number, word);
  t->decimal = comma ? ',' : '.';
  return TARN_STATUS_OK;
}

// strtod() also reads hexadecimal numbers, infinities and NaN, so the characters are checked first.
static tarn_status read_number(task *t, float *number) {
  const tarn__piece *label = &t->table.label;
  char word[64];
  double value = 0;
  snprintf(word, sizeof word, "%.*s", (int)label->length, label->text);
  const bool plain = strlen(word) == label->length && strspn(word, "0123456789+-.,eE") == label->length;
  if (plain) TARN_TRY(find_mark(t, word));
  const bool whole = plain && tarn__decimal_read(&value, word, t->decimal ? t->decimal : '.');
  *number = (float)value;
  TARN_REQUIRE(whole && isfinite(*number), DATA, "%s:%lld: \"%s\" is not a number%s%s", t->table.lines.path,
               (long long)t->table.lines.number, word, plain && strpbrk(word, ".,") ? " with a decimal " : "",
               !plain || !strpbrk(word, ".,") ? ""
               : t->decimal == ','            ? "comma (--decimal)"
                                              : "point (--decimal)");
  return TARN_STATUS_OK;
}

static tarn_status put_label(task *t) {
  const size_t row = (size_t)t->result->rows;
  if (t->options->numbers) {
    TARN_TRY(tarn__grow(&t->numbers, &t->numbers_room, row + 1, sizeof *t->numbers));
    TARN_TRY(read_number(t, &t->numbers[row]));
    if (row == 0 || t->numbers[row] < t->result->least) t->result->least = t->numbers[row];
    if (row == 0 || t->numbers[row] > t->result->greatest) t->result->greatest = t->numbers[row];
    return TARN_STATUS_OK;
  }
  TARN_TRY(tarn__grow(&t->labels, &t->labels_room, row + 1, sizeof *t->labels));
  return find_class(t, &t->labels[row], &t->table.label);
}

// A row as it is written.
typedef struct made {
  const int32_t *ids;
  int64_t length, second, cut_off;
} made;

// The labels of the words of the row, at their first tokens.
static tarn_status put_word_labels(task *t) {
  const tarn__sentence_words *row = &t->words;
  const size_t before = (size_t)t->result->tokens, all = before + (size_t)row->length;
  const char *at = t->table.label.text, *end = at + t->table.label.length;
  TARN_TRY(tarn__grow(&t->labels, &t->labels_room, all, sizeof *t->labels));
  for (size_t i = before; i < all; i++) t->labels[i] = -1;
  for (int64_t w = 0; w < row->whole; w++) {
    const tarn__piece label = tarn__next_word(&at, end);
    TARN_TRY(find_class(t, &t->labels[before + (size_t)row->first[w]], &label));
  }
  t->result->words += row->whole;
  return TARN_STATUS_OK;
}

static tarn_status make_words(task *t, made *row) {
  const tarn__labelled_table *table = &t->table;
  const char *at = table->label.text, *end = at + table->label.length;
  const long long line = (long long)table->lines.number;
  long long labels = 0;
  while (tarn__next_word(&at, end).length > 0) labels++;
  TARN_TRY(tarn__sentence_words_make(&t->words, t->vocab, &table->text, t->options->max_tokens));
  TARN_REQUIRE(t->words.words == labels, DATA, "%s:%lld: %lld words, but %lld labels", table->lines.path, line,
               (long long)t->words.words, labels);
  TARN_REQUIRE(!t->words.empty, DATA, "%s:%lld: word %lld gives no token", table->lines.path, line,
               (long long)t->words.empty);
  TARN_REQUIRE(t->words.whole > 0, DATA, "%s:%lld: its first word has more than %lld tokens", table->lines.path, line,
               (long long)t->options->max_tokens - 1);
  *row = (made){t->words.ids, t->words.length, t->words.length, t->words.cut_off};
  return TARN_STATUS_OK;
}

static tarn_status make_row(task *t, made *row) {
  const tarn__labelled_table *table = &t->table;
  if (t->options->per_word) return make_words(t, row);
  TARN_TRY(tarn__sentence_pair_make(&t->row, t->vocab, &table->text, &table->pair, t->options->max_tokens));
  TARN_REQUIRE(!t->row.empty, DATA, "%s:%lld: a sentence that gives no token", table->lines.path,
               (long long)table->lines.number);
  *row = (made){t->row.ids, t->row.length, t->row.second, t->row.cut_off};
  return TARN_STATUS_OK;
}

static tarn_status put_row(task *t, const made *row) {
  tarn_labelled_result *r = t->result;
  const int32_t unknown = tarn_vocab_unk(t->vocab);
  const tarn__piece *text = &t->table.text, *pair = &t->table.pair;
  TARN_TRY(t->options->per_word ? put_word_labels(t) : put_label(t));
  t->joined += tarn__joiners_lost(t->vocab, text->text, text->length) ||
               (pair->text && tarn__joiners_lost(t->vocab, pair->text, pair->length));
  TARN_TRY(tarn__grow(&t->segments, &t->segments_room, (size_t)r->rows + 1, sizeof *t->segments));
  t->segments[r->rows++] = (int32_t)row->second;
  r->tokens += row->length;
  r->truncated += row->cut_off > 0;
  r->left_out += row->cut_off;
  if (row->length > r->longest) r->longest = row->length;
  for (int64_t i = 0; i < row->length; i++) r->unknown += row->ids[i] == unknown;
  return tarn__parts_writer_put(t->writer, NULL, 0, row->ids, row->length - 1);
}

static tarn_status add_row(task *t) {
  const tarn_labelled_options *o = t->options;
  const tarn__labelled_table *table = &t->table;
  const long long line = (long long)table->lines.number;
  made row = {0};
  TARN_TRY(make_row(t, &row));
  t->result->lines++;
  TARN_REQUIRE(row.cut_off == 0 || o->overlong != TARN_PREPARE_OVERLONG_REFUSE, DATA,
               "%s:%lld: %lld tokens with all ends of sentences, but at most %lld are allowed", table->lines.path, line,
               (long long)(row.length + row.cut_off), (long long)o->max_tokens);
  if (row.cut_off > 0 && o->overlong == TARN_PREPARE_OVERLONG_DROP) {
    t->result->dropped++;
    t->result->left_out += row.length + row.cut_off;
    return TARN_STATUS_OK;
  }
  return put_row(t, &row);
}

// Numbers the classes by their names, also in the labels of the rows, and counts the most frequent one.
static tarn_status number_classes(task *t) {
  tarn_labelled_result *r = t->result;
  void *memory;
  const size_t count = (size_t)t->classes.count;
  TARN_REQUIRE(count >= 2, DATA, "%s: all %lld labels are \"%s\", but there must be two classes at least",
               t->table.lines.path, (long long)(t->options->per_word ? r->words : r->rows), t->classes.names[0]);
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, count, sizeof(int32_t) + sizeof(int64_t)));
  int64_t *of_class = memory;
  int32_t *rank = (int32_t *)(void *)(of_class + count);
  tarn_status status = tarn__class_names_sort(&t->classes, rank);
  const int64_t places = t->options->per_word ? r->tokens : r->rows;
  for (int64_t i = 0; i < places && status == TARN_STATUS_OK; i++) {
    if (t->labels[i] < 0) continue;
    t->labels[i] = rank[t->labels[i]];
    if (++of_class[t->labels[i]] > r->most) r->most = of_class[t->labels[i]];
  }
  r->classes = t->classes.count;
  tarn__free(memory);
  return status;
}

static void warn(const task *t) {
  const tarn_labelled_result *r = t->result;
  const char *path = t->table.lines.path;
  if ((double)r->unknown > TARN_VOCAB_UNKNOWN_WARNED * (double)r->tokens)
    tarn__log(TARN_LOG_WARNING,
              "%s: %.1f %% of its tokens are unknown to %s; is that vocabulary of its language, and large enough?",
              path, 100.0 * (double)r->unknown / (double)r->tokens, t->options->vocab);
  tarn__joiners_warn(path, t->vocab, t->options->vocab, t->joined, r->rows);
  if ((double)r->left_out > CUT_OFF_WARNED * (double)(r->tokens + r->left_out))
    tarn__log(TARN_LOG_WARNING, "%s: %.1f %% of its tokens were cut off, because rows are longer than %lld tokens",
              path, 100.0 * (double)r->left_out / (double)(r->tokens + r->left_out), (long long)t->options->max_tokens);
}

static tarn_status run(task *t) {
  TARN_TRY(open_all(t));
  for (;;) {
    TARN_TRY(tarn__labelled_table_next(&t->table));
    if (t->table.ended) break;
    TARN_TRY(add_row(t));
    tarn__work_at(&t->work, (double)t->result->lines, tarn__lines_share(&t->table.lines));
  }
  tarn_labelled_result *r = t->result;
  r->replaced = t->table.lines.replaced;
  TARN_REQUIRE(r->rows > 0, DATA, "%s: no row is left of %lld (%lld overlong)", t->table.lines.path,
               (long long)r->lines, (long long)r->dropped);
  if (!t->options->numbers) TARN_TRY(number_classes(t));
  const tarn__shard_labels labels = {.names = (const char *const *)(const void *)t->classes.names,
                                     .classes = t->classes.count,
                                     .labels = t->options->per_word ? NULL : t->labels,
                                     .word_labels = t->options->per_word ? t->labels : NULL,
                                     .numbers = t->numbers,
                                     .segments = t->options->pair ? t->segments : NULL};
  tarn__parts_writer_label(t->writer, &labels);
  TARN_TRY(tarn__parts_writer_commit(&t->writer));
  warn(t);
  return TARN_STATUS_OK;
}

tarn_status tarn_labelled_prepare(tarn_labelled_result *result, const tarn_labelled_options *options) {
  *result = (tarn_labelled_result){0};
  TARN_TRY(check_options(options));
  task t = {.options = options, .result = result, .decimal = options->decimal};
  tarn__work_begin(&t.work, "preparing", "rows");
  tarn_status status = run(&t);
  tarn__work_end(&t.work);
  tarn__parts_writer_abort(&t.writer);
  tarn__labelled_table_close(&t.table);
  tarn__sentence_pair_close(&t.row);
  tarn__sentence_words_close(&t.words);
  tarn__class_names_close(&t.classes);
  tarn__free(t.labels);
  tarn__free(t.segments);
  tarn__free(t.numbers);
  tarn_vocab_close(&t.vocab);
  return status;
}
