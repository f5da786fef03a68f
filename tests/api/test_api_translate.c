// Translation of text, and distillation: tarn/translate.h, tarn/distill.h.
#include <math.h>
#include <omp.h>
#include <pthread.h>

#include "api_models.h"
#include "tarn/distill.h"
#include "tarn/translate.h"

static const char *const lines[] = {"w3 w4 w5", "", "w10 w11 unheard"};
static const size_t lengths[] = {8, 0, 15};
static const char *const long_line = "w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3";

static int open_all(void **state) {
  if (tiny_open(state) != 0) return -1;
  api_translation("run");
  api_language("text_run");
  api_no_models("run");
  api_texts();
  return 0;
}

static tarn_translator_options one_thread(void) {
  tarn_translator_options options;
  tarn_translator_default(&options);
  options.threads = 1;
  return options;
}

static tarn_translator *opened_with(tarn_translator_options options) {
  tarn_translator *translator;
  works(tarn_translator_open(&translator, "run", &options));
  return translator;
}

static tarn_translator *opened(void) { return opened_with(one_thread()); }

static void use_tarn_translate_precision_name(void) {
  assert_string_equal(tarn_translate_precision_name(TARN_TRANSLATE_PRECISION_FP32), "fp32");
  assert_string_equal(tarn_translate_precision_name(TARN_TRANSLATE_PRECISION_AUTO), "auto");
  assert_null(tarn_translate_precision_name(TARN_TRANSLATE_PRECISION_COUNT));
  assert_null(tarn_translate_precision_name((tarn_translate_precision)-1));
}

static void use_tarn_translator_default(void) {
  tarn_translator_options options;
  tarn_translator_default(&options);
  assert_int_equal(options.beam, 0);
  assert_int_equal(options.n_best, 1);
  assert_int_equal(options.window, 2000);
  assert_int_equal(options.max_len_b, -1);
  assert_true(isnan(options.length_penalty) && isnan(options.max_len_a));
  assert_int_equal(options.precision, TARN_TRANSLATE_PRECISION_AUTO);
}

// Changes one option for the worse; returns the words of its refusal, NULL when there are no more.
static const char *worsen(tarn_translator_options *o, int which) {
  static const char *const words[] = {
      "beam", "beam", "n-best", "n-best", "length penalty", "greatest length", "greatest length", "max-tokens"};
  if (which >= (int)(sizeof words / sizeof *words)) return NULL;
  if (which == 0) o->beam = 1025;
  if (which == 1) o->beam = -1;
  if (which == 2) o->n_best = 0;
  if (which == 3) o->n_best = 9, o->beam = 2;
  if (which == 4) o->length_penalty = INFINITY;
  if (which == 5) o->max_len_a = -2;
  if (which == 6) o->max_len_b = INT64_MAX;
  if (which == 7) o->max_tokens = -1;
  return words[which];
}

static void refuses_options(tarn_translator_options options, const char *words) {
  tarn_translator *translator;
  refuses(tarn_translator_open(&translator, "run", &options), TARN_STATUS_USAGE, words);
  assert_null(translator);
}

static void use_tarn_translator_open(void) {
  tarn_translator *translator = opened();
  tarn_translator_options options = one_thread();
  tarn_translator_close(&translator);
  REFUSES_NO_MODELS(tarn_translator_open, translator, options);
  refuses(tarn_translator_open(&translator, "text_run", &options), TARN_STATUS_USAGE,
          "text_run: a language model does not translate");
  assert_null(translator);
  const char *words;
  for (int i = 0; options = one_thread(), (words = worsen(&options, i)); i++) refuses_options(options, words);
  options = one_thread();
  options.window = 0;
  refuses_options(options, "window must be from 1 to 10000000, not 0");
  options = one_thread();
  options.threads = -1;
  refuses_options(options, "threads must be from 0 to 1024, not -1");
  options = one_thread();
  options.overlong = (tarn_translate_overlong)7;
  refuses_options(options, "there is no rule 7 for texts that are overlong");
  options = one_thread();
  options.precision = TARN_TRANSLATE_PRECISION_COUNT;
  refuses_options(options, "unknown precision");
}

static void use_tarn_translator_close(void) {
  tarn_translator *translator = opened();
  tarn_translator_close(&translator);
  assert_null(translator);
  tarn_translator_close(&translator);
}

