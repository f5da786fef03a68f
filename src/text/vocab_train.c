// Training of vocabularies from the lines of text files, with counts.
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unicode/uchar.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/work.h"
#include "tarn/vocab.h"
#include "text/bytes.h"
#include "text/chars.h"
#include "text/cut.h"
#include "text/joiners.h"
#include "text/line_sample.h"
#include "text/lines.h"
#include "text/spm.h"
#include "text/spm_pieces.h"
#include "text/utf8.h"
#include "text/vocab_kind.h"
#include "text/words.h"

// SentencePiece uses this character for unknown text, and skips every line with it.
static const char RESERVED[] = "\xE2\x96\x85";
enum { RESERVED_BYTES = sizeof RESERVED - 1, MARK_OF_SPACE = 0x2581 };

void tarn_vocab_default(tarn_vocab_options *options) {
  *options = (tarn_vocab_options){.type = TARN_VOCAB_TYPE_BPE, .size = 8000, .minimum_count = 1, .threads = 2};
}

// The lines of several files, one after the other; for SentencePiece, long ones in parts, and without text that it
// would skip or that would end the process.
typedef struct feed {
  const char *const *files;
  size_t count, next;
  int64_t texts;  // non-empty lines so far
  bool late;      // the normalization must be known before the text is read
  bool pieces;    // for SentencePiece
  bool allow_loss;
  tarn__lines lines;
  const char *rest;  // of the current line; NULL: there is none
  size_t rest_length;
  char *room;  // for a part without reserved characters
  size_t room_capacity;
  tarn_vocab_report report;
  tarn__work work;
  tarn__line_sample sample;  // of the text, if it is `sampled`
  bool sampled;
} feed;

// Whether a text has anything but white space, and anything left after SentencePiece's normalisation.
static void look(bool *any, bool *visible, const char *text, size_t length) {
  *any = *visible = false;
  for (size_t at = 0; at < length && !*visible;) {
    int32_t code;
    at += tarn__utf8_decode(&code, text + at, length - at);
    if (code < 0 || u_isUWhiteSpace(code)) continue;
    *any = true;
    *visible =
        code != MARK_OF_SPACE && u_isgraph(code) && !u_hasBinaryProperty(code, UCHAR_DEFAULT_IGNORABLE_CODE_POINT);
  }
}

// Takes the next non-empty line; f->rest is NULL after the last one.
static tarn_status next_line(feed *f) {
  tarn_vocab_report *r = &f->report;
  for (;;) {
    bool any, visible;
    f->rest = NULL;
    if (f->lines.input.open) {
      TARN_TRY(tarn__lines_next(&f->lines, &f->rest, &f->rest_length));
      tarn__work_at(&f->work, (double)(r->lines + f->lines.number),
                    ((double)f->next - 1 + tarn__lines_share(&f->lines)) / (double)f->count);
    }
    if (f->rest && f->rest_length == 0) continue;
    if (f->rest) {
      look(&any, &visible, f->rest, f->rest_length);
      if (any) r->bytes += (int64_t)f->lines.length;
      f->texts += any;
      r->joined += f->pieces && tarn__joiners_spell(f->rest, f->rest_length);
      r->long_lines += f->pieces && f->rest_length > TARN__CUT_LONGEST;
      return TARN_STATUS_OK;
    }
    r->lines += f->lines.number;
    r->replaced += f->lines.replaced;
    r->replaced_bytes += f->lines.replaced_bytes;
    tarn__lines_close(&f->lines);
    if (f->next == f->count) return TARN_STATUS_OK;
    TARN_TRY(tarn__lines_open(&f->lines, f->files[f->next++], false));
  }
}

static bool wants_joiners(const feed *f) { return tarn__joiners_matter(f->report.joined, f->texts); }

// Replaces every character reserved by SentencePiece by a blank.
static tarn_status leave_out_reserved(feed *f, const char **text, size_t *length) {
  const char *found = memmem(*text, *length, RESERVED, RESERVED_BYTES);
  if (!found) return TARN_STATUS_OK;
  TARN_TRY(tarn__grow(&f->room, &f->room_capacity, *length, 1));
  size_t used = 0;
  for (const char *at = *text, *end = at + *length; at < end;
       found = memmem(at, (size_t)(end - at), RESERVED, RESERVED_BYTES)) {
    const size_t kept = (size_t)((found ? found : end) - at);
    memcpy(f->room + used, at, kept);
    used += kept;
    at += kept;
    if (!found) break;
    f->room[used++] = ' ';
    f->report.reserved++;
    at += RESERVED_BYTES;
  }
  *text = f->room;
  *length = used;
  return TARN_STATUS_OK;
}

