// Tasks of multiple choice: a file of questions, the likelihood of every choice, the share of right answers.
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/work.h"
#include "eval/wilson.h"
#include "score/continuations.h"
#include "score/question.h"
#include "text/lines.h"
#include "text/utf8.h"

enum { MOST_QUESTIONS = 10000000, TOGETHER = 1024 };  // continuations that are scored in one call, or one question's

struct tarn__choices_memory {
  char *answers;
  double *log_probability;
  int32_t *counts;
  size_t answers_capacity, log_probability_capacity, counts_capacity;
};

// The questions at hand: their texts are in `arena`.
typedef struct run {
  tarn_lm *lm;
  const tarn_choices_options *options;
  tarn_choices_result *result;
  struct tarn__choices_memory *memory;
  tarn__lines lines, labels;
  tarn__arena arena;
  tarn__question_reader reader;
  tarn__continuations continuations;
  struct asked {
    tarn__question question;
    int64_t number;  // of its line
  } * asked;
  tarn_continuation *items;
  tarn_continuation_score *scores;
  size_t asked_count, item_count, asked_capacity, items_capacity, scores_capacity;
  double log_probability;  // of all continuations
} run;

void tarn_choices_default(tarn_choices_options *options) { *options = (tarn_choices_options){.bos = true}; }

void tarn_choices_close(tarn_choices_result **result) {
  if (!*result) return;
  struct tarn__choices_memory *memory = (*result)->memory;
  if (memory) {
    tarn__free(memory->answers);
    tarn__free(memory->log_probability);
    tarn__free(memory->counts);
  }
  tarn__free(memory);
  tarn__free(*result);
  *result = NULL;
}

// --- reading

// The answer on the next line of the file of labels.
static tarn_status take_label(run *r, tarn__question *q) {
  const char *line;
  size_t length;
  TARN_TRY(tarn__lines_next(&r->labels, &line, &length));
  TARN_REQUIRE(line, DATA, "%s has no line %lld, for the answer of this question", r->labels.path,
               (long long)r->result->questions + (long long)r->asked_count + 1);
  length = tarn__rstrip(line, length);
  int index = 0;
  for (size_t i = 0; i < length && index <= TARN__MOST_CHOICES; i++)
    index = line[i] >= '0' && line[i] <= '9' ? 10 * index + (line[i] - '0') : TARN__MOST_CHOICES + 1;
  TARN_REQUIRE(length > 0 && index < q->count, DATA, "%s:%lld: expected the index of a choice, from 0 to %d",
               r->labels.path, (long long)r->labels.number, q->count - 1);
  TARN_REQUIRE(q->answer < 0 || q->answer == index, DATA, "%s:%lld: the answer is %d here and %d in the question",
               r->labels.path, (long long)r->labels.number, index, q->answer);
  q->answer = index;
  return TARN_STATUS_OK;
}

static tarn_status add_question(run *r, const char *line, size_t length) {
  TARN_TRY(tarn__grow(&r->asked, &r->asked_capacity, r->asked_count + 1, sizeof *r->asked));
  struct asked *asked = &r->asked[r->asked_count];
  tarn__question *q = &asked->question;
  asked->number = r->lines.number;
  TARN_TRY(tarn__question_read(&r->reader, q, line, length));
  if (r->options->labels) TARN_TRY(take_label(r, q));
  TARN_REQUIRE(q->answer >= 0, DATA, "the question has no answer; a file with the answers can be given as labels");
  TARN_TRY(tarn__grow(&r->items, &r->items_capacity, r->item_count + (size_t)q->count, sizeof *r->items));
  for (int i = 0; i < q->count; i++)
    r->items[r->item_count++] =
        (tarn_continuation){q->context, strlen(q->context), q->choices[i], strlen(q->choices[i])};
  r->asked_count++;
  TARN_REQUIRE(r->result->questions + (int64_t)r->asked_count <= MOST_QUESTIONS, DATA, "more than %d questions",
               MOST_QUESTIONS);
  return TARN_STATUS_OK;
}

// The next questions; none at the end of the file.
static tarn_status read_some(run *r) {
  r->asked_count = r->item_count = 0;
  tarn__arena_reset(&r->arena);
  while (r->item_count < TOGETHER) {
    const char *line;
    size_t length;
    TARN_TRY(tarn__lines_next(&r->lines, &line, &length));
    if (!line) return TARN_STATUS_OK;
    if (strspn(line, " \t") >= length) continue;
    tarn_status status = add_question(r, line, length);
    if (status != TARN_STATUS_OK)
      return tarn__fail_prefix(status, "%s:%lld: ", r->lines.path, (long long)r->lines.number);
  }
  return TARN_STATUS_OK;
}

// --- counting

// Code points of a choice without the space before it.
static double characters(const char *choice) {
  double count = 0;
  const size_t length = strlen(choice);
  for (size_t i = 1; i < length; count++) {
    int32_t c;
    i += tarn__utf8_decode(&c, choice + i, length - i);
  }
  return count;
}