// Texts that translations must contain, and what they attend to.
static void uses_forced_texts(void) {
  const char *words[] = {"w7 w8", "w9", "w9"};
  const char *const columns = "w3 w4\tw6 w7\t\tw5";
  tarn_translator_options options = one_thread();
  options.beam = options.n_best = 3;
  options.force_words = words;
  options.force_words_count = 3;
  options.force_columns = options.alignment = true;
  options.coverage_penalty = 0.5;
  tarn_translator *translator = opened_with(options);
  words[0] = "changed";
  assert_string_equal(tarn_translator_settings(translator)->force_words[0], "w7 w8");
  tarn_translate_result results[3];
  works(tarn_translator_lines(translator, results, &columns, (const size_t[]){strlen(columns)}, 1));
  assert_int_equal(results[0].source_tokens, 3);
  for (int64_t i = 0; i < results[0].count; i++) {
    const tarn_translate_hypothesis *h = &results[0].hypotheses[i];
    assert_non_null(strstr(h->text, "w7 w8"));
    assert_non_null(strstr(h->text, "w6 w7"));
    assert_true(strstr(h->text, "w9") && strstr(h->text, "w5"));
    for (int64_t t = 0; t < h->tokens; t++) {
      double sum = 0.0;
      for (int64_t x = 0; x < 3; x++) sum += (double)h->attention[3 * t + x];
      assert_true(fabs(sum - 1.0) < 1e-5);
    }
    assert_true(h->score < h->log_probability / (double)h->tokens + 1e-6);
  }
  works(tarn_translator_lines(translator, results, lines, lengths, 3));
  assert_null(results[1].hypotheses[0].attention);
  refuses(tarn_translator_lines(translator, results, (const char *const[]){"w3\tunheard"}, (const size_t[]){10}, 1),
          TARN_STATUS_DATA, "line 1: the forced text \"unheard\" has a token that is not in the vocabulary");
  // Other settings, and what they refuse, which changes nothing.
  options = one_thread();
  options.beam = 2;
  options.force_words = (const char *const[]){"unheard"};
  options.force_words_count = 1;
  refuses(tarn_translator_set(translator, &options), TARN_STATUS_USAGE, "the forced text \"unheard\"");
  assert_string_equal(tarn_translator_settings(translator)->force_words[0], "w7 w8");
  works(tarn_translator_lines(translator, results, lines, lengths, 3));
  options.force_words_count = 0;
  options.coverage_penalty = NAN;
  refuses(tarn_translator_set(translator, &options), TARN_STATUS_USAGE,
          "the coverage penalty must be from -100 to 100");
  options.coverage_penalty = 0.0;
  works(tarn_translator_set(translator, &options));
  works(tarn_translator_lines(translator, results, lines, lengths, 3));
  assert_null(results[0].hypotheses[0].attention);
  tarn_translator_close(&translator);
}

static void use_tarn_translator_set(void) {
  tarn_translator *translator = opened();
  tarn_translator_options options = one_thread();
  options.beam = 3;
  works(tarn_translator_set(translator, &options));
  assert_int_equal(tarn_translator_settings(translator)->beam, 3);
  const char *words;
  for (int i = 0; options = one_thread(), (words = worsen(&options, i)); i++) {
    refuses(tarn_translator_set(translator, &options), TARN_STATUS_USAGE, words);
    assert_int_equal(tarn_translator_settings(translator)->beam, 3);
  }
  tarn_translator_close(&translator);
  uses_forced_texts();
}

static void use_tarn_translator_path(void) {
  tarn_translator *translator = opened();
  assert_non_null(strstr(tarn_translator_path(translator), "run/checkpoint"));
  tarn_translator_close(&translator);
}

static void use_tarn_translator_settings(void) {
  tarn_translator *translator = opened();
  const tarn_translator_options *settings = tarn_translator_settings(translator);
  assert_true(settings->beam >= 1 && isfinite(settings->length_penalty) && settings->max_len_b >= 0);
  assert_int_equal(settings->precision, TARN_TRANSLATE_PRECISION_FP32);
  tarn_translator_close(&translator);
}

