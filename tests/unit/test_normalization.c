// How vocabularies change a text before they cut it: each rule, the joiners of scripts that spell words with them, from
// the vocabulary through a shard and back, and what is lost where.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "data/shard.h"
#include "sandbox.h"
#include "tarn/data.h"
#include "tarn/text.h"
#include "tarn/vocab.h"
#include "text/joiners.h"
#include "text/spm.h"

#define ZWNJ "\xE2\x80\x8C"
#define ZWJ "\xE2\x80\x8D"

// Sri Lanka in Sinhala; "I want" and "books" in Persian; half forms of Hindi; Malayalam and Bengali, spelt with
// joiners.
static const char *const LINES[] = {"ශ්" ZWJ "රී ලංකා ප්" ZWJ "රජාතාන්ත්" ZWJ "රික", "می" ZWNJ "خواهم کتاب" ZWNJ "ها را",
                                    "क्" ZWJ "ष और र्" ZWJ "य क्" ZWNJ "ष", "അവന്" ZWJ " അവന്" ZWJ "റെ", "র" ZWJ "্যাব"};
enum { LINE_COUNT = sizeof LINES / sizeof *LINES };

static void must(tarn_status status) {
  if (status != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

static void write_lines(const char *path, const char *const *lines, size_t count, int times) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  for (int i = 0; i < times; i++)
    for (size_t k = 0; k < count; k++) fprintf(file, "%s\n", lines[k]);
  assert_int_equal(fclose(file), 0);
}

static tarn_vocab_normalization train(const char *output, const char *path, tarn_vocab_type type,
                                      tarn_vocab_normalization normalization, int64_t size) {
  tarn_vocab_options options;
  tarn_vocab_report report;
  tarn_vocab_default(&options);
  options.type = type;
  options.normalization = normalization;
  options.report = &report;
  if (type != TARN_VOCAB_TYPE_BYTE) options.size = size;
  must(tarn_vocab_train(output, &path, type == TARN_VOCAB_TYPE_BYTE ? 0 : 1, &options));
  return report.normalization;
}

// What encoding and decoding make of a text.
static void expect(const tarn_vocab *vocab, const char *text, const char *expected) {
  tarn_vocab_ids ids = {0};
  tarn_vocab_text back = {0};
  must(tarn_vocab_encode(vocab, &ids, text, strlen(text)));
  must(tarn_vocab_decode(vocab, &back, ids.data, ids.count));
  if (strcmp(back.data, expected) != 0)
    fail_msg("%s: \"%s\" became \"%s\", expected \"%s\"", tarn_vocab_normalization_of(vocab), text, back.data,
             expected);
  tarn_vocab_ids_close(&ids);
  tarn_vocab_text_close(&back);
}

static void sees_where_joiners_spell(void **state) {
  (void)state;
  static const char *const NONE[] = {"",
                                     ZWJ,
                                     "Auf" ZWNJ "lage",
                                     "\xF0\x9F\x91\xA9" ZWJ "\xF0\x9F\x92\xBB",  // an emoji of two
                                     "می" ZWNJ " خواهم",
                                     "می" ZWNJ,
                                     ZWNJ "می",
                                     "x" ZWNJ "م",
                                     "م" ZWNJ "1",
                                     "\xE2\x80\x99" ZWNJ "\xE2\x80",
                                     "中" ZWJ "文"};
  for (int i = 0; i < LINE_COUNT; i++)
    if (!tarn__joiners_spell(LINES[i], strlen(LINES[i]))) fail_msg("%s has joiners", LINES[i]);
  for (size_t i = 0; i < sizeof NONE / sizeof *NONE; i++)
    if (tarn__joiners_spell(NONE[i], strlen(NONE[i]))) fail_msg("%s has joiners", NONE[i]);
  assert_true(tarn__joiners_spell("مُ" ZWNJ "ها", strlen("مُ" ZWNJ "ها")));  // behind a vowel sign
  assert_true(tarn__joiners_spell("ᠨ" ZWJ "ᠠ", strlen("ᠨ" ZWJ "ᠠ")));
}

// Without being asked for, and from the vocabulary through a shard and back, bit for bit.
static void joiners_survive_a_shard(void **state) {
  (void)state;
  const tarn_vocab_type types[] = {TARN_VOCAB_TYPE_BPE, TARN_VOCAB_TYPE_UNIGRAM, TARN_VOCAB_TYPE_CHAR,
                                   TARN_VOCAB_TYPE_BYTE, TARN_VOCAB_TYPE_WHITESPACE};
  write_lines("text", LINES, LINE_COUNT, 20);
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    const bool pieces = types[i] == TARN_VOCAB_TYPE_BPE || types[i] == TARN_VOCAB_TYPE_UNIGRAM;
    const tarn_vocab_normalization taken =
        train("v", "text", types[i], TARN_VOCAB_NORMALIZATION_AUTO, types[i] == TARN_VOCAB_TYPE_UNIGRAM ? 50 : 70);
    assert_int_equal(taken, pieces ? TARN_VOCAB_NORMALIZATION_NMT_NFKC_JOINERS : TARN_VOCAB_NORMALIZATION_AUTO);
    tarn_vocab *vocab;
    must(tarn_vocab_open(&vocab, "v"));
    assert_string_equal(tarn_vocab_normalization_of(vocab), pieces ? "nmt_nfkc_joiners" : "identity");
    assert_true(tarn_vocab_keeps_joiners(vocab) && tarn_vocab_is("v") && !tarn_vocab_is("text"));
    tarn_prepare_options options;
    tarn_prepare_result result;
    tarn_prepare_default(&options);
    options.vocab = "v", options.text = "text", options.output = "data";
    must(tarn_prepare_run(&result, &options));
    tarn__shard shard;
    must(tarn__shard_open(&shard, "data"));
    assert_int_equal(shard.pairs, 20 * LINE_COUNT);
    for (int64_t line = 0; line < shard.pairs; line++) {
      int32_t ids[512];
      tarn_vocab_text text = {0};
      const int64_t length = tarn__shard_target_length(&shard, line);
      assert_in_range(length, 2, 512);
      tarn__shard_target(&shard, line, ids);
      must(tarn_vocab_decode(vocab, &text, ids, (size_t)length));
      assert_string_equal(text.data, LINES[line % LINE_COUNT]);
      tarn_vocab_text_close(&text);
    }
    tarn__shard_close(&shard);
    tarn_vocab_close(&vocab);
  }
}