static tarn_status count_question(run *r, const tarn__question *q, const tarn_continuation_score *scores) {
  tarn_choices_result *result = r->result;
  struct tarn__choices_memory *m = r->memory;
  const size_t before = (size_t)result->choices, number = (size_t)result->questions;
  TARN_TRY(tarn__grow(&m->log_probability, &m->log_probability_capacity, before + (size_t)q->count, sizeof(double)));
  TARN_TRY(tarn__grow(&m->counts, &m->counts_capacity, number + 1, sizeof *m->counts));
  TARN_TRY(tarn__grow(&m->answers, &m->answers_capacity, number + 2, 1));
  enum { SUM, NORM, BYTES, WAYS };
  double best[WAYS] = {-INFINITY, -INFINITY, -INFINITY};
  int choice[WAYS] = {0};
  for (int i = 0; i < q->count; i++) {
    const double sum = scores[i].log_probability;
    const double values[WAYS] = {sum, sum / characters(q->choices[i]), sum / (double)(strlen(q->choices[i]) - 1)};
    for (int w = 0; w < WAYS; w++)
      if (values[w] > best[w]) best[w] = values[w], choice[w] = i;
    m->log_probability[before + (size_t)i] = sum;
    r->log_probability += sum;
    result->unknown += scores[i].unknown;
    result->truncated += scores[i].truncated;
  }
  const bool right = q->count == 1 ? scores[0].greedy : choice[SUM] == q->answer;
  result->acc.right += right;
  result->norm.right += q->count > 1 && choice[NORM] == q->answer;
  result->bytes.right += q->count > 1 && choice[BYTES] == q->answer;
  m->answers[number] = right ? '1' : '0';
  m->answers[number + 1] = '\0';
  m->counts[number] = q->count;
  result->choices += q->count;
  result->questions++;
  return TARN_STATUS_OK;
}

static tarn_status score_some(run *r) {
  size_t which;
  TARN_TRY(tarn__grow(&r->scores, &r->scores_capacity, r->item_count, sizeof *r->scores));
  tarn_status status =
      tarn__continuations_run(&r->continuations, r->lm, r->scores, r->items, r->item_count, r->options->bos, &which);
  size_t first = 0;
  for (size_t i = 0; i < r->asked_count; first += (size_t)r->asked[i++].question.count) {
    const tarn__question *q = &r->asked[i].question;
    if (status != TARN_STATUS_OK && which < first + (size_t)q->count)
      return tarn__fail_prefix(status, "%s:%lld: choice %zu: ", r->lines.path, (long long)r->asked[i].number,
                               which - first + 1);
    if (status == TARN_STATUS_OK) status = count_question(r, q, r->scores + first);
  }
  return status;
}

static void finish(tarn_choices_accuracy *a, int64_t questions) {
  a->accuracy = (double)a->right / (double)questions;
  tarn__wilson(&a->low, &a->high, a->right, questions);
}

static tarn_status run_all(run *r, tarn__work *work) {
  tarn_choices_result *result = r->result;
  for (;;) {
    const double share = tarn__lines_share(&r->lines), before = (double)result->questions;
    TARN_TRY(read_some(r));
    if (r->asked_count == 0) break;
    tarn__work_part(work, before, share, before + (double)r->asked_count, tarn__lines_share(&r->lines));
    TARN_TRY(score_some(r));
  }
  TARN_REQUIRE(result->questions > 0, DATA, "%s: it holds no question", r->lines.path);
  if (r->options->labels) {
    const char *line;
    size_t length;
    TARN_TRY(tarn__lines_next(&r->labels, &line, &length));
    TARN_REQUIRE(!line, DATA, "%s has more lines than %s questions, %lld", r->labels.path, r->lines.path,
                 (long long)result->questions);
  }
  result->format = r->reader.format;
  result->replaced = r->lines.replaced;
  result->answers = r->memory->answers;
  result->log_probability = r->memory->log_probability;
  result->counts = r->memory->counts;
  finish(&result->acc, result->questions);
  result->perplexity = NAN;
  if (result->format == TARN_CHOICES_FORMAT_LAMBADA) {
    result->perplexity = exp(-r->log_probability / (double)result->questions);
    return TARN_STATUS_OK;
  }
  finish(&result->norm, result->questions);
  finish(&result->bytes, result->questions);
  return TARN_STATUS_OK;
}

static tarn_status open_files(run *r, const char *path) {
  TARN_REQUIRE((unsigned)r->options->format < TARN_CHOICES_FORMAT_COUNT, USAGE, "there is no format of questions %d",
               (int)r->options->format);
  TARN_TRY(tarn__lines_open(&r->lines, path, tarn__lm_strict(r->lm)));
  return r->options->labels ? tarn__lines_open(&r->labels, r->options->labels, true) : TARN_STATUS_OK;
}

static void close_run(run *r) {
  tarn__lines_close(&r->lines);
  tarn__lines_close(&r->labels);
  tarn__question_reader_close(&r->reader);
  tarn__continuations_close(&r->continuations);
  tarn__arena_close(&r->arena);
  tarn__free(r->asked);
  tarn__free(r->items);
  tarn__free(r->scores);
}

tarn_status tarn_choices_run(tarn_choices_result **out, tarn_lm *lm, const char *path,
                             const tarn_choices_options *options) {
  *out = NULL;
  void *memory;
  if (tarn__lm_helps(lm)) return tarn__scorer_help(tarn__lm_scorer(lm));
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(tarn_choices_result)));
  tarn_choices_result *result = memory;
  tarn_status status = tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof *result->memory);
  if (status == TARN_STATUS_OK) {
    result->memory = memory;
    run r = {.lm = lm, .options = options, .result = result, .memory = memory};
    r.reader = (tarn__question_reader){.format = options->format, .arena = &r.arena};
    tarn__work work;
    tarn__work_begin(&work, "answering", "questions");
    status = open_files(&r, path);
    if (status == TARN_STATUS_OK) status = run_all(&r, &work);
    tarn__work_end(&work);
    close_run(&r);
  }
  if (status == TARN_STATUS_OK) status = tarn__scorer_end(tarn__lm_scorer(lm));
  if (status != TARN_STATUS_OK) tarn_choices_close(&result);
  *out = result;
  return status;
}
