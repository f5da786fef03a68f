// Converts lines of text to the tokens that the model reads.
#include <string.h>

#include "base/memory.h"
#include "base/work.h"
#include "states/states.h"
#include "text/lines.h"

const tarn_vocab *tarn__states_vocab(const tarn_states *states, tarn_states_side side) {
  return states->task->source && side == TARN_STATES_SIDE_SOURCE ? states->checkpoint->source
                                                                 : states->checkpoint->target;
}

static int64_t longest_of(const tarn_states *states) {
  const bool text = states->task->uses & 1u << TARN__USE_CONTINUE_TEXT;
  return text ? tarn__model_longest(states->checkpoint->model) : states->checkpoint->config->model.max_length;
}

// Makes space for a sentence of so many tokens, at *ids.
static tarn_status open_sentence(tarn_states *states, tarn__states_text *text, int64_t tokens, int32_t **ids) {
  TARN_REQUIRE(tokens <= 1 << 24, DATA, "%lld tokens are too many for one sentence", (long long)tokens);
  const size_t all = (size_t)text->tokens + (size_t)tokens;
  TARN_TRY(tarn__grow(&text->ids, &text->ids_room, all, sizeof *text->ids));
  if (states->checkpoint->config->model.segments > 0)
    TARN_TRY(tarn__grow(&text->segments, &text->segments_room, all, sizeof *text->segments));
  TARN_TRY(
      tarn__grow(&text->offsets, &text->offsets_room, (size_t)states->summary.sentences + 2, sizeof *text->offsets));
  *ids = text->ids + text->tokens;
  return TARN_STATUS_OK;
}

static void close_sentence(const tarn_states *states, tarn__states_text *text, int64_t tokens) {
  text->tokens += tokens;
  if (tokens > text->longest) text->longest = tokens;
  text->offsets[0] = 0;
  text->offsets[states->summary.sentences + 1] = text->tokens;
}

static tarn_status too_long(tarn_states *states, int64_t tokens, int64_t most) {
  TARN_REQUIRE(states->options.overlong == TARN_TRANSLATE_OVERLONG_TRUNCATE, DATA,
               "%lld tokens, and the model takes %lld; what is overlong is refused here, not truncated",
               (long long)tokens, (long long)most);
  states->summary.truncated++;
  return TARN_STATUS_OK;
}

static void count_unknown(tarn_states *states, const tarn_vocab *vocab, const int32_t *ids, int64_t tokens) {
  const int32_t unknown = tarn_vocab_unk(vocab);
  for (int64_t i = 0; i < tokens; i++) states->summary.unknown += ids[i] == unknown;
}

// Tokens followed by an end of sentence (a source, or the target of a decoder that reads whole sentences), or preceded
// by it or model.decoder_start (from which the next token is predicted).
static tarn_status encode_plain(tarn_states *states, tarn_states_side side, const char *line, size_t length) {
  tarn__states_text *text = &states->sides[side];
  const tarn_vocab *vocab = tarn__states_vocab(states, side);
  const bool behind = states->task->source && (side == TARN_STATES_SIDE_SOURCE || tarn__task_reads_whole(states->task));
  const int64_t most = longest_of(states), start = states->checkpoint->config->model.decoder_start;
  int32_t *ids;
  TARN_TRY(tarn_vocab_encode(vocab, &states->line_ids, line, length));
  int64_t tokens = (int64_t)states->line_ids.count;
  if (tokens + 1 > most) {
    TARN_TRY(too_long(states, tokens + 1, most));
    tokens = most - 1;
  }
  TARN_TRY(open_sentence(states, text, tokens + 1, &ids));
  if (tokens) memcpy(ids + !behind, states->line_ids.data, (size_t)tokens * sizeof *ids);
  ids[behind ? tokens : 0] = behind || start < 0 ? tarn_vocab_eos(vocab) : (int32_t)start;
  count_unknown(states, vocab, ids + !behind, tokens);
  close_sentence(states, text, tokens + 1);
  return TARN_STATUS_OK;
}