// Each rule on what the others treat otherwise.
static void each_rule_does_what_it_says(void **state) {
  (void)state;
  enum { NMT = 1, NFKC = 2, FOLDED = 4, JOINERS = 8 };
  static const struct {
    tarn_vocab_normalization normalization;
    const char *name;
    int does;
  } rules[] = {{TARN_VOCAB_NORMALIZATION_NMT_NFKC, "nmt_nfkc", NMT | NFKC},
               {TARN_VOCAB_NORMALIZATION_NMT_NFKC_JOINERS, "nmt_nfkc_joiners", NMT | NFKC | JOINERS},
               {TARN_VOCAB_NORMALIZATION_NMT_NFKC_CF, "nmt_nfkc_cf", NMT | NFKC | FOLDED},
               {TARN_VOCAB_NORMALIZATION_NMT_NFKC_CF_JOINERS, "nmt_nfkc_cf_joiners", NMT | NFKC | FOLDED | JOINERS},
               {TARN_VOCAB_NORMALIZATION_NFKC, "nfkc", NFKC | JOINERS},
               {TARN_VOCAB_NORMALIZATION_NFKC_CF, "nfkc_cf", NFKC | FOLDED | JOINERS},
               {TARN_VOCAB_NORMALIZATION_IDENTITY, "identity", JOINERS}};
  // Marks of direction and of format, variation selectors and combining marks: what each rule keeps.
  static const char *const KEPT =
      "x\xC2\xADx\xEF\xB8\x8Fx\xF3\xA0\x84\x80x\xD8\x9Cx\xE2\x80\xAAx\xE2\x81\xA6x\xCD\x8F"
      "q\xCC\xA3x\xE2\x81\xA0x م" ZWJ "ُه x\xE1\xA0\x8Bx\xE1\xA0\x8Ex";
  static const char *const ALL[] = {"می" ZWNJ "خواهم", "Ab a b aB", "m² ม ำ m2", "x\xE2\x80\x8Fx x\xE2\x80\x8Bx x"};
  write_lines("each", (const char *const[]){ALL[0], ALL[1], ALL[2], ALL[3], KEPT, "ำ m2 ํา", "x\x01x"}, 7, 20);
  assert_int_equal(TARN_VOCAB_NORMALIZATION_COUNT, 1 + sizeof rules / sizeof *rules);
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
    const int does = rules[i].does;
    tarn_vocab *vocab;
    assert_string_equal(tarn_vocab_normalization_name(rules[i].normalization), rules[i].name);
    assert_int_equal(train("each.v", "each", TARN_VOCAB_TYPE_BPE, rules[i].normalization, 64), rules[i].normalization);
    must(tarn_vocab_open(&vocab, "each.v"));
    assert_string_equal(tarn_vocab_normalization_of(vocab), rules[i].name);
    assert_string_equal(tarn_vocab_kind(vocab), "SentencePiece bpe");
    assert_int_equal(tarn_vocab_keeps_joiners(vocab), !!(does & JOINERS));
    expect(vocab, ALL[0], does & JOINERS ? ALL[0] : "می خواهم");
    expect(vocab, "Ab", does & FOLDED ? "ab" : "Ab");
    expect(vocab, "m²", does & NFKC ? "m2" : "m²");
    expect(vocab, "ำ", does & NFKC ? "ํา" : "ำ");  // one character of Thai, which is two to NFKC
    expect(vocab, "x\xE2\x80\x8Fx", does & NMT ? "x x" : "x\xE2\x80\x8Fx");
    expect(vocab, "x\xE2\x80\x8Bx", does & NMT ? "x x" : "x\xE2\x80\x8Bx");
    expect(vocab, "x\x01x", does & NMT ? "xx" : "x\x01x");
    expect(vocab, "x\tx", does & NMT ? "x x" : "x \xE2\x81\x87 x");  // unknown: SentencePiece keeps the tab for itself
    expect(vocab, "  x   x ", "x x");
    expect(vocab, KEPT, KEPT);
    tarn_vocab_close(&vocab);
  }
  assert_string_equal(tarn_vocab_normalization_name(TARN_VOCAB_NORMALIZATION_AUTO), "auto");
  assert_string_equal(tarn_vocab_normalization_name((tarn_vocab_normalization)99), "");
}