static void use_tarn_translator_lines(void) {
  tarn_translator_options options = one_thread();
  options.beam = options.n_best = 2;
  tarn_translator *translator = opened_with(options);
  tarn_translate_result results[3];
  works(tarn_translator_lines(translator, results, lines, lengths, 3));
  assert_int_equal(results[0].count, 2);
  assert_int_equal(results[0].source_tokens, 4);
  assert_int_equal(results[1].count, 1);
  assert_string_equal(results[1].hypotheses[0].text, "");
  works(tarn_translator_lines(translator, results, NULL, NULL, 0));
  works(tarn_translator_lines(translator, results, &long_line, (const size_t[]){strlen(long_line)}, 1));
  assert_true(results[0].truncated);
  tarn_translator_close(&translator);
  options.overlong = TARN_TRANSLATE_OVERLONG_REFUSE, options.strict = true;
  translator = opened_with(options);
  refuses(tarn_translator_lines(translator, results, &long_line, (const size_t[]){strlen(long_line)}, 1),
          TARN_STATUS_DATA, "line 1: 25 tokens, and the model takes 20");
  const char *const invalid[] = {"w3", "w4 \xFF"};
  refuses(tarn_translator_lines(translator, results, invalid, (const size_t[]){2, 4}, 2), TARN_STATUS_DATA,
          "line 2: invalid UTF-8");
  works(tarn_translator_lines(translator, results, lines, lengths, 3));
  tarn_translator_close(&translator);
}

static void use_tarn_translator_tokens(void) {
  tarn_translator *translator = opened();
  tarn_translate_result results[3];
  const int32_t *ids;
  const float *log_probabilities;
  assert_int_equal(tarn_translator_tokens(translator, &ids, &log_probabilities, 0, 0), 0);
  works(tarn_translator_lines(translator, results, lines, lengths, 3));
  const int64_t tokens = tarn_translator_tokens(translator, &ids, &log_probabilities, 0, 0);
  assert_int_equal(tokens, results[0].hypotheses[0].tokens);
  assert_true(log_probabilities[0] < 0 && ids[tokens - 1] == 2);
  static const struct {
    size_t line;
    int64_t place;
  } none[] = {{1, 0}, {0, 1}, {0, -1}, {0, INT64_MAX}, {3, 0}, {SIZE_MAX, 0}};
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
    assert_int_equal(tarn_translator_tokens(translator, &ids, &log_probabilities, none[i].line, none[i].place), 0);
    assert_true(!ids && !log_probabilities);
  }
  tarn_translator_close(&translator);
}

// Parts of a translation, and the step at which who reads them leaves.
typedef struct reading {
  char text[400];
  int parts, steps, leaves_at, elsewhere;
} reading;

static tarn_status read_part(void *user, const char *text, size_t length) {
  reading *r = user;
  assert_true(strlen(text) == length && strlen(r->text) + length < sizeof r->text);
  strcat(r->text, text);
  r->parts += length > 0;
  r->elsewhere += omp_get_thread_num() > 0;
  return ++r->steps == r->leaves_at ? TARN_STATUS_INTERRUPTED : TARN_STATUS_OK;
}

// Its parts come on the thread of the call, also with more samples than threads.
static void use_tarn_translator_stream(void) {
  tarn_translator_options several = one_thread();
  several.threads = 3;
  tarn_translator *translator = opened_with(several);
  for (int i = 0; i < 4; i++) {
    tarn_translator_options options = one_thread();
    options.beam = i == 0 ? 1 : 3;
    options.samples = i < 2 ? 0 : i == 2 ? 1 : 4;
    if (i >= 2) options.beam = 0;
    options.prefixes = i == 0;
    works(tarn_translator_set(translator, &options));
    tarn_translate_result result, alone;
    const char *const line = "w3 w4 w5\tw7 w8";
    const size_t length = i == 0 ? 14 : 8;
    reading r = {.leaves_at = -1}, left = {.leaves_at = 2};
    works(tarn_translator_stream(translator, &result, line, length, read_part, &r));
    assert_string_equal(r.text, result.hypotheses[0].text);
    assert_int_equal(r.elsewhere, 0);
    char text[400];
    snprintf(text, sizeof text, "%s", r.text);
    const int64_t tokens = result.hypotheses[0].tokens;
    if (i == 0) assert_int_equal(strncmp(text, "w7 w8", 5), 0);
    if (i == 0 || i == 2) assert_true(r.steps >= tokens && r.parts >= tokens - 1);
    if (i == 1) assert_true(r.parts == 1 && r.steps >= tokens);
    works(tarn_translator_lines(translator, &alone, &line, &length, 1));
    assert_string_equal(alone.hypotheses[0].text, text);
    if (i < 3) {
      refuses(tarn_translator_stream(translator, &result, line, length, read_part, &left), TARN_STATUS_INTERRUPTED, "");
      assert_int_equal(left.steps, 2);
    }
    reading nothing = {.leaves_at = -1};
    works(tarn_translator_stream(translator, &result, "", 0, read_part, &nothing));
    assert_true(nothing.parts == 0 && result.hypotheses[0].length == 0);
  }
  tarn_translator_close(&translator);
}

