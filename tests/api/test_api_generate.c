// Generation of text by language models: tarn/lm.h.
#include <math.h>

#include "api_models.h"
#include "tarn/checkpoint.h"
#include "tarn/lm.h"

static const char *const prompts[] = {"w3 w4 w5", ""};
static const size_t lengths[] = {8, 0};
static const char *const long_prompt = "w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3";

static int open_all(void **state) {
  if (tiny_open(state) != 0) return -1;
  api_language("run");
  api_translation("pairs_run");
  api_no_models("run");
  api_texts();
  return 0;
}

static tarn_generator_options short_texts(void) {
  tarn_generator_options options;
  tarn_generator_default(&options);
  options.threads = 1;
  options.max_tokens = 4;
  return options;
}

static tarn_generator *opened_with(tarn_generator_options options) {
  tarn_generator *generator;
  works(tarn_generator_open(&generator, "run", &options));
  return generator;
}

static tarn_generator *opened_on(int threads) {
  tarn_generator_options options = short_texts();
  options.threads = threads;
  return opened_with(options);
}

static tarn_generator *opened(void) { return opened_on(1); }

static void use_tarn_generator_default(void) {
  tarn_generator_options options;
  tarn_generator_default(&options);
  assert_int_equal(options.method, TARN_GENERATOR_METHOD_GREEDY);
  assert_int_equal(options.max_tokens, 100);
  assert_int_equal(options.number, 1);
  assert_int_equal(options.beam, 5);
  assert_int_equal(options.window, 1000);
  assert_true(options.temperature == 1 && options.top_p == 1 && options.top_k == 0 && options.seed == 1);
}

static void use_tarn_generator_end_word(void) {
  assert_string_equal(tarn_generator_end_word(TARN_GENERATOR_END_EOS), "eos");
  assert_string_equal(tarn_generator_end_word(TARN_GENERATOR_END_MAX_LENGTH), "max_length");
  assert_null(tarn_generator_end_word(TARN_GENERATOR_END_COUNT));
  assert_null(tarn_generator_end_word((tarn_generator_end)-1));
}

// Changes one option for the worse; returns the words of its refusal, NULL when there are no more.
static const char *worsen(tarn_generator_options *o, int which) {
  static const char *const words[] = {"unknown method",
                                      "max-tokens must be from 1",
                                      "min-tokens must be from 0 to the max-tokens of 4, not 5",
                                      "greedy search gives one continuation",
                                      "number must be from 1",
                                      "beam must be from 1 to 1024, not 1025",
                                      "a beam of 2 gives at most",
                                      "length penalty must be",
                                      "temperature must be above 0",
                                      "temperature must be above 0",
                                      "top-k must be",
                                      "top-p must be",
                                      "top-p must be",
                                      "min-p must be from 0 to 1, without 1, not 1",
                                      "typical-p must be above 0 and at most 1, not 0",
                                      "repetition penalty must be above 0 and at most 100, not 0",
                                      "presence penalty must be from -100 to 100, not 101",
                                      "frequency penalty must be from -100 to 100",
                                      "no-repeat-ngram must be from 1 to 1000, or 0, not -1",
                                      "a stop string must have at least one byte",
                                      "a banned text has no token",
                                      "the banned text \"unheard\" has a token that is not in the vocabulary",
                                      "groups must be from 1 to the beam of 1",
                                      "groups must be from 1 to the beam of 4 and divide it, not 3",
                                      "the diversity penalty must be from 0 to 1000, not -1",
                                      "a diversity penalty needs 2 groups",
                                      "min-p and typical-p are for sampling",
                                      "unknown utility",
                                      "minimum Bayes risk chooses among samples",
                                      "temperature, top-k and top-p are for sampling",
                                      "temperature, top-k and top-p are for sampling",
                                      "temperature, top-k and top-p are for sampling"};
  static const char *const nothing[] = {""}, *const unheard[] = {"unheard"};
  tarn_decoding *d = &o->decoding;
  if (which >= (int)(sizeof words / sizeof *words)) return NULL;
  o->method = (which >= 8 && which < 23) || which == 4 ? TARN_GENERATOR_METHOD_SAMPLE
              : which >= 5                             ? TARN_GENERATOR_METHOD_BEAM
                                                       : TARN_GENERATOR_METHOD_GREEDY;
  if (which == 0) o->method = TARN_GENERATOR_METHOD_COUNT;
  if (which == 1) o->max_tokens = 0;
  if (which == 2) o->min_tokens = 5;
  if (which == 3) o->number = 2;
  if (which == 4) o->number = 0;
  if (which == 5) o->beam = 1025;
  if (which == 6) o->beam = 2, o->number = 3;
  if (which == 7) o->length_penalty = NAN;
  if (which == 8) o->temperature = 0;
  if (which == 9) o->temperature = INFINITY;
  if (which == 10) o->top_k = -1;
  if (which == 11) o->top_p = 0;
  if (which == 12) o->top_p = NAN;
  if (which == 13) d->min_p = 1;
  if (which == 14) d->typical_p = 0;
  if (which == 15) d->repetition_penalty = 0;
  if (which == 16) d->presence_penalty = 101;
  if (which == 17) d->frequency_penalty = NAN;
  if (which == 18) d->no_repeat_ngram = -1;
  if (which == 19) o->stop = nothing, o->stop_count = 1;
  if (which == 20) d->banned = nothing, d->banned_count = 1;
  if (which == 21) d->banned = unheard, d->banned_count = 1;
  if (which == 22) d->groups = 2;
  if (which == 23) o->beam = 4, d->groups = 3;
  if (which == 24) o->beam = 4, d->groups = 2, d->diversity_penalty = -1;
  if (which == 25) d->diversity_penalty = 1;
  if (which == 26) d->min_p = 0.5;
  if (which == 27) d->mbr = TARN_MBR_COUNT;
  if (which == 28) d->mbr = TARN_MBR_BLEU;
  if (which == 29) o->temperature = 0.5;
  if (which == 30) o->top_k = 3;
  if (which == 31) o->top_p = 0.5;
  return words[which];
}

