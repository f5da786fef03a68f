// Text generation from text prompts: tokenization, generation of ids, detokenization.
#include <string.h>

#include "base/clock.h"
#include "base/threads.h"
#include "base/work.h"
#include "decode/generate_state.h"
#include "decode/mbr.h"
#include "task/task.h"
#include "text/repair.h"
#include "text/utf8.h"

void tarn_generator_default(tarn_generator_options *options) {
  *options = (tarn_generator_options){.method = TARN_GENERATOR_METHOD_GREEDY,
                                      .max_tokens = 100,
                                      .number = 1,
                                      .beam = 5,
                                      .length_penalty = 1.0,
                                      .temperature = 1.0,
                                      .top_p = 1.0,
                                      .seed = 1,
                                      .window = 1000,
                                      .precision = TARN_TRANSLATE_PRECISION_AUTO};
  tarn_decoding_default(&options->decoding);
}

const char *tarn_generator_end_word(tarn_generator_end end) {
  static const char *const words[TARN_GENERATOR_END_COUNT] = {"eos", "max_tokens", "max_length", "stop"};
  return (unsigned)end < TARN_GENERATOR_END_COUNT ? words[end] : NULL;
}

tarn_status tarn__generate_check(const tarn_generator_options *o) {
  TARN_REQUIRE(o->method >= 0 && o->method < TARN_GENERATOR_METHOD_COUNT, USAGE, "unknown method of generation");
  TARN_REQUIRE(o->precision >= 0 && o->precision < TARN_TRANSLATE_PRECISION_COUNT, USAGE, "unknown precision");
  TARN_REQUIRE(o->window >= 1 && o->window <= 10000000, USAGE, "window must be from 1 to 10000000, not %lld",
               (long long)o->window);
  TARN_REQUIRE(o->threads >= 0 && o->threads <= 1024, USAGE, "threads must be from 0 to 1024, not %d", o->threads);
  TARN_REQUIRE(o->method != TARN_GENERATOR_METHOD_GREEDY || o->number == 1, USAGE,
               "greedy search gives one continuation of a prompt, not %lld; sample or search with a beam",
               (long long)o->number);
  const bool samples = o->method == TARN_GENERATOR_METHOD_SAMPLE;
  TARN_TRY(tarn__steering_check_drawing(o->temperature, o->top_k, o->top_p, samples));
  return tarn__steering_check_search(&o->decoding, o->method == TARN_GENERATOR_METHOD_BEAM ? o->beam : 1,
                                     samples ? o->number : 0);
}

tarn_status tarn__generate_steer(tarn__steering *steering, tarn_generator_options *o, const tarn_vocab *vocab) {
  TARN_TRY(tarn__steering_open(steering, &o->decoding, o->stop, o->stop_count, vocab));
  o->decoding = steering->decoding;
  o->stop = steering->stops.texts;
  return TARN_STATUS_OK;
}

// Bans the tokens that do not stand for text, except the end of sentence.
static void ban_tokens(tarn__generator_options *core, const tarn_vocab *vocab) {
  const int32_t special[] = {tarn_vocab_unk(vocab), tarn_vocab_bos(vocab), tarn_vocab_pad(vocab)};
  for (size_t i = 0; i < sizeof special / sizeof *special; i++)
    if (special[i] >= 0 && special[i] != tarn_vocab_eos(vocab)) core->banned[core->banned_count++] = special[i];
}

void tarn__generate_core(tarn__generator_options *core, const tarn_generator_options *o, const tarn__steering *steering,
                         const tarn_vocab *vocab) {
  tarn__generator_default(core);
  core->max_tokens = o->max_tokens;
  core->min_tokens = o->min_tokens;
  core->number = o->number;
  if (o->method == TARN_GENERATOR_METHOD_BEAM) {
    core->beam = o->beam;
    core->length_penalty = o->length_penalty;
  }
  core->samples = o->method == TARN_GENERATOR_METHOD_SAMPLE;
  core->sampling = (tarn__sampling){.temperature = o->temperature,
                                    .top_k = o->top_k,
                                    .top_p = o->top_p,
                                    .seed = o->seed,
                                    .min_p = o->decoding.min_p,
                                    .typical_p = o->decoding.typical_p};
  core->processing = &steering->processing;
  core->stops = &steering->stops;
  core->groups = o->decoding.groups;
  core->diversity = o->decoding.diversity_penalty;
  core->threads = tarn__threads();
  core->rounding = tarn__rounding_of(o->precision);
  ban_tokens(core, vocab);
}