enum { JOINING = 12, LINES = 4, LEAVES = 11 };

typedef struct joining joining;

// A request: what it gets joined, and in which step its client leaves.
typedef struct joined_line {
  joining *in;
  const char *line;
  tarn_translator_options options;
  tarn_status status;
  int64_t count, tokens[LINES];
  char texts[LINES][200];
  int32_t ids[LINES][40];
  double scores[LINES];
  float attention;
  reading told;
} joined_line;

struct joining {
  tarn_translator *translator;
  joined_line requests[JOINING];
  int next, done, steps, late;
};

static tarn_status hear_line(void *item, const char *text, size_t length) {
  joined_line *r = item;
  r->in->steps++;
  return read_part(&r->told, text, length);
}

// All but the first two come one by one, after some steps of those.
static bool give_line(void *user, tarn_translator_request *request) {
  joining *j = user;
  if (j->next == JOINING || (j->next >= 2 && j->steps < 2 * j->next && j->done < j->next)) return false;
  joined_line *r = &j->requests[j->next++];
  j->late += j->steps > 0 && j->done < j->next - 1;
  *request = (tarn_translator_request){r->line, strlen(r->line), &r->options, j->next, hear_line, r};
  return true;
}

static void keep_result(joined_line *r, tarn_translator *translator, const tarn_translate_result *result) {
  const float *values;
  const int32_t *ids;
  r->count = result->count;
  for (int64_t i = 0; i < result->count; i++) {
    const tarn_translate_hypothesis *h = &result->hypotheses[i];
    snprintf(r->texts[i], sizeof r->texts[i], "%s", h->text);
    r->scores[i] = h->score;
    r->tokens[i] = tarn_translator_tokens(translator, &ids, &values, 0, i);
    assert_int_equal(r->tokens[i], h->tokens);
    for (int64_t k = 0; k < r->tokens[i]; k++) r->ids[i][k] = ids[k];
  }
  r->attention = result->hypotheses[0].attention ? result->hypotheses[0].attention[1] : -1.0F;
  assert_int_equal(tarn_translator_source(translator, &ids, 0), result->source_tokens);
}

static void take_line(void *user, void *item, tarn_status status, const tarn_translate_result *result) {
  joining *j = user;
  joined_line *r = item;
  j->done++;
  r->status = status;
  assert_true((status == TARN_STATUS_OK) == (result != NULL));
  if (r == &j->requests[8]) assert_non_null(strstr(tarn_error_message(), "line 9: the forced text \"w7"));
  if (!result) return;
  assert_int_equal(result->number, r - j->requests + 1);
  keep_result(r, j->translator, result);
}