// One sentence, or two for a model with pairs, as a whole row.
static tarn_status encode_row(tarn_states *states, const char *line, size_t length) {
  tarn__states_text *text = &states->sides[TARN_STATES_SIDE_SOURCE];
  const tarn_vocab *vocab = tarn__states_vocab(states, TARN_STATES_SIDE_SOURCE);
  const int64_t segments = states->checkpoint->config->model.segments, before = states->first >= 0;
  const char *tab =
      states->task->labelled == TARN__LABELLED_SENTENCES || segments > 1 ? memchr(line, '\t', length) : NULL;
  tarn__piece pieces[2] = {{line, tab ? (size_t)(tab - line) : length}, {0}};
  if (tab) pieces[1] = (tarn__piece){tab + 1, (size_t)(line + length - tab - 1)};
  TARN_REQUIRE(!tab || !memchr(tab + 1, '\t', pieces[1].length), DATA,
               "more than one tab; a line has one sentence, or two that a tab separates");
  const int64_t most = longest_of(states);
  TARN_REQUIRE(most >= 4 + before, USAGE, "model.max_length %lld is too short for a sentence", (long long)most);
  const tarn__sentence_pair *pair = &states->pair;
  TARN_TRY(tarn__sentence_pair_make(&states->pair, vocab, &pieces[0], &pieces[1], most - before));
  TARN_REQUIRE(!pair->empty, DATA, "a sentence that gives no token");
  if (pair->cut_off > 0) TARN_TRY(too_long(states, pair->length + pair->cut_off + before, most));
  int32_t *ids;
  TARN_TRY(open_sentence(states, text, pair->length + before, &ids));
  if (before) ids[0] = states->first;
  memcpy(ids + before, pair->ids, (size_t)pair->length * sizeof *ids);
  for (int64_t i = 0; segments > 0 && i < pair->length + before; i++)
    text->segments[text->tokens + i] = segments > 1 && i >= pair->second + before;
  count_unknown(states, vocab, pair->ids, pair->length);
  close_sentence(states, text, pair->length + before);
  return TARN_STATUS_OK;
}

static tarn_status encode_line(tarn_states *states, tarn_states_side side, const char *line, size_t length) {
  bool replaced;
  TARN_TRY(tarn__repair(&states->repaired, &line, &length, states->options.strict, &replaced));
  states->summary.replaced += replaced;
  const bool whole = states->task->first != NULL;
  return whole ? encode_row(states, line, length) : encode_plain(states, side, line, length);
}

static void begin(tarn_states *states, bool targets) {
  states->summary = (tarn_states_summary){0};
  for (int i = 0; i < TARN_STATES_SIDE_COUNT; i++) {
    states->sides[i].tokens = states->sides[i].longest = 0;
    states->sides[i].given = i == TARN_STATES_SIDE_SOURCE || targets;
  }
}

static tarn_status check_targets(const tarn_states *states) {
  TARN_REQUIRE(states->task->source, USAGE, "%s is %s, which reads one text: there are no targets",
               states->checkpoint->path, states->task->model);
  return TARN_STATUS_OK;
}

// Ends taking sentences; drops all after a failure.
static tarn_status end(tarn_states *states, tarn_status status) {
  if (status != TARN_STATUS_OK) begin(states, false);
  for (int i = 0; i < TARN_STATES_SIDE_COUNT; i++) states->summary.tokens[i] = states->sides[i].tokens;
  return status;
}

static tarn_status encode_lines(tarn_states *states, const char *const *lines, const size_t *lengths,
                                const char *const *targets, const size_t *target_lengths, size_t count) {
  begin(states, targets != NULL);
  for (size_t i = 0; i < count; i++) {
    tarn_status status = encode_line(states, TARN_STATES_SIDE_SOURCE, lines[i], lengths[i]);
    if (status != TARN_STATUS_OK) return tarn__fail_prefix(status, "line %zu: ", i + 1);
    if (targets) status = encode_line(states, TARN_STATES_SIDE_TARGET, targets[i], target_lengths[i]);
    if (status != TARN_STATUS_OK) return tarn__fail_prefix(status, "target of line %zu: ", i + 1);
    states->summary.sentences++;
  }
  return TARN_STATUS_OK;
}