static void refuses_options(tarn_generator_options options, const char *words) {
  tarn_generator *generator;
  refuses(tarn_generator_open(&generator, "run", &options), TARN_STATUS_USAGE, words);
  assert_null(generator);
}

static void use_tarn_generator_open(void) {
  tarn_generator *generator = opened();
  tarn_generator_options options = short_texts();
  tarn_generator_close(&generator);
  refuses(tarn_generator_open(&generator, "missing", &options), TARN_STATUS_IO, "missing: ");
  assert_null(generator);
  refuses(tarn_generator_open(&generator, "garbage", &options), TARN_STATUS_DATA, "garbage: ");
  refuses(tarn_generator_open(&generator, "torn", &options), TARN_STATUS_DATA, "torn: ");
  refuses(tarn_generator_open(&generator, "folder", &options), TARN_STATUS_DATA, "folder: ");
  refuses(tarn_generator_open(&generator, "pairs_run", &options), TARN_STATUS_USAGE, "does not continue text");
  assert_null(generator);
  const char *words;
  for (int i = 0; options = short_texts(), (words = worsen(&options, i)); i++) refuses_options(options, words);
  options = short_texts();
  options.window = 0;
  refuses_options(options, "window must be from 1 to 10000000, not 0");
  options = short_texts();
  options.threads = 1025;
  refuses_options(options, "threads must be from 0 to 1024, not 1025");
  options = short_texts();
  options.precision = (tarn_translate_precision)-1;
  refuses_options(options, "unknown precision");
}

static void use_tarn_generator_close(void) {
  tarn_generator *generator = opened();
  tarn_generator_close(&generator);
  assert_null(generator);
  tarn_generator_close(&generator);
}

static void use_tarn_generator_set(void) {
  tarn_generator *generator = opened();
  tarn_generator_result result;
  tarn_generator_options options = short_texts();
  options.method = TARN_GENERATOR_METHOD_SAMPLE, options.number = 3;
  works(tarn_generator_set(generator, &options));
  works(tarn_generator_lines(generator, &result, prompts, lengths, 1));
  assert_int_equal(result.count, 3);
  const char *words;
  for (int i = 0; options = short_texts(), (words = worsen(&options, i)); i++)
    refuses(tarn_generator_set(generator, &options), TARN_STATUS_USAGE, words);
  works(tarn_generator_lines(generator, &result, prompts, lengths, 1));
  assert_int_equal(result.count, 3);
  tarn_generator_close(&generator);
}

static void use_tarn_generator_path(void) {
  tarn_generator *generator = opened();
  assert_non_null(strstr(tarn_generator_path(generator), "run/checkpoint"));
  tarn_generator_close(&generator);
}