// The rules that keep joiners are SentencePiece's own in all other characters.
static void only_the_joiners_differ(void **state) {
  (void)state;
  static const tarn_vocab_normalization pairs[][2] = {
      {TARN_VOCAB_NORMALIZATION_NMT_NFKC, TARN_VOCAB_NORMALIZATION_NMT_NFKC_JOINERS},
      {TARN_VOCAB_NORMALIZATION_NMT_NFKC_CF, TARN_VOCAB_NORMALIZATION_NMT_NFKC_CF_JOINERS}};
  for (int p = 0; p < 2; p++) {
    const void *tables[2];
    size_t sizes[2];
    tarn_vocab *vocabs[2];
    for (int i = 0; i < 2; i++) {
      const char *const path = i ? "b" : "a";
      train(path, "each", TARN_VOCAB_TYPE_BPE, pairs[p][i], 64);
      must(tarn_vocab_open(&vocabs[i], path));
      size_t size;
      const void *bytes = tarn_vocab_bytes(vocabs[i], &size);
      assert_true(tarn__spm_table(&tables[i], &sizes[i], bytes, size));
    }
    assert_int_equal(sizes[0], sizes[1]);
    int differ = 0;
    for (size_t k = 0; k < sizes[0]; k++) {
      const int bits = ((const uint8_t *)tables[0])[k] ^ ((const uint8_t *)tables[1])[k];
      assert_true(bits == 0 || bits == 1);
      differ += bits;
    }
    assert_in_range(differ, 1, 2);  // a bit a joiner; U+200D is no blank in all versions
    for (int i = 0; i < 2; i++) tarn_vocab_close(&vocabs[i]);
  }
}

