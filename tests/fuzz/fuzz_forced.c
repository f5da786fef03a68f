// Columns of texts that a translation must contain, and a search for one, whose probabilities are drawn. The first line
// is columns of one line, the other lines are texts of all. Translations that are found contain everything.
#include <math.h>
#include <string.h>

#include "base/random.h"
#include "decode/beam.h"
#include "decode/forced_text.h"
#include "fuzz/fuzz.h"

enum { VOCAB = 7, WORDS = 8, LONGEST = 12, BEAM = 3, EOS = 2 };

static tarn_vocab *vocab;

void fuzz_prepare(void) {
  static const char words[] = "tarn-vocab whitespace 1\nlowercase 0\nsize 7\n<unk>\n<s>\n</s>\na\nb\nc\nd\n";
  fuzz_write("words", words, sizeof words - 1);
  fuzz_must(tarn_vocab_open(&vocab, "words"));
}

// A step: all words in the order of their numbers, as choices and as what phrases want.
static tarn_status advance(tarn__beam *beam, tarn__random *random) {
  const int64_t choices = tarn__beam_choices(&beam->options), count = beam->forced->count;
  int32_t ids[BEAM * (2 * BEAM + 1)], wanted[BEAM * LONGEST];
  float values[BEAM * (2 * BEAM + 2)], more[BEAM * (LONGEST + 1)];
  for (int64_t h = 0; h < beam->running_count; h++) {
    float row[VOCAB];
    for (int32_t id = 0; id < VOCAB; id++) {
      row[id] = -(float)tarn__random_below(random, 9);
      if (row[id] == -8.0F) row[id] = -INFINITY;
    }
    for (int64_t k = 0; k < choices; k++) {
      ids[h * choices + k] = k < VOCAB && row[k] > -INFINITY ? (int32_t)k : -1;
      values[h * (choices + 1) + k] = k < VOCAB ? row[k] : -INFINITY;
    }
    values[h * (choices + 1) + choices] = row[EOS];
    tarn__forced_wanted(beam->forced, wanted + h * count, tarn__beam_progress(beam, h));
    for (int64_t i = 0; i < count; i++) {
      const int32_t id = wanted[h * count + i];
      more[h * (count + 1) + i] = id >= 0 ? row[id] : -INFINITY;
    }
    more[h * (count + 1) + count] = row[EOS];
  }
  beam->wanted = (tarn__beam_wanted){wanted, more, NULL, count};
  return tarn__beam_advance(beam, &(tarn__beam_rows){ids, values, NULL, choices});
}

static bool contains(const int32_t *ids, int64_t length, const tarn__phrase *phrase) {
  for (int64_t at = 0; at + phrase->length <= length; at++)
    if (memcmp(ids + at, phrase->ids, (size_t)phrase->length * sizeof *ids) == 0) return true;
  return false;
}

static void search(tarn__beam *beam, const tarn__forced *forced, unsigned choice) {
  const tarn__beam_options options = {
      .beam = BEAM, .length_penalty = 1.0, .eos = EOS, .min_length = choice % 3, .late_stop = choice / 4 % 2 == 1};
  tarn__random random;
  tarn__random_init(&random, choice, 0);
  fuzz_must(tarn__beam_start(beam, &options, 1 + choice / 8 % LONGEST));
  tarn_status status = tarn__beam_force(beam, forced, (const int32_t[]){3, 4}, choice / 128 % 3);
  while (status == TARN_STATUS_OK && !beam->done) status = advance(beam, &random);
  if (!fuzz_good(status)) return;
  for (int64_t i = 0; i < beam->finished_count; i++) {
    int32_t ids[LONGEST + 3] = {3, 4};
    float log_probabilities[LONGEST + 1];
    const int64_t before = choice / 128 % 3, length = before + beam->finished[i].length;
    tarn__beam_copy(beam, i, ids + before, log_probabilities);
    for (int64_t p = 0; p < forced->count; p++) FUZZ_REQUIRE(contains(ids, length, &forced->phrases[p]));
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char text[2048];
  const char *words[WORDS];
  size_t count = 0;
  if (size >= sizeof text) return 0;
  memcpy(text, data, size);
  text[size] = '\0';
  char *end = memchr(text, '\n', size);
  const size_t length = end ? (size_t)(end - text) : size;
  for (char *at = end; at && count < WORDS; at = strchr(at, '\n')) {
    *at++ = '\0';
    words[count++] = at;
  }
  for (size_t i = 0; i < count; i++) {
    char *line = strchr(words[i], '\n');
    if (line) *line = '\0';
  }
  const unsigned choice = fuzz_choice(data, size);
  tarn__forced_text forced;
  bool replaced = false;
  tarn_status status = tarn__forced_text_open(&forced, words, count, vocab, LONGEST);
  if (status == TARN_STATUS_OK) status = tarn__forced_text_begin(&forced, 1);
  if (status == TARN_STATUS_OK)
    status = tarn__forced_text_add(&forced, 0, text, length, choice / 2048 % 2 == 1, &replaced);
  tarn__beam beam = {0};
  if (fuzz_good(status) && forced.lines[0].count > 0) search(&beam, &forced.lines[0], choice);
  tarn__beam_close(&beam);
  tarn__forced_text_close(&forced);
  return 0;
}