static void use_tarn_generator_piece(void) {
  tarn_generator *generator = opened();
  assert_string_equal(tarn_generator_piece(generator, 7), "w7");
  assert_string_equal(tarn_generator_piece(generator, -1), "");
  assert_string_equal(tarn_generator_piece(generator, TINY_VOCAB), "");
  tarn_generator_close(&generator);
}

static void use_tarn_generator_lines(void) {
  tarn_generator_options options = short_texts();
  options.strict = true;
  tarn_generator *generator = opened_with(options);
  tarn_generator_result results[2];
  works(tarn_generator_lines(generator, results, prompts, lengths, 2));
  const tarn_generator_text *text = &results[0].texts[0];
  assert_int_equal(results[0].prompt_tokens, 3);
  assert_int_equal(strncmp(text->text, "w3 w4 w5", 8), 0);
  assert_in_range(text->tokens, 1, 4);
  assert_int_equal(results[1].prompt_tokens, 0);
  works(tarn_generator_lines(generator, results, NULL, NULL, 0));
  refuses(tarn_generator_lines(generator, results, &long_prompt, (const size_t[]){strlen(long_prompt)}, 1),
          TARN_STATUS_DATA, "prompt 1: 24 tokens");
  const char *const bad[] = {"w3 \xFF", "w3 unheard"};
  refuses(tarn_generator_lines(generator, results, bad, (const size_t[]){4}, 1), TARN_STATUS_DATA,
          "prompt 1: invalid UTF-8 at byte 4");
  refuses(tarn_generator_lines(generator, results, bad + 1, (const size_t[]){10}, 1), TARN_STATUS_DATA,
          "1 of its 2 tokens are not in the vocabulary");
  tarn_generator_close(&generator);
}

static tarn_status count_to(void *user, const tarn_generator_result *result) {
  int64_t *left = user;
  assert_true(result->number >= 1 && result->count == 1);
  return --*left == 0 ? TARN_STATUS_INTERRUPTED : TARN_STATUS_OK;
}

static void use_tarn_generator_file(void) {
  tarn_generator_options options = short_texts();
  options.strict = true;
  tarn_generator *generator = opened_with(options);
  int64_t left = 10;
  works(tarn_generator_file(generator, "lines", count_to, &left));
  assert_int_equal(left, 7);
  left = 2;
  assert_int_equal(tarn_generator_file(generator, "lines", count_to, &left), TARN_STATUS_INTERRUPTED);
  left = 10;
  refuses(tarn_generator_file(generator, "missing", count_to, &left), TARN_STATUS_IO, "missing: ");
  refuses(tarn_generator_file(generator, "folder", count_to, &left), TARN_STATUS_IO, "folder: ");
  refuses(tarn_generator_file(generator, "zero", count_to, &left), TARN_STATUS_DATA, "zero:2: ");
  refuses(tarn_generator_file(generator, "invalid", count_to, &left), TARN_STATUS_DATA, "invalid: prompt 2: ");
  refuses(tarn_generator_file(generator, "long", count_to, &left), TARN_STATUS_DATA, "long: prompt 1: 24 tokens");
  tarn_generator_close(&generator);
}

static void use_tarn_decoding_default(void) {
  tarn_decoding d;
  tarn_decoding_default(&d);
  assert_true(d.repetition_penalty == 1 && d.presence_penalty == 0 && d.frequency_penalty == 0 && d.min_p == 0);
  assert_true(d.typical_p == 1 && d.no_repeat_ngram == 0 && d.banned_count == 0 && d.groups == 1);
  assert_true(d.diversity_penalty == 0);
}

static void use_tarn_mbr_word(void) {
  assert_string_equal(tarn_mbr_word(TARN_MBR_CHRF), "chrf");
  assert_null(tarn_mbr_word(TARN_MBR_COUNT));
}

static void use_tarn_decoding_same(void) {
  const char *const one[] = {"w3"}, *const other[] = {"w4"};
  char text[] = "w3";
  const char *const copy[] = {text};
  tarn_decoding a, b;
  tarn_decoding_default(&a);
  tarn_decoding_default(&b);
  assert_true(tarn_decoding_same(&a, &b));
  b.min_p = 0.5;
  assert_false(tarn_decoding_same(&a, &b));
  b = a;
  a.banned = one, a.banned_count = 1;
  assert_false(tarn_decoding_same(&a, &b));
  b.banned = copy, b.banned_count = 1;
  assert_true(tarn_decoding_same(&a, &b));
  b.banned = other;
  assert_false(tarn_decoding_same(&a, &b));
}