// Texts without such letters get what they got before, and a few lines among many do not change that.
static void the_default_follows_the_text(void **state) {
  (void)state;
  static const char *const PLAIN[] = {"Auf" ZWNJ "lage und \xF0\x9F\x91\xA9" ZWJ "\xF0\x9F\x92\xBB", "Der Ball"};
  write_lines("plain", PLAIN, 2, 30);
  assert_int_equal(train("v", "plain", TARN_VOCAB_TYPE_BPE, TARN_VOCAB_NORMALIZATION_AUTO, 30),
                   TARN_VOCAB_NORMALIZATION_NMT_NFKC);
  for (int joined = 1; joined <= 2; joined++) {
    FILE *file = fopen("many", "wb");
    assert_non_null(file);
    for (int i = 0; i < 20000; i++) fputs(i < joined ? "می" ZWNJ "خواهم\n" : i % 2 ? "a b\n" : "\n b a\n", file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(train("v", "many", TARN_VOCAB_TYPE_BPE, TARN_VOCAB_NORMALIZATION_AUTO, 16),
                     joined < 2 ? TARN_VOCAB_NORMALIZATION_NMT_NFKC : TARN_VOCAB_NORMALIZATION_NMT_NFKC_JOINERS);
  }
  const char *const files[] = {"text"};
  tarn_vocab_options options;
  tarn_vocab_report report;
  tarn_vocab_default(&options);
  options.report = &report;
  options.size = 70;
  options.lowercase = true;
  must(tarn_vocab_train("v", files, 1, &options));
  assert_int_equal(report.normalization, TARN_VOCAB_NORMALIZATION_NMT_NFKC_CF_JOINERS);
  assert_int_equal(report.joined, 20 * LINE_COUNT);
  options.normalization = TARN_VOCAB_NORMALIZATION_NFKC;
  assert_int_equal(tarn_vocab_train("v", files, 1, &options), TARN_STATUS_USAGE);
  options.lowercase = false;
  options.type = TARN_VOCAB_TYPE_CHAR;
  assert_int_equal(tarn_vocab_train("v", files, 1, &options), TARN_STATUS_USAGE);
  options.type = TARN_VOCAB_TYPE_BPE;
  options.normalization = (tarn_vocab_normalization)99;
  assert_int_equal(tarn_vocab_train("v", files, 1, &options), TARN_STATUS_USAGE);
}

// BERT's rule removes characters of format and, without accents, marks; it is BERT's, so it stays.
static void wordpiece_removes_what_bert_removes(void **state) {
  (void)state;
  static const char TOKENS[] = "[UNK]\n[CLS]\n[SEP]\nمی\n##خواهم\na\n##\xEF\xB8\x8F\n";
  sandbox_write("vocab.txt", TOKENS, sizeof TOKENS - 1);
  for (int i = 0; i < 2; i++) {
    tarn_vocab *vocab;
    must(tarn_vocab_import_wordpiece("bert", "vocab.txt", i ? TARN_WORDPIECE_UNCASED : TARN_WORDPIECE_CASED));
    must(tarn_vocab_open(&vocab, "bert"));
    assert_string_equal(tarn_vocab_kind(vocab), "WordPiece");
    assert_string_equal(tarn_vocab_normalization_of(vocab), i ? "BERT, lower case, no accents" : "BERT");
    assert_false(tarn_vocab_keeps_joiners(vocab));
    expect(vocab, "می" ZWNJ "خواهم", "میخواهم");
    expect(vocab, "می\xC2\xADخواهم\xE2\x80\x8F", "میخواهم");
    expect(vocab, "a\xEF\xB8\x8F", i ? "a" : "a\xEF\xB8\x8F");
    tarn_vocab_close(&vocab);
  }
}

// Splitting into sentences takes away white space at their borders and nothing else.
static void sentences_keep_all_marks(void **state) {
  (void)state;
  static const char *const MARKS[] = {
      "\xC2\xAD",     ZWNJ,           ZWJ,           "\xE2\x80\x8B", "\xE2\x80\x8E",     "\xE2\x80\x8F",
      "\xE2\x80\xAA", "\xE2\x81\xA6", "\xD8\x9C",    "\xEF\xB8\x8F", "\xF3\xA0\x84\x80", "\xCC\x81",
      "\xE0\xA5\x8D", "\xD9\x8B",     "\xE1\xA0\x8E"};
  const char *const path = "marks";
  for (size_t i = 0; i < sizeof MARKS / sizeof *MARKS; i++) {
    const char *m = MARKS[i];
    char text[256], found[256] = "";
    tarn_sentences_options options;
    tarn_sentences_result result;
    tarn_sentences_default(&options);
    snprintf(text, sizeof text, "%sHe s%saw%s it.%s She%s left%s.\n", m, m, m, m, m, m);
    sandbox_write(path, text, strlen(text));
    must(tarn_sentences_write(&result, "out", &path, 1, &options));
    FILE *file = fopen("out", "rb");
    assert_non_null(file);
    found[fread(found, 1, sizeof found - 1, file)] = 0;
    fclose(file);
    assert_int_equal(strlen(found), strlen(text));  // a line end in place of a blank
    for (char *c = found; *c && c[1]; c++)
      if (*c == '\n') *c = ' ';
    assert_string_equal(found, text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sees_where_joiners_spell),     cmocka_unit_test(joiners_survive_a_shard),
      cmocka_unit_test(each_rule_does_what_it_says),  cmocka_unit_test(only_the_joiners_differ),
      cmocka_unit_test(the_default_follows_the_text), cmocka_unit_test(wordpiece_removes_what_bert_removes),
      cmocka_unit_test(sentences_keep_all_marks),
  };
  return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