// Fails if too much of the text is lost.
static tarn_status finish(feed *f) {
  tarn_vocab_report *r = &f->report;
  const int64_t reserved = r->reserved * RESERVED_BYTES;
  tarn__work_end(&f->work);
  tarn__work_begin(&f->work, "training the vocabulary", "pieces");
  tarn__work_tick(&f->work);
  const int64_t lost = r->replaced_bytes + r->invisible_bytes + reserved;
  r->used_bytes = r->bytes - lost;
  TARN_REQUIRE(f->allow_loss || r->given == 0 || (double)lost <= TARN_VOCAB_MOST_LOST * (double)r->bytes, DATA,
               "%.1f %% of the text cannot be used (%lld of %lld bytes: %lld are no UTF-8, %lld in lines without a "
               "visible character, %lld of U+2585, which SentencePiece keeps for itself); more than %g %% is refused "
               "without --allow-loss",
               100.0 * (double)lost / (double)r->bytes, (long long)lost, (long long)r->bytes,
               (long long)r->replaced_bytes, (long long)r->invisible_bytes, (long long)reserved,
               100.0 * TARN_VOCAB_MOST_LOST);
  TARN_REQUIRE(!f->late || !wants_joiners(f), DATA,
               "%" PRId64
               " lines spell words with U+200C or U+200D, which the default normalization loses, and a pipe cannot be "
               "looked at before a number of sentences is drawn from it; give --normalization nmt_nfkc_joiners, or "
               "nmt_nfkc to lose them",
               r->joined);
  return TARN_STATUS_OK;
}

static tarn_status feed_next(void *user, const char **text, size_t *length) {
  feed *f = user;
  for (;;) {
    bool within, within_word = false, any = true, visible = true;
    size_t next, word_next = 0;
    *text = NULL;
    if (!f->rest || f->rest_length == 0) TARN_TRY(next_line(f));
    if (!f->rest) return finish(f);
    *text = f->rest;
    *length = tarn__cut(&next, &within, f->rest, f->rest_length, f->pieces ? TARN__CUT_LONGEST : SIZE_MAX);
    const size_t words =
        f->pieces ? tarn__cut_words(&word_next, &within_word, *text, *length, TARN__CUT_LONGEST_WORD) : *length;
    if (words < *length) {
      *length = words;
      next = word_next;
      within = within_word;
    }
    f->rest += next;
    f->rest_length -= next;
    f->report.split_words += within;
    if (f->pieces) {
      TARN_TRY(leave_out_reserved(f, text, length));
      look(&any, &visible, *text, *length);
    }
    f->report.given += visible;
    if (visible) return TARN_STATUS_OK;
    if (any) f->report.invisible_bytes += (int64_t)*length;
  }
}

// Peak bytes per byte of text while SentencePiece trains, measured on English (books, Wikipedia); less for long texts,
// whose words repeat. Memory of the program without a text.
enum { BPE_COST = 10, UNIGRAM_COST = 27, NO_TEXT = 24000000 };

static size_t sample_room(const tarn_vocab_options *o) {
  const int64_t memory = o->memory > 0 ? o->memory : TARN_VOCAB_MEMORY;
  return (size_t)((memory - NO_TEXT) / (o->type == TARN_VOCAB_TYPE_BPE ? BPE_COST : UNIGRAM_COST));
}

// Reads the whole text.
static tarn_status draw(feed *f) {
  tarn__line_sample *s = &f->sample;
  for (;;) {
    const char *text;
    size_t length;
    TARN_TRY(feed_next(f, &text, &length));
    if (!text) break;
    TARN_TRY(tarn__line_sample_put(s, text, length));
  }
  if (s->kept < s->given) f->report.drawn = s->kept;
  return TARN_STATUS_OK;
}

// Returns the lines of the drawn sample.
static tarn_status sampled_next(void *user, const char **text, size_t *length) {
  feed *f = user;
  tarn__line_sample *s = &f->sample;
  tarn__line_sample_take(s, text, length);
  if (!*text) tarn__line_sample_close(s);  // the trainer has a copy
  return TARN_STATUS_OK;
}

static void note_pieces(void *user, double pieces, double share) {
  tarn__work_at(&((feed *)user)->work, pieces, share);
}

// Whether all files can be read twice.
static bool are_files(const feed *f) {
  for (size_t i = 0; i < f->count; i++) {
    struct stat info;
    if (stat(f->files[i], &info) != 0 || !S_ISREG(info.st_mode)) return false;
  }
  return true;
}