typedef struct parts {
  char text[200];
  size_t length;
  int left;  // calls until it stops
} parts;

static tarn_status take_part(void *user, const char *text, size_t length) {
  parts *p = user;
  assert_true(length > 0 && strlen(text) == length && p->length + length < sizeof p->text);
  memcpy(p->text + p->length, text, length + 1);
  p->length += length;
  return --p->left == 0 ? TARN_STATUS_INTERRUPTED : TARN_STATUS_OK;
}

// A file whose values stay in it.
static void refuses_changed(void) {
  const tarn_generator_options options = short_texts();
  tarn_generator *generator;
  tarn_generator_result results[2];
  parts p = {.left = 100};
  works(tarn_checkpoint_export_int8("quarter", "run"));
  works(tarn_generator_open(&generator, "quarter", &options));
  works(tarn_generator_lines(generator, results, prompts, lengths, 2));
  works(tarn_generator_stream(generator, results, prompts[0], lengths[0], take_part, &p));
  api_change("quarter");
  refuses(tarn_generator_lines(generator, results, prompts, lengths, 2), TARN_STATUS_IO,
          "quarter: it changed while it was in use");
  refuses(tarn_generator_stream(generator, results, prompts[0], lengths[0], take_part, &p), TARN_STATUS_IO,
          "quarter: it changed while it was in use");
  tarn_generator_close(&generator);
}

static void use_tarn_generator_stream(void) {
  tarn_generator_options options = short_texts();
  options.decoding.no_repeat_ngram = 1, options.min_tokens = 4;
  tarn_generator *generator = opened_with(options);
  tarn_generator_result whole, result;
  works(tarn_generator_lines(generator, &whole, prompts, lengths, 1));
  const char *continuation = whole.texts[0].continuation;
  char expected[200];
  snprintf(expected, sizeof expected, "%s", continuation);
  parts p = {.left = 100};
  works(tarn_generator_stream(generator, &result, prompts[0], lengths[0], take_part, &p));
  assert_string_equal(p.text, expected);
  assert_string_equal(result.texts[0].continuation, expected);
  p = (parts){.left = 2};
  assert_int_equal(tarn_generator_stream(generator, &result, prompts[0], lengths[0], take_part, &p),
                   TARN_STATUS_INTERRUPTED);
  refuses(tarn_generator_stream(generator, &result, long_prompt, strlen(long_prompt), take_part, &p), TARN_STATUS_DATA,
          "24 tokens");
  // What may become a stop string is held back, and an ended text has nothing of it.
  const char *stop[] = {NULL};
  char end[3] = {expected[4], expected[5], 0};
  stop[0] = end;
  options.stop = stop, options.stop_count = 1;
  works(tarn_generator_set(generator, &options));
  end[0] = '?';  // the library has a copy
  p = (parts){.left = 100};
  works(tarn_generator_stream(generator, &result, prompts[0], lengths[0], take_part, &p));
  assert_int_equal(result.texts[0].end, TARN_GENERATOR_END_STOP);
  assert_string_equal(p.text, result.texts[0].continuation);
  assert_true(p.length < strlen(expected) && strncmp(p.text, expected, p.length) == 0);
  options.stop_count = 0, options.method = TARN_GENERATOR_METHOD_BEAM;
  works(tarn_generator_set(generator, &options));
  refuses(tarn_generator_stream(generator, &result, prompts[0], lengths[0], take_part, &p), TARN_STATUS_USAGE,
          "a stream has one continuation");
  tarn_generator_close(&generator);
  refuses_changed();
}

enum { JOINING = 6 };

typedef struct joining {
  tarn_generator *generator;
  const tarn_generator_options *options;
  const char *prompts[JOINING];
  int64_t next, done, heard, late;
  char texts[JOINING][3][200], streamed[JOINING][3][200];
  int64_t counts[JOINING];
  tarn_status statuses[JOINING];
  int stop_at;  // event of the last request at which its client leaves
  bool beams;   // of several requests, which are told nothing before the end
} joining;

static joining *the_joining;  // items are pointers into its prompts