static void set_requests(joining *j) {
  static const char *const own[JOINING] = {"w3 w4 w5",
                                           "w3 w4 w5",
                                           "w5 w4",
                                           "w7 w8 w3 w9",
                                           "w3 w4\tw7 w8",
                                           "w3 w4\tw6 w7\t\tw5",
                                           "w3 w4 w5",
                                           "w3 w3 w3",
                                           "w3\tw7",
                                           "w3",
                                           "",
                                           "w4 w5 w6 w7 w8 w9 w10"};
  static const char *const banned[] = {"w3"};
  for (int i = 0; i < JOINING; i++) {
    joined_line *r = &j->requests[i];
    *r = (joined_line){.in = j, .line = own[i], .options = one_thread(), .told = {.leaves_at = i == LEAVES ? 2 : -1}};
    r->options.beam = r->options.n_best = 3;
  }
  tarn_translator_options *o[JOINING];
  for (int i = 0; i < JOINING; i++) o[i] = &j->requests[i].options;
  o[1]->beam = o[1]->n_best = 1;
  o[2]->beam = 5, o[2]->n_best = 2, o[2]->length_penalty = -1;
  o[3]->beam = 4, o[3]->decoding.groups = 2, o[3]->decoding.diversity_penalty = 0.5;
  o[4]->prefixes = true, o[4]->max_len_b = 3;
  o[5]->beam = 4, o[5]->force_columns = o[5]->alignment = true, o[5]->coverage_penalty = 0.5;
  o[6]->beam = 0, o[6]->samples = 4, o[6]->seed = 9, o[6]->top_k = 7;
  o[7]->decoding.repetition_penalty = 1.5, o[7]->decoding.banned = banned, o[7]->decoding.banned_count = 1;
  o[8]->force_columns = true, o[8]->max_len_a = 0, o[8]->max_len_b = 0;
  o[9]->n_best = 9;
}

enum { REFUSED = 400 };

typedef struct refusing {
  tarn_translator_options options, good;
  int64_t given, done, wrong;
  pthread_t caller;
  bool divided;
  int elsewhere;  // asked for on another thread than the caller's
} refusing;

static bool give_refused(void *user, tarn_translator_request *request) {
  refusing *r = user;
  r->elsewhere += !pthread_equal(pthread_self(), r->caller);
  if (r->given == REFUSED) return false;
  // More than its decoder has alone; the others must ask for the rest.
  if (r->divided && r->given >= 8 && r->elsewhere == 0) return false;
  const bool good = r->given < 8 || r->given % 8 == 0;
  *request = (tarn_translator_request){"w3\tw7",   5,    good ? &r->good : &r->options,
                                       ++r->given, NULL, good ? &r->good : &r->options};
  return true;
}

static void take_refused(void *user, void *item, tarn_status status, const tarn_translate_result *result) {
  refusing *r = user;
  const bool good = item == &r->good;
  r->done++;
  // A failing assertion must not leave the parallel region.
  r->wrong += status != (good ? TARN_STATUS_OK : TARN_STATUS_DATA) || good != (result != NULL);
}

// Most of more requests than have room at once cannot begin, and each is done all the same.
// Within a parallel region OpenMP gives the call one thread.
static void serves_refused(int threads, bool within) {
  refusing r = {.options = one_thread()};
  r.options.threads = threads;
  r.options.beam = 3;
  r.options.force_columns = true;
  r.good = r.options;
  r.options.max_len_a = 0, r.options.max_len_b = 0;
  r.caller = pthread_self();
  r.divided = threads > 1 && !within;
  tarn_translator *translator = opened_with(r.options);
  const tarn_translator_requests source = {give_refused, take_refused, &r};
  tarn_status status = TARN_STATUS_INTERNAL;
#pragma omp parallel num_threads(2) if (within)
#pragma omp master
  status = tarn_translator_serve(translator, &source);
  works(status);
  assert_int_equal(r.given, REFUSED);
  assert_int_equal(r.done, REFUSED);
  assert_int_equal(r.wrong, 0);
  assert_true((r.elsewhere > 0) == r.divided);
  tarn_translator_close(&translator);
}