// Reads all lines of files ahead of the real pass.
static tarn_status look_ahead(bool *joiners, const feed *whole) {
  feed f = {.files = whole->files, .count = whole->count, .pieces = true};
  tarn_status status;
  do status = next_line(&f);
  while (status == TARN_STATUS_OK && f.rest);
  *joiners = wants_joiners(&f);
  tarn__lines_close(&f.lines);
  return status;
}

static tarn_status count_characters(int64_t *characters, const void *bytes, size_t size) {
  tarn__spm_list list = {0};
  const tarn_status status = tarn__spm_list_read(&list, bytes, size);
  for (size_t i = 0; status == TARN_STATUS_OK && i < list.count; i++) {
    int32_t code;
    const tarn__spm_entry *entry = &list.entries[i];
    *characters +=
        entry->type == TARN__SPM_NORMAL && tarn__utf8_decode(&code, entry->text, entry->length) == entry->length;
  }
  tarn__spm_list_close(&list);
  return status;
}

// Takes the requested rule, or finds one, and trains.
static tarn_status train_pieces(char **bytes, size_t *size, feed *f, const tarn_vocab_options *options) {
  tarn_vocab_options own = *options;
  const bool found = options->normalization == TARN_VOCAB_NORMALIZATION_AUTO;
  bool joiners = false;
  if (f->sampled)
    TARN_TRY(draw(f));
  else if (found && are_files(f))
    TARN_TRY(look_ahead(&joiners, f));
  else
    f->late = found;
  if (f->sampled) joiners = wants_joiners(f);
  if (found && options->lowercase)
    own.normalization = joiners ? TARN_VOCAB_NORMALIZATION_NMT_NFKC_CF_JOINERS : TARN_VOCAB_NORMALIZATION_NMT_NFKC_CF;
  else if (found)
    own.normalization = joiners ? TARN_VOCAB_NORMALIZATION_NMT_NFKC_JOINERS : TARN_VOCAB_NORMALIZATION_NMT_NFKC;
  f->report.normalization = own.normalization;
  TARN_TRY(
      tarn__spm_train(bytes, size, f->sampled ? sampled_next : feed_next, f->work.fn ? note_pieces : NULL, f, &own));
  return count_characters(&f->report.characters, *bytes, *size);
}

// Options that do not apply to a type must have their defaults.
static tarn_status check_type(size_t count, const tarn_vocab_options *o) {
  tarn_vocab_options fresh;
  tarn_vocab_default(&fresh);
  const bool byte = o->type == TARN_VOCAB_TYPE_BYTE;
  const bool counted = o->type == TARN_VOCAB_TYPE_WHITESPACE || o->type == TARN_VOCAB_TYPE_CHAR;
  const bool pieces = !byte && !counted;
  TARN_REQUIRE(!byte || count == 0, USAGE, "a byte vocabulary has the 256 bytes: it takes no text");
  TARN_REQUIRE(!byte || o->size == fresh.size, USAGE, "a byte vocabulary has 259 tokens: it takes no size");
  TARN_REQUIRE(!byte || !o->lowercase, USAGE, "a byte vocabulary keeps every byte: it cannot fold the case");
  TARN_REQUIRE(counted || o->minimum_count == fresh.minimum_count, USAGE,
               "only whitespace and character vocabularies take a minimum count");
  TARN_REQUIRE(pieces || o->character_coverage == fresh.character_coverage, USAGE,
               "only SentencePiece's vocabularies (bpe, unigram) take a character coverage");
  TARN_REQUIRE(pieces || !o->byte_fallback, USAGE,
               "only SentencePiece's vocabularies (bpe, unigram) have bytes for characters without a token");
  TARN_REQUIRE(pieces || o->sentences == fresh.sentences, USAGE,
               "only SentencePiece's vocabularies (bpe, unigram) take a number of sentences");
  TARN_REQUIRE(
      pieces || o->normalization == fresh.normalization, USAGE,
      "only SentencePiece's vocabularies (bpe, unigram) take a normalization; the others leave a text as it is");
  TARN_REQUIRE((int)o->normalization >= 0 && (int)o->normalization < TARN_VOCAB_NORMALIZATION_COUNT, USAGE,
               "there is no normalization %d", (int)o->normalization);
  TARN_REQUIRE(!o->lowercase || o->normalization == fresh.normalization, USAGE,
               "lower case is a normalization itself, nmt_nfkc_cf; give one of the two");
  TARN_REQUIRE(o->sentences == 0 || o->sentences > 100, USAGE,
               "SentencePiece draws at least 101 sentences (0: all of them), not %lld", (long long)o->sentences);
  TARN_REQUIRE(pieces || o->threads == fresh.threads, USAGE,
               "only SentencePiece's vocabularies (bpe, unigram) are trained by threads");
  TARN_REQUIRE(pieces || o->memory == 0, USAGE,
               "only SentencePiece's vocabularies (bpe, unigram) keep their text in memory, which can be limited");
  return TARN_STATUS_OK;
}