// The likeliest tokens in the place of one: best first, each once, and all of them together have probability 1.
static void check_tops(const int32_t *ids, const float *values, int64_t tops, int32_t chosen, float value) {
  double sum = 0.0;
  bool found = false;
  for (int64_t i = 0; i < tops && ids[i] >= 0; i++) {
    assert_true(i == 0 || values[i] <= values[i - 1]);
    sum += exp((double)values[i]);
    if (ids[i] == chosen) assert_true(fabs((double)(values[i] - value)) < 1e-5);
    found |= ids[i] == chosen;
    for (int64_t k = 0; k < i; k++) assert_int_not_equal(ids[i], ids[k]);
  }
  assert_true(sum < 1.0 + 1e-5);
  if (tops < TINY_VOCAB) return;
  assert_true(found && sum > 1.0 - 1e-5 && (tops == TINY_VOCAB || ids[TINY_VOCAB] == -1));
}

static int64_t tops_of(ptrdiff_t request) { return the_joining->beams ? 0 : request == 3 ? 100 : request; }

static tarn_status hear(void *item, const tarn_generator_event *event) {
  joining *j = the_joining;
  const ptrdiff_t i = (const char **)item - j->prompts;
  char *to = j->streamed[i][event->sample];
  assert_true(strlen(to) + event->length < 200 && strlen(event->text) == event->length);
  assert_true(event->log_probability <= 0);
  const bool beam = j->options[i].method == TARN_GENERATOR_METHOD_BEAM;
  assert_true(beam ? event->id == -1 && event->length == 0 && !event->last : event->id >= 0);
  if (event->last) assert_true((unsigned)event->end < TARN_GENERATOR_END_COUNT);
  assert_int_equal(event->tops, tops_of(i));
  check_tops(event->top_ids, event->top_log_probabilities, event->tops, event->id, event->log_probability);
  strcat(to, event->text);
  j->heard++;
  return i == JOINING - 1 && --j->stop_at == 0 ? TARN_STATUS_INTERRUPTED : TARN_STATUS_OK;
}

// All but the first two come only after some tokens of these.
static bool give(void *user, tarn_generator_request *request) {
  joining *j = user;
  if (j->next == JOINING || (j->next == 2 && j->heard < 2 && j->done == 0)) return false;
  const int64_t i = j->next++;
  j->late += j->heard > 0;
  *request =
      (tarn_generator_request){j->prompts[i], strlen(j->prompts[i]), &j->options[i], hear, &j->prompts[i], tops_of(i)};
  return true;
}

static void take_done(void *user, void *item, tarn_status status, const tarn_generator_result *result) {
  joining *j = user;
  const ptrdiff_t i = (const char **)item - j->prompts;
  assert_true((status == TARN_STATUS_OK) == (result != NULL));
  j->done++;
  j->statuses[i] = status;
  j->counts[i] = result ? result->count : 0;
  for (int64_t s = 0; result && s < result->count; s++) {
    const tarn_generator_text *t = &result->texts[s];
    snprintf(j->texts[i][s], sizeof j->texts[i][s], "%s", t->continuation);
    assert_int_equal(t->tops, tops_of(i));
    for (int64_t k = 0; t->tops > 0 && k < t->tokens; k++)
      check_tops(t->top_ids + k * t->tops, t->top_log_probabilities + k * t->tops, t->tops, t->ids[k],
                 t->log_probabilities[k]);
  }
}

// Beams of several widths join each other, and take turns with what is drawn.
static void serves_beams(int threads) {
  tarn_generator_options options[JOINING];
  for (int i = 0; i < JOINING; i++) {
    options[i] = short_texts();
    options[i].max_tokens = 6 + i;
    options[i].method = i == 3 ? TARN_GENERATOR_METHOD_SAMPLE : TARN_GENERATOR_METHOD_BEAM;
    options[i].beam = 2 + i;
  }
  options[0].number = options[5].number = 2;
  options[1].decoding.no_repeat_ngram = 2, options[1].number = 3, options[1].length_penalty = -1;
  options[2].decoding.groups = 2, options[2].decoding.diversity_penalty = 0.5;
  static joining j;
  j = (joining){.options = options, .prompts = {"w3 w4 w5", "w3", "", "w7 w8", "w3", "w5"}, .beams = true};
  the_joining = &j;
  tarn_generator *generator = opened_on(threads);
  const tarn_generator_source source = {give, take_done, &j};
  works(tarn_generator_serve(generator, &source));
  assert_int_equal(j.done, JOINING);
  assert_true(threads > 1 || j.late >= 4);
  for (int i = 0; i < JOINING; i++) {
    tarn_generator_result alone;
    works(tarn_generator_set(generator, &options[i]));
    works(tarn_generator_lines(generator, &alone, &j.prompts[i], (const size_t[]){strlen(j.prompts[i])}, 1));
    assert_int_equal(j.counts[i], alone.count);
    for (int64_t s = 0; s < alone.count; s++) assert_string_equal(j.texts[i][s], alone.texts[s].continuation);
  }
  tarn_generator_close(&generator);
}