static tarn_status open_all(tarn_generator *g, const char *path) {
  tarn_generator_options *o = &g->options;
  TARN_TRY(tarn__generate_check(o));
  tarn__threads_set(o->threads);
  TARN_TRY(tarn__checkpoint_open_use(&g->checkpoint, path, &o->precision, NULL));
  TARN_TRY(tarn__task_require(g->checkpoint->config, TARN__USE_CONTINUE_TEXT, path));
  tarn__generator_options core;
  TARN_TRY(tarn__generate_steer(&g->steering, o, g->checkpoint->target));
  tarn__generate_core(&core, o, &g->steering, g->checkpoint->target);
  return tarn__generator_open(&g->generator, g->checkpoint->model, tarn_vocab_eos(g->checkpoint->target), &core);
}

tarn_status tarn_generator_open(tarn_generator **generator, const char *path, const tarn_generator_options *options) {
  *generator = NULL;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(tarn_generator)));
  tarn_generator *g = memory;
  g->options = *options;
  tarn_status status = open_all(g, path);
  if (status != TARN_STATUS_OK) {
    tarn_generator_close(&g);
    return status;
  }
  *generator = g;
  return TARN_STATUS_OK;
}

void tarn_generator_close(tarn_generator **generator) {
  tarn_generator *g = *generator;
  if (!g) return;
  tarn__generator_close(&g->generator);
  tarn__checkpoint_close(&g->checkpoint);
  tarn_vocab_ids_close(&g->line_ids);
  tarn_vocab_ids_close(&g->whole);
  tarn__continuation_close(&g->text);
  tarn__steering_close(&g->steering);
  tarn__free(g->ids);
  tarn__free(g->offsets);
  tarn__free(g->found);
  tarn__arena_close(&g->results);
  tarn__line_block_close(&g->block);
  tarn__free(g->window);
  tarn__free(g);
  *generator = NULL;
}

tarn_status tarn_generator_set(tarn_generator *generator, const tarn_generator_options *options) {
  tarn_generator_options wanted = *options;
  wanted.precision = generator->options.precision;
  wanted.threads = generator->options.threads;
  wanted.window = generator->options.window;
  TARN_TRY(tarn__generate_check(&wanted));
  tarn__steering before = generator->steering;
  tarn_status status = tarn__generate_steer(&generator->steering, &wanted, generator->checkpoint->target);
  tarn__generator_options core;
  tarn__generate_core(&core, &wanted, &generator->steering, generator->checkpoint->target);
  if (status == TARN_STATUS_OK) status = tarn__generator_set(generator->generator, &core);
  if (status != TARN_STATUS_OK) {
    tarn__steering_close(&generator->steering);
    generator->steering = before;
    return status;
  }
  tarn__steering_close(&before);
  generator->options = wanted;
  return TARN_STATUS_OK;
}

const char *tarn_generator_path(const tarn_generator *generator) { return generator->checkpoint->path; }

const char *tarn_generator_piece(const tarn_generator *generator, int32_t id) {
  return tarn_vocab_piece(generator->checkpoint->target, id);
}

void tarn_generator_get_summary(const tarn_generator *generator, tarn_generator_summary *summary) {
  *summary = generator->summary;
}

tarn_status tarn__generate_encode(tarn_generator *g, bool strict, tarn_generator_result *result, const char *line,
                                  size_t length) {
  const tarn_vocab *vocab = g->checkpoint->target;
  const size_t valid = tarn__utf8_valid(line, length);
  TARN_REQUIRE(!strict || valid == length, DATA, "invalid UTF-8 at byte %zu", valid + 1);
  TARN_TRY(tarn_vocab_encode(vocab, &g->line_ids, line, length));
  const size_t tokens = g->line_ids.count;
  g->summary.cut += g->line_ids.parts > 1;
  result->prompt_tokens = (int64_t)tokens;
  TARN_REQUIRE(result->prompt_tokens <= tarn__generator_longest(g->generator), DATA,
               "%zu tokens, and the model takes %lld before the next one (model.max_length is %lld)", tokens,
               (long long)tarn__generator_longest(g->generator), (long long)g->checkpoint->config->model.max_length);
  for (size_t i = 0; i < tokens; i++) result->unknown += g->line_ids.data[i] == tarn_vocab_unk(vocab);
  TARN_REQUIRE(!strict || result->unknown == 0, DATA, "%lld of its %zu tokens are not in the vocabulary",
               (long long)result->unknown, tokens);
  return TARN_STATUS_OK;
}