static tarn_status check_options(size_t count, const tarn_vocab_options *o) {
  TARN_REQUIRE(count > 0 || o->type == TARN_VOCAB_TYPE_BYTE, USAGE, "a vocabulary needs at least one text file");
  const int least = tarn__vocab_count_specials(o) + (o->byte_fallback ? 256 : 0) + 1;
  TARN_REQUIRE(o->size >= least && o->size <= 1000000, USAGE, "the size of a vocabulary%s%s is %d to 1000000, not %lld",
               o->mask_symbols ? " with <cls>, <sep> and <mask>" : "", o->byte_fallback ? " with bytes" : "", least,
               (long long)o->size);
  TARN_REQUIRE(o->character_coverage == 0 || (o->character_coverage >= 0.98 && o->character_coverage <= 1.0), USAGE,
               "the character coverage is 0.98 to 1, not %g", o->character_coverage);
  TARN_REQUIRE(o->minimum_count >= 1, USAGE, "the minimum count is at least 1, not %lld", (long long)o->minimum_count);
  TARN_REQUIRE(o->threads >= 1 && o->threads <= 1024, USAGE, "the number of threads is 1 to 1024, not %d", o->threads);
  TARN_REQUIRE(o->memory == 0 || o->memory >= TARN_VOCAB_LEAST_MEMORY, USAGE,
               "training a vocabulary takes %d bytes of memory at least, not %lld", TARN_VOCAB_LEAST_MEMORY,
               (long long)o->memory);
  TARN_REQUIRE(o->memory == 0 || o->sentences == 0, USAGE,
               "a vocabulary is trained on a number of lines (sentences) or on what a memory is enough for, not both");
  return check_type(count, o);
}

// Makes the bytes of a vocabulary from the text of the feed.
static tarn_status train(char **bytes, size_t *size, feed *f, const tarn_vocab_options *options) {
  switch (options->type) {
    case TARN_VOCAB_TYPE_BYTE:
      return tarn__bytes_train(bytes, size, options->mask_symbols);
    case TARN_VOCAB_TYPE_CHAR:
      return tarn__chars_train(bytes, size, feed_next, f, options);
    case TARN_VOCAB_TYPE_WHITESPACE:
      return tarn__words_train(bytes, size, feed_next, f, options);
    case TARN_VOCAB_TYPE_BPE:
    case TARN_VOCAB_TYPE_UNIGRAM:
      return train_pieces(bytes, size, f, options);
  }
  return tarn__fail(TARN_STATUS_USAGE, "there is no type %d of a vocabulary", (int)options->type);
}

static void warn(const tarn_vocab_report *r) {
  if (r->split_words)
    tarn__log(TARN_LOG_WARNING, "words of more than %d bytes were split, %lld times in all", TARN__CUT_LONGEST_WORD,
              (long long)r->split_words);
}

tarn_status tarn_vocab_train(const char *output, const char *const *files, size_t count,
                             const tarn_vocab_options *options) {
  TARN_TRY(check_options(count, options));
  TARN_TRY(tarn__mkdir_of_file(output));
  feed f = {.files = files,
            .count = count,
            .allow_loss = options->allow_loss,
            .pieces = options->type == TARN_VOCAB_TYPE_BPE || options->type == TARN_VOCAB_TYPE_UNIGRAM};
  f.sampled = f.pieces && options->sentences == 0;
  if (f.sampled) tarn__line_sample_open(&f.sample, sample_room(options));
  char *bytes = NULL;
  size_t size = 0;
  tarn__work_begin(&f.work, "reading text", "lines");
  tarn_status status = train(&bytes, &size, &f, options);
  // A failure while reading a file names it.
  tarn__work_end(&f.work);
  const bool reading = f.lines.input.open;
  tarn__lines_close(&f.lines);
  tarn__free(f.room);
  tarn__line_sample_close(&f.sample);
  if (status == TARN_STATUS_DATA && f.report.given == 0 && !reading)
    status = tarn__fail(TARN_STATUS_DATA, "there is no text to train a vocabulary on");
  if (status == TARN_STATUS_DATA && count > 0 && !reading)
    status = tarn__fail_prefix(status, count > 1 ? "%s and others: " : "%s: ", files[0]);
  if (status == TARN_STATUS_OK && !options->report) warn(&f.report);
  if (status == TARN_STATUS_OK) status = tarn__file_write(output, bytes, size);
  if (options->report) *options->report = f.report;
  tarn__free(bytes);
  return status;
}
