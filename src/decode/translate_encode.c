// The tokens of the lines that a translator gets, with their columns. Many lines are encoded by all threads.
#include <omp.h>
#include <string.h>

#include "base/threads.h"
#include "decode/translate_state.h"
#include "text/utf8.h"

tarn_status tarn__translate_encode_prefix(tarn_translator *t, const char *text, size_t length) {
  const char *from = text ? text : "";
  bool replaced;
  TARN_TRY(tarn__repair(&t->repaired, &from, &length, t->options.strict, &replaced));
  t->summary.replaced += replaced;
  return tarn_vocab_encode(t->checkpoint->target, &t->line_ids, from, length);
}

// Appends the prefix of a line to those of the sentences.
static tarn_status add_prefix(tarn_translator *t, const char *text, size_t length) {
  TARN_TRY(tarn__translate_encode_prefix(t, text, length));
  const size_t count = t->line_ids.count;
  TARN_TRY(tarn__grow(&t->prefix_ids, &t->prefix_ids_capacity, t->prefix_count + count + 1, sizeof *t->prefix_ids));
  if (count > 0) memcpy(t->prefix_ids + t->prefix_count, t->line_ids.data, count * sizeof *t->prefix_ids);
  t->prefix_count += count;
  return TARN_STATUS_OK;
}

static tarn_status encode(tarn_translator *t, const char *line, size_t length) {
  bool replaced;
  TARN_TRY(tarn__repair(&t->repaired, &line, &length, t->options.strict, &replaced));
  t->summary.replaced += replaced;
  return tarn_vocab_encode(t->checkpoint->source, &t->line_ids, line, length);
}

// Makes a sentence of the tokens of a line, with its end.
static tarn_status finish(tarn_translator *t, tarn_translate_result *result) {
  const tarn__checkpoint *checkpoint = t->checkpoint;
  tarn_vocab_ids *ids = &t->line_ids;
  const int64_t most = checkpoint->config->model.max_length;
  int64_t tokens = (int64_t)ids->count;
  t->summary.cut += ids->parts > 1;
  if (tokens == 0) return TARN_STATUS_OK;
  if (tokens > most - 1) {
    TARN_REQUIRE(t->options.overlong == TARN_TRANSLATE_OVERLONG_TRUNCATE, DATA,
                 "%lld tokens, and the model takes %lld with the end of sentence", (long long)tokens + 1,
                 (long long)most);
    tokens = most - 1;
    result->truncated = true;
  }
  const int32_t unknown = tarn_vocab_unk(checkpoint->source);
  for (int64_t i = 0; i < tokens; i++) t->summary.unknown += ids->data[i] == unknown;
  TARN_TRY(tarn__grow(&ids->data, &ids->capacity, (size_t)tokens + 1, sizeof *ids->data));
  ids->data[tokens] = tarn_vocab_eos(checkpoint->source);
  ids->count = (size_t)tokens + 1;
  result->source_tokens = tokens + 1;
  return TARN_STATUS_OK;
}

tarn_status tarn__translate_encode(tarn_translator *t, tarn_translate_result *result, const char *line, size_t length) {
  TARN_TRY(encode(t, line, length));
  return finish(t, result);
}

tarn_status tarn__translate_add(tarn_translator *t, const int32_t *ids, size_t count, size_t *at) {
  TARN_TRY(tarn__grow(&t->ids, &t->ids_capacity, *at + count + 1, sizeof *t->ids));
  if (count > 0) memcpy(t->ids + *at, ids, count * sizeof *t->ids);
  *at += count;
  return TARN_STATUS_OK;
}

// What follows the next tab of a text, which ends there.
static const char *behind_tab(const char *text, size_t *length, size_t *rest) {
  const char *tab = text ? memchr(text, '\t', *length) : NULL;
  *rest = tab ? *length - (size_t)(tab - text) - 1 : 0;
  if (tab) *length = (size_t)(tab - text);
  return tab ? tab + 1 : NULL;
}

tarn__columns tarn__translate_split(const tarn_translator_options *options, const char *line, size_t length) {
  tarn__columns c = {.length = length};
  if (options->prefixes) c.prefix = behind_tab(line, &c.length, &c.prefix_length);
  if (!options->force_columns) return c;
  if (options->prefixes)
    c.forced = behind_tab(c.prefix, &c.prefix_length, &c.forced_length);
  else
    c.forced = behind_tab(line, &c.length, &c.forced_length);
  return c;
}

// The columns of the line with this sentence, from 1.
static tarn_status encode_columns(tarn_translator *t, const tarn__columns *c, int64_t sentence, int64_t line) {
  bool replaced = false;
  if (t->options.prefixes) {
    TARN_TRY(add_prefix(t, c->prefix, c->prefix_length));
    t->prefix_offsets[sentence] = (int64_t)t->prefix_count;
  }
  if (!tarn__translate_forces(&t->options)) return TARN_STATUS_OK;
  TARN_TRY(tarn__forced_text_add(&t->forced, (size_t)sentence - 1, c->forced, c->forced_length, t->options.strict,
                                 &replaced));
  t->forced.lines[sentence - 1].line = line;
  t->summary.replaced += replaced;
  return TARN_STATUS_OK;
}