tarn_status tarn_states_encode(tarn_states *states, const char *const *lines, const size_t *lengths,
                               const char *const *targets, const size_t *target_lengths, size_t count) {
  if (targets) TARN_TRY(check_targets(states));
  return end(states, encode_lines(states, lines, lengths, targets, target_lengths, count));
}

// A line of each file; *more is false after the last one.
static tarn_status encode_next(tarn_states *states, tarn__lines files[TARN_STATES_SIDE_COUNT], bool targets,
                               bool *more) {
  bool ended[TARN_STATES_SIDE_COUNT] = {false, false};
  for (int i = 0; i < 1 + targets; i++) {
    const char *line;
    size_t length;
    TARN_TRY(tarn__lines_next(&files[i], &line, &length));
    ended[i] = line == NULL;
    if (ended[i]) continue;
    const tarn_status status = encode_line(states, (tarn_states_side)i, line, length);
    if (status != TARN_STATUS_OK)
      return tarn__fail_prefix(status, "%s:%lld: ", files[i].path, (long long)files[i].number);
  }
  *more = !ended[0];
  TARN_REQUIRE(!targets || ended[0] == ended[1], DATA, "%s has %s lines than %s; line %lld is the last of both",
               files[0].path, ended[0] ? "fewer" : "more", files[1].path, (long long)states->summary.sentences);
  if (*more) states->summary.sentences++;
  return TARN_STATUS_OK;
}

tarn_status tarn_states_encode_file(tarn_states *states, const char *path, const char *target_path) {
  if (target_path) TARN_TRY(check_targets(states));
  TARN_REQUIRE(!target_path || strcmp(path, "-") != 0 || strcmp(target_path, "-") != 0, USAGE,
               "standard input cannot be both the text and its targets");
  tarn__lines files[TARN_STATES_SIDE_COUNT] = {{0}, {0}};
  bool more = true;
  begin(states, target_path != NULL);
  tarn_status status = tarn__lines_open(&files[0], path, false);
  if (status == TARN_STATUS_OK && target_path) status = tarn__lines_open(&files[1], target_path, false);
  files[0].raw = files[1].raw = true;  // encoding a line handles invalid bytes
  tarn__work work;
  tarn__work_begin(&work, "reading", "lines");
  while (status == TARN_STATUS_OK && more) {
    status = encode_next(states, files, target_path != NULL, &more);
    tarn__work_at(&work, (double)states->summary.sentences, tarn__lines_share(&files[0]));
  }
  tarn__work_end(&work);
  for (int i = 0; i < TARN_STATES_SIDE_COUNT; i++) tarn__lines_close(&files[i]);
  return end(states, status);
}

void tarn_states_get_summary(const tarn_states *states, tarn_states_summary *summary) { *summary = states->summary; }

static const tarn__states_text *text_of(const tarn_states *states, tarn_states_side side) {
  const bool there =
      side >= 0 && side < TARN_STATES_SIDE_COUNT && states->sides[side].given && states->summary.sentences;
  return there ? &states->sides[side] : NULL;
}

const int32_t *tarn_states_ids(const tarn_states *states, tarn_states_side side) {
  const tarn__states_text *text = text_of(states, side);
  return text ? text->ids : NULL;
}

const int64_t *tarn_states_offsets(const tarn_states *states, tarn_states_side side) {
  const tarn__states_text *text = text_of(states, side);
  return text ? text->offsets : NULL;
}

const char *tarn_states_piece(const tarn_states *states, tarn_states_side side, int32_t id) {
  return tarn_vocab_piece(tarn__states_vocab(states, side), id);
}