// Requests with options of their own, most of which join the others late, get what they get alone; with several threads
// these divide them.
static void serves_joining(int threads) {
  static joining j;
  tarn_translator_options options = one_thread();
  options.threads = threads;
  j = (joining){.translator = opened_with(options)};
  set_requests(&j);
  const tarn_translator_requests source = {give_line, take_line, &j}, nothing = {0};
  works(tarn_translator_serve(j.translator, &source));
  assert_int_equal(j.done, JOINING);
  assert_true(threads > 1 || j.late >= 6);
  for (int i = 0; i < JOINING; i++) {
    const joined_line *r = &j.requests[i];
    static joined_line alone;
    tarn_translate_result result;
    const size_t length = strlen(r->line);
    if (i == 8) assert_int_equal(r->status, TARN_STATUS_DATA);
    if (i == 9) assert_int_equal(r->status, TARN_STATUS_USAGE);
    if (i == LEAVES) assert_true(r->status == TARN_STATUS_INTERRUPTED && r->told.steps == 2);
    if (i == 8 || i == 9 || i == LEAVES) continue;
    assert_int_equal(r->status, TARN_STATUS_OK);
    works(tarn_translator_set(j.translator, &r->options));
    works(tarn_translator_lines(j.translator, &result, &r->line, &length, 1));
    alone = (joined_line){.in = &j};
    keep_result(&alone, j.translator, &result);
    assert_int_equal(r->count, alone.count);
    assert_string_equal(r->told.text, alone.texts[0]);
    assert_true(fabsf(r->attention - alone.attention) < 1e-6F);
    for (int64_t k = 0; k < alone.count; k++) {
      assert_string_equal(r->texts[k], alone.texts[k]);
      assert_memory_equal(r->ids[k], alone.ids[k], sizeof alone.ids[k]);
      assert_true(fabs(r->scores[k] - alone.scores[k]) < 1e-5);
    }
  }
  refuses(tarn_translator_serve(j.translator, &nothing), TARN_STATUS_USAGE, "a source needs the functions");
  tarn_translator_close(&j.translator);
}

static void use_tarn_translator_serve(void) {
  serves_refused(3, true);
  for (int threads = 1; threads <= 3; threads += 2) {
    serves_joining(threads);
    serves_refused(threads, false);
  }
}

static void use_tarn_translator_source(void) {
  tarn_translator *translator = opened();
  tarn_translate_result results[3];
  const int32_t *ids;
  assert_int_equal(tarn_translator_source(translator, &ids, 0), 0);
  works(tarn_translator_lines(translator, results, lines, lengths, 3));
  assert_int_equal(tarn_translator_source(translator, &ids, 0), 4);
  assert_true(ids[0] == 3 && ids[2] == 5 && ids[3] == 2);
  assert_int_equal(tarn_translator_source(translator, &ids, 1), 0);
  assert_null(ids);
  assert_int_equal(tarn_translator_source(translator, &ids, 2), results[2].source_tokens);
  assert_int_equal(ids[0], 10);
  assert_int_equal(tarn_translator_source(translator, &ids, 3), 0);
  assert_int_equal(tarn_translator_source(translator, &ids, SIZE_MAX), 0);
  assert_null(ids);
  tarn_translator_close(&translator);
}

static void use_tarn_translator_source_piece(void) {
  tarn_translator *translator = opened();
  assert_string_equal(tarn_translator_source_piece(translator, 5), "w5");
  assert_string_equal(tarn_translator_source_piece(translator, -1), "");
  assert_string_equal(tarn_translator_source_piece(translator, INT32_MAX), "");
  tarn_translator_close(&translator);
}

static void use_tarn_translator_piece(void) {
  tarn_translator *translator = opened();
  assert_string_equal(tarn_translator_piece(translator, 5), "w5");
  assert_string_equal(tarn_translator_piece(translator, -1), "");
  assert_string_equal(tarn_translator_piece(translator, TINY_VOCAB), "");
  assert_string_equal(tarn_translator_piece(translator, INT32_MAX), "");
  tarn_translator_close(&translator);
}

static tarn_status count_to(void *user, const tarn_translate_result *result) {
  int64_t *left = user;
  assert_true(result->number >= 1 && result->count >= 1);
  return --*left == 0 ? TARN_STATUS_INTERRUPTED : TARN_STATUS_OK;
}

static void use_tarn_translator_file(void) {
  tarn_translator_options options = one_thread();
  options.strict = true;
  options.overlong = TARN_TRANSLATE_OVERLONG_REFUSE;
  tarn_translator *translator = opened_with(options);
  int64_t left = 10;
  works(tarn_translator_file(translator, "lines", count_to, &left));
  assert_int_equal(left, 7);
  left = 1;
  assert_int_equal(tarn_translator_file(translator, "lines", count_to, &left), TARN_STATUS_INTERRUPTED);
  left = 10;
  refuses(tarn_translator_file(translator, "missing", count_to, &left), TARN_STATUS_IO, "missing: ");
  refuses(tarn_translator_file(translator, "folder", count_to, &left), TARN_STATUS_IO, "folder: ");
  refuses(tarn_translator_file(translator, "zero", count_to, &left), TARN_STATUS_DATA, "zero:2: ");
  refuses(tarn_translator_file(translator, "invalid", count_to, &left), TARN_STATUS_DATA, "invalid");
  refuses(tarn_translator_file(translator, "long", count_to, &left), TARN_STATUS_DATA, "long: line 1: 25 tokens");
  refuses(tarn_translator_file(translator, "torn", count_to, &left), TARN_STATUS_DATA, "torn: ");
  tarn_translator_close(&translator);
}