// Appends the tokens of one prompt to the ids.
static tarn_status add_prompt(tarn_generator *g, tarn_generator_result *result, const char *line, size_t length,
                              size_t *count) {
  TARN_TRY(tarn__generate_encode(g, g->options.strict, result, line, length));
  const size_t tokens = g->line_ids.count;
  TARN_TRY(tarn__grow(&g->ids, &g->ids_capacity, *count + tokens, sizeof *g->ids));
  if (tokens > 0) memcpy(g->ids + *count, g->line_ids.data, tokens * sizeof *g->ids);
  *count += tokens;
  return TARN_STATUS_OK;
}

tarn_generator_end tarn__generate_end(const tarn_generator *g, const tarn_generator_options *options, bool stopped,
                                      int32_t last, int64_t tokens) {
  if (stopped) return TARN_GENERATOR_END_STOP;
  if (last == tarn_vocab_eos(g->checkpoint->target)) return TARN_GENERATOR_END_EOS;
  return tokens == options->max_tokens ? TARN_GENERATOR_END_MAX_TOKENS : TARN_GENERATOR_END_MAX_LENGTH;
}

// The text of a prompt and of one continuation. The end of sentence is removed here, because not every vocabulary
// recognises its own.
static tarn_status decode_texts(tarn_generator *g, const tarn__generated *from, tarn_generator_text *out,
                                size_t prompt_size, const tarn__hypothesis *hypothesis) {
  const tarn_vocab *vocab = g->checkpoint->target;
  const size_t length = (size_t)hypothesis->length;
  const int32_t last = hypothesis->ids[length - 1];
  const size_t size = length - (last == tarn_vocab_eos(vocab));
  TARN_TRY(tarn__grow(&g->whole.data, &g->whole.capacity, prompt_size + size + 1, sizeof *g->whole.data));
  if (prompt_size > 0) memcpy(g->whole.data, from->prompt, prompt_size * sizeof last);
  memcpy(g->whole.data + prompt_size, hypothesis->ids, size * sizeof last);
  TARN_TRY(
      tarn__continuation_decode(&g->text, vocab, g->whole.data, (int64_t)prompt_size, (int64_t)(prompt_size + size)));
  const tarn_vocab_text *whole = &g->text.text;
  const size_t begin = g->text.begin, end = tarn__stops_find(from->stops, whole->data, begin, whole->length);
  out->end = tarn__generate_end(g, from->options, end < whole->length, last, hypothesis->length);
  char *text;
  char *continuation;
  TARN_TRY(tarn__repair_copy(from->memory, &text, &out->length, whole->data, end));
  TARN_TRY(tarn__repair_copy(from->memory, &continuation, &out->continuation_length, whole->data + begin, end - begin));
  out->text = text;
  out->continuation = continuation;
  return TARN_STATUS_OK;
}

// Puts the samples in the order of their expected utility.
static tarn_status rank(const tarn__generated *from, tarn_generator_text **texts, int64_t count) {
  void *memory;
  TARN_TRY(tarn__arena_alloc(from->memory, &memory, (size_t)count, sizeof(tarn_generator_text)));
  tarn_generator_text *ranked = memory;
  TARN_TRY(tarn__arena_alloc(from->memory, &memory, (size_t)count, sizeof(double) + sizeof(char *) + sizeof(int32_t)));
  double *expected = memory;
  const char **lines = (const char **)(void *)(expected + count);
  int32_t *order = (int32_t *)(void *)(lines + count);
  for (int64_t i = 0; i < count; i++) lines[i] = (*texts)[i].continuation;
  TARN_TRY(tarn__mbr_rank(from->options->decoding.mbr, lines, count, expected, order));
  for (int64_t i = 0; i < count; i++) {
    ranked[i] = (*texts)[order[i]];
    ranked[i].score = expected[order[i]];
  }
  *texts = ranked;
  return TARN_STATUS_OK;
}