// --- lines encoded by several threads

// Lines that are encoded before the first of them is taken, so that a window of any length needs no more memory for it,
// and a bad line is found soon.
enum { SLICE = 1024 };

// The lines of a call that a thread encodes.
struct tarn__line_encoder {
  tarn_vocab_ids ids;  // of a line
  int32_t *all;        // of all its lines, one after the other
  size_t count, capacity;
};

// Lines that must be counted or refused (invalid UTF-8), and those that fail, are left to the caller, which takes all
// lines in order.
static void encode_one(const tarn_translator *t, int number, tarn__ready_line *ready, const char *line, size_t length) {
  struct tarn__line_encoder *e = &t->encoders[number];
  const tarn__columns parts = tarn__translate_split(&t->options, line, length);
  *ready = (tarn__ready_line){.encoder = -1};
  if (tarn__utf8_valid(line, parts.length) != parts.length) return;
  if (tarn_vocab_encode(t->checkpoint->source, &e->ids, line, parts.length) != TARN_STATUS_OK) return;
  const size_t tokens = e->ids.count;
  if (tarn__grow(&e->all, &e->capacity, e->count + tokens + 1, sizeof *e->all) != TARN_STATUS_OK) return;
  if (tokens > 0) memcpy(e->all + e->count, e->ids.data, tokens * sizeof *e->all);
  *ready = (tarn__ready_line){number, e->count, tokens, e->ids.parts, e->ids.broken};
  e->count += tokens;
}

// Encodes the next lines, if there are many, before they are taken in order.
static tarn_status encode_ahead(tarn_translator *t, const char *const *lines, const size_t *lengths, size_t count) {
  enum { MANY = 64, TOGETHER = 16 };
  const int threads = tarn__threads();
  t->ready_count = 0;
  if (count < MANY || threads < 2) return TARN_STATUS_OK;
  TARN_TRY(tarn__grow(&t->ready, &t->ready_capacity, SLICE, sizeof *t->ready));
  const size_t encoders = t->encoder_count;
  TARN_TRY(tarn__grow(&t->encoders, &t->encoder_count, (size_t)threads, sizeof *t->encoders));
  if (t->encoder_count > encoders)
    memset(t->encoders + encoders, 0, (t->encoder_count - encoders) * sizeof *t->encoders);
  for (size_t i = 0; i < t->encoder_count; i++) t->encoders[i].count = 0;
#pragma omp parallel for num_threads(threads) schedule(dynamic, TOGETHER)
  for (size_t i = 0; i < count; i++) encode_one(t, omp_get_thread_num(), &t->ready[i], lines[i], lengths[i]);
  t->ready_count = count;
  return TARN_STATUS_OK;
}

void tarn__line_encoders_close(tarn_translator *t) {
  for (size_t i = 0; i < t->encoder_count; i++) {
    tarn_vocab_ids_close(&t->encoders[i].ids);
    tarn__free(t->encoders[i].all);
  }
  tarn__free(t->encoders);
  tarn__free(t->ready);
}

static bool is_ready(const tarn_translator *t, size_t line) {
  return line < t->ready_count && t->ready[line].encoder >= 0;
}

static tarn_status take(tarn_translator *t, const tarn__ready_line *line) {
  tarn_vocab_ids *ids = &t->line_ids;
  TARN_TRY(tarn__grow(&ids->data, &ids->capacity, line->count + 1, sizeof *ids->data));
  if (line->count > 0) memcpy(ids->data, t->encoders[line->encoder].all + line->begin, line->count * sizeof *ids->data);
  ids->count = line->count;
  ids->parts = line->parts;
  ids->broken = line->broken;
  return TARN_STATUS_OK;
}

tarn_status tarn__translate_encode_lines(tarn_translator *t, tarn_translate_result *results, const char *const *lines,
                                         const size_t *lengths, size_t count, int64_t *sentences) {
  size_t tokens = 0;
  *sentences = 0;
  t->prefix_count = 0;
  t->offsets[0] = 0;
  for (size_t i = 0; i < count; i++) {
    const size_t at = i % SLICE;
    if (at == 0) TARN_TRY(encode_ahead(t, lines + i, lengths + i, count - i < SLICE ? count - i : SLICE));
    results[i] = (tarn_translate_result){.number = t->before + (int64_t)i + 1};
    const tarn__columns parts = tarn__translate_split(&t->options, lines[i], lengths[i]);
    tarn_status status = is_ready(t, at) ? take(t, &t->ready[at]) : encode(t, lines[i], parts.length);
    if (status == TARN_STATUS_OK) status = finish(t, &results[i]);
    if (status == TARN_STATUS_OK) status = tarn__translate_add(t, t->line_ids.data, t->line_ids.count, &tokens);
    if (status == TARN_STATUS_OK && results[i].source_tokens) {
      t->offsets[++*sentences] = (int64_t)tokens;
      status = encode_columns(t, &parts, *sentences, results[i].number);
    }
    if (status == TARN_STATUS_USAGE) status = TARN_STATUS_DATA;  // of a text in the line
    if (status != TARN_STATUS_OK) return tarn__fail_prefix(status, "line %lld: ", (long long)results[i].number);
  }
  return TARN_STATUS_OK;
}