static void use_tarn_translator_summary(void) {
  tarn_translator *translator = opened();
  tarn_translate_result results[3];
  tarn_translate_summary summary;
  tarn_translator_summary(translator, &summary);
  assert_int_equal(summary.lines, 0);
  works(tarn_translator_lines(translator, results, lines, lengths, 3));
  tarn_translator_summary(translator, &summary);
  assert_int_equal(summary.lines, 3);
  assert_int_equal(summary.empty, 1);
  assert_int_equal(summary.unknown, 1);
  assert_int_equal(summary.source_tokens, 8);
  tarn_translator_close(&translator);
}

static void use_tarn_distill_default(void) {
  tarn_distill_options options;
  tarn_distill_default(&options);
  assert_null(options.teacher);
  assert_null(options.target_vocab);
  assert_int_equal(options.translation.beam, 0);
  assert_int_equal(options.translation.window, 2000);
}

static void use_tarn_distill_run(void) {
  tarn_distill_options options, good;
  tarn_distill_result result;
  sandbox_write("to_translate", "w3 w4 w5\n\nw10 w11\n", 17);
  tarn_distill_default(&good);
  good.teacher = "run";
  good.source = "to_translate";
  good.vocab = "vocab";
  good.output = "distilled";
  good.translation.threads = 1;
  works(tarn_distill_run(&result, &good));
  assert_int_equal(result.found, 0);
  assert_int_equal(result.translation.lines, 3);
  assert_int_equal(result.data.lines, 3);
  assert_true(result.data.pairs >= 1 && result.data.pairs <= 2);  // one source is empty
  works(tarn_distill_run(&result, &good));                        // only prepares
  assert_int_equal(result.found, 3);
  assert_int_equal(result.translation.lines, 0);
  const char **needed[] = {&options.teacher, &options.source, &options.vocab, &options.output};
  for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
    options = good;
    *needed[i] = NULL;
    refuses(tarn_distill_run(&result, &options), TARN_STATUS_USAGE, "distillation needs");
  }
  options = good;
  options.translation.beam = 3;
  refuses(tarn_distill_run(&result, &options), TARN_STATUS_USAGE, "distilled.hyp is not of this teacher");
  options = good;
  options.translation.prune.encoder_layers_to_keep = "1";
  refuses(tarn_distill_run(&result, &options), TARN_STATUS_USAGE, "distilled.hyp is not of this teacher");
  options = good;
  options.output = "other";
  options.teacher = "text_run";
  refuses(tarn_distill_run(&result, &options), TARN_STATUS_USAGE, "does not translate");
  options.teacher = "run";
  options.source = "nowhere";
  refuses(tarn_distill_run(&result, &options), TARN_STATUS_IO, "nowhere");
  options.source = "to_translate";
  options.target_vocab = "nowhere";
  refuses(tarn_distill_run(&result, &options), TARN_STATUS_IO, "nowhere");
}

int main(void) {
  static const char *const headers[] = {"translate.h", "distill.h", NULL};
  static const api_use uses[] = {
      USE(tarn_translate_precision_name), USE(tarn_translator_default), USE(tarn_translator_open),
      USE(tarn_translator_close),         USE(tarn_translator_set),     USE(tarn_translator_path),
      USE(tarn_translator_settings),      USE(tarn_translator_lines),   USE(tarn_translator_tokens),
      USE(tarn_translator_stream),        USE(tarn_translator_serve),   USE(tarn_translator_source),
      USE(tarn_translator_source_piece),  USE(tarn_translator_piece),   USE(tarn_translator_file),
      USE(tarn_translator_summary),       USE(tarn_distill_default),    USE(tarn_distill_run)};
  return api_main(headers, uses, sizeof uses / sizeof *uses, open_all, sandbox_close);
}