tarn_status tarn__generate_result(tarn_generator *g, tarn_generator_result *result, const tarn__generated *from) {
  void *memory;
  TARN_TRY(tarn__arena_alloc(from->memory, &memory, (size_t)from->count, sizeof(tarn_generator_text)));
  tarn_generator_text *texts = memory;
  for (int64_t i = 0; i < from->count; i++) {
    const tarn__hypothesis *hypothesis = &from->hypotheses[i];
    texts[i] = (tarn_generator_text){.tokens = hypothesis->length,
                                     .ids = hypothesis->ids,
                                     .log_probabilities = hypothesis->log_probabilities,
                                     .log_probability = hypothesis->log_probability,
                                     .score = hypothesis->score};
    TARN_TRY(decode_texts(g, from, &texts[i], (size_t)result->prompt_tokens, hypothesis));
    g->summary.tokens += hypothesis->length;
  }
  if (from->options->decoding.mbr != TARN_MBR_NONE) TARN_TRY(rank(from, &texts, from->count));
  result->texts = texts;
  result->count = from->count;
  g->summary.prompts++;
  g->summary.texts += from->count;
  g->summary.prompt_tokens += result->prompt_tokens;
  g->summary.unknown += result->unknown;
  return TARN_STATUS_OK;
}

static tarn_status generate(tarn_generator *g, tarn_generator_result *results, const char *const *prompts,
                            const size_t *lengths, size_t count) {
  TARN_TRY(tarn__grow(&g->offsets, &g->offsets_capacity, count + 1, sizeof *g->offsets));
  TARN_TRY(tarn__grow(&g->found, &g->found_capacity, count, sizeof *g->found));
  tarn__arena_reset(&g->results);
  size_t tokens = 0;
  g->offsets[0] = 0;
  for (size_t i = 0; i < count; i++) {
    results[i] = (tarn_generator_result){.number = g->before + (int64_t)i + 1};
    tarn_status status = add_prompt(g, &results[i], prompts[i], lengths[i], &tokens);
    if (status != TARN_STATUS_OK) return tarn__fail_prefix(status, "prompt %lld: ", (long long)results[i].number);
    g->offsets[i + 1] = (int64_t)tokens;
  }
  TARN_TRY(tarn__grow(&g->ids, &g->ids_capacity, 1, sizeof *g->ids));
  TARN_TRY(tarn__generator_run(g->generator, g->found, g->ids, g->offsets, (int64_t)count));
  for (size_t i = 0; i < count; i++) {
    const tarn__generated from = {.options = &g->options,
                                  .stops = &g->steering.stops,
                                  .prompt = g->ids + g->offsets[i],
                                  .hypotheses = g->found[i].hypotheses,
                                  .count = g->found[i].count,
                                  .memory = &g->results};
    TARN_TRY(tarn__generate_result(g, &results[i], &from));
  }
  return TARN_STATUS_OK;
}

tarn_status tarn_generator_lines(tarn_generator *generator, tarn_generator_result *results, const char *const *prompts,
                                 const size_t *lengths, size_t count) {
  const double start = tarn__seconds();
  const tarn_status status =
      tarn__map_judge(&generator->checkpoint->file.map, generate(generator, results, prompts, lengths, count));
  generator->summary.seconds += tarn__seconds() - start;
  return status;
}

static tarn_status generate_windows(tarn_generator *g, tarn__lines *lines, tarn__work *work, tarn_generator_sink sink,
                                    void *user) {
  for (int64_t before = 0;; before += (int64_t)g->block.count) {
    tarn__line_block *block = &g->block;
    const double share = tarn__lines_share(lines);
    TARN_TRY(tarn__line_block_read(block, lines, (size_t)g->options.window, SIZE_MAX));
    if (block->count == 0) return TARN_STATUS_OK;
    tarn__work_part(work, (double)before, share, (double)(before + (int64_t)block->count), tarn__lines_share(lines));
    TARN_TRY(tarn__grow(&g->window, &g->window_capacity, block->count, sizeof *g->window));
    g->before = before;
    tarn_status status = tarn_generator_lines(g, g->window, block->lines, block->lengths, block->count);
    g->before = 0;
    if (status != TARN_STATUS_OK) return tarn__fail_prefix(status, "%s: ", lines->path);
    for (size_t i = 0; i < block->count; i++) TARN_TRY(sink(user, &g->window[i]));
  }
}

tarn_status tarn_generator_file(tarn_generator *generator, const char *path, tarn_generator_sink sink, void *user) {
  tarn__lines lines = {0};
  TARN_TRY(tarn__lines_open(&lines, path, false));
  lines.raw = true;  // encoding a prompt handles invalid bytes
  lines.prompt = true;
  tarn__work work;
  tarn__work_begin(&work, "generating", "prompts");
  tarn_status status = generate_windows(generator, &lines, &work, sink, user);
  tarn__work_end(&work);
  tarn__lines_close(&lines);
  return status;
}