// Requests with options of their own, some of which join the others late, get what they get alone; with
// several threads these divide them.
static void serves_joining(int threads) {
  tarn_generator_options options[JOINING];
  static const char *const stop[] = {"w1"};
  for (int i = 0; i < JOINING; i++) {
    options[i] = short_texts();
    options[i].max_tokens = options[i].min_tokens = 6 + i;
  }
  options[1].method = TARN_GENERATOR_METHOD_SAMPLE, options[1].number = 3, options[1].seed = 9, options[1].top_k = 5;
  options[2].decoding.no_repeat_ngram = 1, options[2].stop = stop, options[2].stop_count = 1;
  options[3].method = TARN_GENERATOR_METHOD_SAMPLE, options[3].temperature = 1.5, options[3].decoding.typical_p = 0.8;
  options[4].method = TARN_GENERATOR_METHOD_BEAM;
  joining j = {.options = options, .prompts = {"w3 w4 w5", "w3", "", "w7 w8", "w3", "w5"}, .stop_at = 3};
  the_joining = &j;
  tarn_generator *generator = opened_on(threads);
  const tarn_generator_source source = {give, take_done, &j};
  works(tarn_generator_serve(generator, &source));
  assert_int_equal(j.done, JOINING);
  assert_true(threads > 1 || j.late >= 4);
  for (int i = 0; i < 4; i++) {
    tarn_generator_result alone;
    works(tarn_generator_set(generator, &options[i]));
    works(tarn_generator_lines(generator, &alone, &j.prompts[i], (const size_t[]){strlen(j.prompts[i])}, 1));
    assert_int_equal(j.counts[i], alone.count);
    for (int64_t s = 0; s < alone.count; s++) {
      assert_string_equal(j.texts[i][s], alone.texts[s].continuation);
      assert_string_equal(j.streamed[i][s], alone.texts[s].continuation);
    }
  }
  assert_int_equal(j.statuses[4], TARN_STATUS_USAGE);
  assert_int_equal(j.statuses[5], TARN_STATUS_INTERRUPTED);
  // Too long a prompt fails alone as well.
  j = (joining){.options = options, .next = JOINING - 2, .heard = 1, .stop_at = 100};
  options[4].method = TARN_GENERATOR_METHOD_GREEDY;
  j.prompts[4] = long_prompt;
  j.prompts[5] = "w3";
  works(tarn_generator_serve(generator, &source));
  assert_int_equal(j.statuses[4], TARN_STATUS_DATA);
  assert_int_equal(j.counts[5], 1);
  const tarn_generator_source nothing = {0};
  refuses(tarn_generator_serve(generator, &nothing), TARN_STATUS_USAGE, "a source needs the functions");
  tarn_generator_close(&generator);
}

static void use_tarn_generator_serve(void) {
  for (int threads = 1; threads <= 3; threads += 2) {
    serves_joining(threads);
    serves_beams(threads);
  }
}

static void use_tarn_generator_get_summary(void) {
  tarn_generator *generator = opened();
  tarn_generator_result results[2];
  tarn_generator_summary summary;
  tarn_generator_get_summary(generator, &summary);
  assert_int_equal(summary.prompts, 0);
  works(tarn_generator_lines(generator, results, prompts, lengths, 2));
  tarn_generator_get_summary(generator, &summary);
  assert_int_equal(summary.prompts, 2);
  assert_int_equal(summary.prompt_tokens, 3);
  assert_true(summary.tokens >= 2);
  tarn_generator_close(&generator);
}

int main(void) {
  static const char *const headers[] = {"lm.h", "decoding.h", NULL};
  static const api_use uses[] = {
      USE(tarn_generator_default),     USE(tarn_generator_end_word), USE(tarn_generator_open),
      USE(tarn_generator_close),       USE(tarn_generator_set),      USE(tarn_generator_path),
      USE(tarn_generator_piece),       USE(tarn_generator_lines),    USE(tarn_generator_file),
      USE(tarn_generator_get_summary), USE(tarn_generator_stream),   USE(tarn_generator_serve),
      USE(tarn_decoding_default),      USE(tarn_decoding_same),      USE(tarn_mbr_word)};
  return api_main(headers, uses, sizeof uses / sizeof *uses, open_all, sandbox_close);
}
