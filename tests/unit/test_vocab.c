// Vocabularies: round trips, special ids, determinism, and files that are damaged.
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/random.h"
#include "sandbox.h"
#include "tarn/vocab.h"
#include "text/lines.h"
#include "text/spm.h"
#include "text/utf8.h"

static const char *const NOUN[] = {"Haus", "Mädchen", "Vögel", "Straße", "Lehrer", "Garten", "Küche", "Bücher"};
static const char *const VERB[] = {"sieht", "sucht", "findet", "kauft", "verkauft", "öffnet", "schließt", "liebt"};

static void write_text(const char *path) {
  char line[256];
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  for (int i = 0; i < 512; i++) {
    snprintf(line, sizeof line, "Der %s %s das %s, und %d %s nicht.\n", NOUN[i % 8], VERB[i / 8 % 8], NOUN[i / 64],
             i % 10, VERB[(i * 5 + 3) % 8]);
    fputs(line, file);
  }
  assert_int_equal(fclose(file), 0);
}

static void train(const char *output, tarn_vocab_type type, bool lowercase) {
  const char *files[] = {"text.de"};
  tarn_vocab_options options;
  tarn_vocab_default(&options);
  options.type = type;
  options.size = 70;
  options.lowercase = lowercase;
  write_text(files[0]);
  tarn_status status = tarn_vocab_train(output, files, 1, &options);
  if (status) print_error("%s\n", tarn_error_message());
  assert_int_equal(status, TARN_STATUS_OK);
}

static void round_trip(const tarn_vocab *vocab, const char *text, const char *expected) {
  tarn_vocab_ids ids = {0};
  tarn_vocab_text back = {0};
  assert_int_equal(tarn_vocab_encode(vocab, &ids, text, strlen(text)), TARN_STATUS_OK);
  for (size_t i = 0; i < ids.count; i++) assert_true(ids.data[i] >= 0 && ids.data[i] < tarn_vocab_size(vocab));
  assert_int_equal(tarn_vocab_decode(vocab, &back, ids.data, ids.count), TARN_STATUS_OK);
  assert_string_equal(back.data, expected);
  assert_int_equal(back.length, strlen(expected));
  tarn_vocab_ids_close(&ids);
  tarn_vocab_text_close(&back);
}

static void test_types(void **state) {
  (void)state;
  const tarn_vocab_type types[] = {TARN_VOCAB_TYPE_BPE, TARN_VOCAB_TYPE_UNIGRAM, TARN_VOCAB_TYPE_WHITESPACE};
  for (int i = 0; i < 3; i++) {
    train("v.model", types[i], false);
    tarn_vocab *vocab;
    assert_int_equal(tarn_vocab_open(&vocab, "v.model"), TARN_STATUS_OK);
    assert_int_equal(tarn_vocab_unk(vocab), 0);
    assert_int_equal(tarn_vocab_bos(vocab), 1);
    assert_int_equal(tarn_vocab_eos(vocab), 2);
    assert_string_equal(tarn_vocab_piece(vocab, 2), "</s>");
    assert_string_equal(tarn_vocab_piece(vocab, -1), "");
    assert_string_equal(tarn_vocab_piece(vocab, tarn_vocab_size(vocab)), "");
    if (types[i] != TARN_VOCAB_TYPE_WHITESPACE) assert_int_equal(tarn_vocab_size(vocab), 70);
    round_trip(vocab, "Der Vögel verkauft das Straße, und 3 sieht nicht.",
               "Der Vögel verkauft das Straße, und 3 sieht nicht.");
    round_trip(vocab, "", "");
    round_trip(vocab, "  Der \t das ", "Der das");
    int32_t bad = tarn_vocab_size(vocab);
    tarn_vocab_text text = {0};
    assert_int_equal(tarn_vocab_decode(vocab, &text, &bad, 1), TARN_STATUS_DATA);
    const int32_t special[] = {1, 2, 2};
    assert_int_equal(tarn_vocab_decode(vocab, &text, special, 3), TARN_STATUS_OK);
    assert_string_equal(text.data, "");
    tarn_vocab_text_close(&text);
    tarn_vocab_close(&vocab);
    assert_null(vocab);
    tarn_vocab_close(&vocab);
  }
}

// Characters without a token are unknown, or with bytes come back.
static void test_rare_characters(void **state) {
  (void)state;
  const char *files[] = {"text.de"};
  static const char text[] = "Der Vögel sieht 猫 und \xF0\x9F\x90\x88.";
  write_text(files[0]);
  for (int how = 0; how < 4; how++) {
    tarn_vocab_report report = {0};
    tarn_vocab_options options;
    tarn_vocab *vocab;
    tarn_vocab_ids ids = {0};
    size_t unknown = 0;
    tarn_vocab_default(&options);
    options.type = how % 2 ? TARN_VOCAB_TYPE_UNIGRAM : TARN_VOCAB_TYPE_BPE;
    options.byte_fallback = how >= 2;
    options.size = how >= 2 ? 320 : 70;
    options.report = &report;
    assert_int_equal(tarn_vocab_train("v.model", files, 1, &options), TARN_STATUS_OK);
    assert_in_range(report.characters, 30, 50);
    assert_int_equal(tarn_vocab_open(&vocab, "v.model"), TARN_STATUS_OK);
    assert_int_equal(tarn_vocab_encode(vocab, &ids, text, strlen(text)), TARN_STATUS_OK);
    for (size_t i = 0; i < ids.count; i++) unknown += ids.data[i] == tarn_vocab_unk(vocab);
    assert_int_equal(unknown, how < 2 ? 2 : 0);
    if (how >= 2) round_trip(vocab, text, text);
    tarn_vocab_ids_close(&ids);
    tarn_vocab_close(&vocab);
  }
}

// A text must not be able to end a sentence or to begin one.
static void test_no_special_from_text(void **state) {
  (void)state;
  const tarn_vocab_type types[] = {TARN_VOCAB_TYPE_BPE, TARN_VOCAB_TYPE_UNIGRAM, TARN_VOCAB_TYPE_WHITESPACE};
  for (int i = 0; i < 3; i++) {
    train("v.model", types[i], false);
    tarn_vocab *vocab;
    tarn_vocab_ids ids = {0};
    assert_int_equal(tarn_vocab_open(&vocab, "v.model"), TARN_STATUS_OK);
    const char text[] = "</s> <s> <unk> \xFF\xFE\0 \xE2\x98\x83 </s>";
    assert_int_equal(tarn_vocab_encode(vocab, &ids, text, sizeof text - 1), TARN_STATUS_OK);
    assert_true(ids.count > 0);
    for (size_t k = 0; k < ids.count; k++) assert_true(ids.data[k] != 1 && ids.data[k] != 2);
    tarn_vocab_ids_close(&ids);
    tarn_vocab_close(&vocab);
  }
}

static void test_lowercase(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    train("v.model", i ? TARN_VOCAB_TYPE_WHITESPACE : TARN_VOCAB_TYPE_BPE, true);
    tarn_vocab *vocab;
    assert_int_equal(tarn_vocab_open(&vocab, "v.model"), TARN_STATUS_OK);
    round_trip(vocab, "Der VÖGEL Öffnet", "der vögel öffnet");
    tarn_vocab_close(&vocab);
  }
}

static void test_deterministic_and_from_memory(void **state) {
  (void)state;
  const tarn_vocab_type types[] = {TARN_VOCAB_TYPE_BPE, TARN_VOCAB_TYPE_UNIGRAM, TARN_VOCAB_TYPE_WHITESPACE};
  for (int i = 0; i < 3; i++) {
    tarn_vocab *first;
    tarn_vocab *second;
    tarn_vocab *copy;
    train("a.model", types[i], false);
    train("b.model", types[i], false);
    assert_int_equal(tarn_vocab_open(&first, "a.model"), TARN_STATUS_OK);
    assert_int_equal(tarn_vocab_open(&second, "b.model"), TARN_STATUS_OK);
    assert_string_equal(tarn_vocab_hash(first), tarn_vocab_hash(second));
    size_t size;
    const void *bytes = tarn_vocab_bytes(first, &size);
    assert_int_equal(tarn_vocab_open_memory(&copy, bytes, size), TARN_STATUS_OK);
    assert_string_equal(tarn_vocab_hash(first), tarn_vocab_hash(copy));
    round_trip(copy, "Der Garten liebt", "Der Garten liebt");
    tarn_vocab_close(&first);
    tarn_vocab_close(&second);
    tarn_vocab_close(&copy);
  }
}

// Frequency decides, then bytes; the limits on size and count hold.
static void test_whitespace_counts(void **state) {
  (void)state;
  const char text[] = "b b b a a a c c d </s> </s> </s> </s>\r\n\xEF\xBF\xBDx";
  const char *files[] = {"words"};
  sandbox_write("words", text, sizeof text - 1);
  tarn_vocab_options options;
  tarn_vocab_default(&options);
  options.type = TARN_VOCAB_TYPE_WHITESPACE;
  options.minimum_count = 2;
  assert_int_equal(tarn_vocab_train("w.model", files, 1, &options), TARN_STATUS_OK);
  char *bytes;
  size_t size;
  assert_int_equal(tarn__file_read("w.model", &bytes, &size), TARN_STATUS_OK);
  assert_string_equal(bytes, "tarn-vocab whitespace 1\nlowercase 0\nsize 6\n<unk>\n<s>\n</s>\na\nb\nc\n");
  tarn__free(bytes);
  options.size = 5;
  assert_int_equal(tarn_vocab_train("w.model", files, 1, &options), TARN_STATUS_OK);
  tarn_vocab *vocab;
  assert_int_equal(tarn_vocab_open(&vocab, "w.model"), TARN_STATUS_OK);
  assert_int_equal(tarn_vocab_size(vocab), 5);
  tarn_vocab_close(&vocab);
  options.minimum_count = 9;
  assert_int_equal(tarn_vocab_train("w.model", files, 1, &options), TARN_STATUS_DATA);
}

static void test_bad_requests(void **state) {
  (void)state;
  const char *files[] = {"text.de"};
  const char *missing[] = {"text.de", "there-is-no-such-file"};
  tarn_vocab_options options;
  tarn_vocab_default(&options);
  write_text(files[0]);
  assert_int_equal(tarn_vocab_train("x", missing, 2, &options), TARN_STATUS_IO);
  assert_non_null(strstr(tarn_error_message(), "there-is-no-such-file"));
  options.size = 500000;
  assert_int_equal(tarn_vocab_train("x", files, 1, &options), TARN_STATUS_DATA);
  assert_non_null(strstr(tarn_error_message(), "too high"));
  options.size = 3;
  assert_int_equal(tarn_vocab_train("x", files, 1, &options), TARN_STATUS_USAGE);
  options.size = 70;
  assert_int_equal(tarn_vocab_train("x", files, 0, &options), TARN_STATUS_USAGE);
  options.character_coverage = 0.5;
  assert_int_equal(tarn_vocab_train("x", files, 1, &options), TARN_STATUS_USAGE);
  // What a type does not take.
  static const struct {
    tarn_vocab_type type;
    int64_t minimum_count, sentences;
    double coverage;
    const char *words;
  } unused[] = {{TARN_VOCAB_TYPE_BPE, 2, 0, 0, "take a minimum count"},
                {TARN_VOCAB_TYPE_UNIGRAM, 2, 0, 0, "take a minimum count"},
                {TARN_VOCAB_TYPE_WHITESPACE, 1, 5, 0, "take a number of sentences"},
                {TARN_VOCAB_TYPE_CHAR, 1, 0, 0.99, "take a character coverage"}};
  for (size_t i = 0; i < sizeof unused / sizeof *unused; i++) {
    tarn_vocab_default(&options);
    options.type = unused[i].type;
    options.minimum_count = unused[i].minimum_count;
    options.sentences = unused[i].sentences;
    options.character_coverage = unused[i].coverage;
    assert_int_equal(tarn_vocab_train("x", files, 1, &options), TARN_STATUS_USAGE);
    if (!strstr(tarn_error_message(), unused[i].words)) fail_msg("%s", tarn_error_message());
  }
  tarn_vocab_default(&options);
  options.byte_fallback = true;
  options.size = 259;
  assert_int_equal(tarn_vocab_train("x", files, 1, &options), TARN_STATUS_USAGE);
  assert_non_null(strstr(tarn_error_message(), "with bytes is 260 to"));
  options.type = TARN_VOCAB_TYPE_WHITESPACE;
  options.size = 1000;
  assert_int_equal(tarn_vocab_train("x", files, 1, &options), TARN_STATUS_USAGE);
  assert_non_null(strstr(tarn_error_message(), "have bytes for characters"));
  tarn_vocab_default(&options);
  options.sentences = 100;
  assert_int_equal(tarn_vocab_train("x", files, 1, &options), TARN_STATUS_USAGE);
  // Text without a visible character; SentencePiece's trainers would end the process.
  static const char *const texts[] = {"\n\n", "   \n", "\xE2\x96\x81 \xE2\x96\x81\n", "\xE2\x80\x8B\n\x01\x02\n", ""};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    for (int type = 0; type < 2; type++) {
      sandbox_write("empty", texts[i], strlen(texts[i]));
      const char *empty[] = {"empty"};
      tarn_vocab_default(&options);
      options.size = 8;
      options.type = type ? TARN_VOCAB_TYPE_UNIGRAM : TARN_VOCAB_TYPE_BPE;
      assert_int_equal(tarn_vocab_train("x", empty, 1, &options), TARN_STATUS_DATA);
      assert_string_equal(tarn_error_message(), "empty: there is no text to train a vocabulary on");
    }
  assert_false(tarn__file_exists("x"));
}

// Opens damaged bytes; if they pass, everything must still work without a crash (the sanitizers watch).
static void open_damaged(const char *bytes, size_t size, int *refused) {
  static const char text[] = "Der Ｖögel ﬁndet ½ das \xE1\xBA\x9B\xCC\xA3 Straße, ⁇ und 가\x01 ni\0cht.";
  tarn_vocab *vocab;
  if (tarn_vocab_open_memory(&vocab, bytes, size) != TARN_STATUS_OK) {
    assert_null(vocab);
    assert_true(strlen(tarn_error_message()) > 0);
    ++*refused;
    return;
  }
  tarn_vocab_ids ids = {0};
  tarn_vocab_text back = {0};
  if (tarn_vocab_encode(vocab, &ids, text, sizeof text - 1) == TARN_STATUS_OK)
    (void)!tarn_vocab_decode(vocab, &back, ids.data, ids.count);
  for (int32_t i = 0; i < tarn_vocab_size(vocab); i++) (void)tarn_vocab_piece(vocab, i);
  tarn_vocab_ids_close(&ids);
  tarn_vocab_text_close(&back);
  tarn_vocab_close(&vocab);
}

static void test_damaged(void **state) {
  (void)state;
  const tarn_vocab_type types[] = {TARN_VOCAB_TYPE_BPE, TARN_VOCAB_TYPE_UNIGRAM, TARN_VOCAB_TYPE_WHITESPACE};
  for (int i = 0; i < 3; i++) {
    char *bytes;
    size_t size;
    int refused = 0;
    tarn__random random;
    tarn__random_init(&random, 7, (uint32_t)i);
    train("v.model", types[i], false);
    assert_int_equal(tarn__file_read("v.model", &bytes, &size), TARN_STATUS_OK);
    for (int k = 0; k < 40; k++) open_damaged(bytes, (size_t)tarn__random_below(&random, size), &refused);
    assert_int_equal(refused, 40);
    for (int k = 0; k < (getenv("TARN_SAMPLE") ? 60 : 300); k++) {
      // Half of the damage goes to the first 2000 bytes, where SentencePiece keeps its pieces and settings.
      size_t at = (size_t)tarn__random_below(&random, k % 2 && size > 2000 ? 2000 : size);
      char keep = bytes[at];
      bytes[at] = (char)(bytes[at] ^ (1 << tarn__random_below(&random, 8)));
      open_damaged(bytes, size, &refused);
      bytes[at] = keep;
    }
    tarn__free(bytes);
  }
  int refused = 0;
  static const char *const files[] = {
      "tarn-vocab whitespace 2\nlowercase 0\nsize 3\n<unk>\n<s>\n</s>\n",
      "tarn-vocab whitespace 1\nlowercase 2\nsize 3\n<unk>\n<s>\n</s>\n",
      "tarn-vocab whitespace 1\nlowercase 0\nsize 999999999\n<unk>\n<s>\n</s>\n",
      "tarn-vocab whitespace 1\nlowercase 0\nsize 99999999999999999999\n<unk>\n<s>\n</s>\n",
      "tarn-vocab whitespace 1\nlowercase 0\nsize -1\n<unk>\n<s>\n</s>\n",
      "tarn-vocab whitespace 1\nlowercase 0\nsize 2\n<unk>\n<s>\n",
      "tarn-vocab whitespace 1\nlowercase 0\nsize 3\n<s>\n<unk>\n</s>\n",
      "tarn-vocab whitespace 1\nlowercase 0\nsize 4\n<unk>\n<s>\n</s>\n<s>\n",
      "tarn-vocab whitespace 1\nlowercase 0\nsize 4\n<unk>\n<s>\n</s>\na b\n",
      "tarn-vocab whitespace 1\nlowercase 0\nsize 4\n<unk>\n<s>\n</s>\n\n",
      "tarn-vocab whitespace 1\nlowercase 0\nsize 4\n<unk>\n<s>\n</s>\n\xFF\n",
      "tarn-vocab whitespace 1\nlowercase 0\nsize 3\n<unk>\n<s>\n</s>\nmore\n",
      "tarn-vocab whitespace 1\n",
      "plain text, and not a vocabulary at all",
  };
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) open_damaged(files[i], strlen(files[i]), &refused);
  assert_int_equal(refused, (int)(sizeof files / sizeof *files));
}

// A normaliser whose walk leaves its table where the text holds a zero byte.
static void test_zero_bytes_stay_inside(void **state) {
  (void)state;
  enum { UNITS = 512, TABLE = 4 + 4 * UNITS + 1, HEAD = 6 };
  static uint8_t model[HEAD + TABLE];
  static const uint8_t head[HEAD] = {3 << 3 | 2, (TABLE + 3) % 128 | 128, (TABLE + 3) / 128,
                                     2 << 3 | 2, TABLE % 128 | 128,       TABLE / 128};
  uint32_t units[1 + UNITS] = {4 * UNITS};
  for (int i = 0; i < UNITS; i++) units[1 + i] = 1u << 31;
  units[1] = 256u << 10;
  memcpy(model, head, HEAD);
  memcpy(model + HEAD, units, sizeof units);
  assert_int_equal(tarn__spm_check(model, sizeof model), TARN_STATUS_OK);
  units[1 + 256] = 0x1FFFFFu << 10 | 1u << 9 | 1u << 8;  // reached by a zero byte from the first unit
  memcpy(model + HEAD, units, sizeof units);
  assert_int_equal(tarn__spm_check(model, sizeof model), TARN_STATUS_DATA);
}

static void test_memory_failures(void **state) {
  (void)state;
  train("w.model", TARN_VOCAB_TYPE_WHITESPACE, true);
  size_t before = tarn__memory_now(TARN__MEMORY_OTHER);
  for (uint64_t n = 1;; n++) {
    tarn_vocab *vocab;
    tarn_vocab_ids ids = {0};
    tarn__memory_fail_after(n);
    tarn_status status = tarn_vocab_open(&vocab, "w.model");
    if (status == TARN_STATUS_OK) status = tarn_vocab_encode(vocab, &ids, "Der Garten", 10);
    tarn__memory_fail_after(0);
    tarn_vocab_ids_close(&ids);
    tarn_vocab_close(&vocab);
    assert_int_equal(tarn__memory_now(TARN__MEMORY_OTHER), before);
    if (status == TARN_STATUS_OK) break;
    assert_int_equal(status, TARN_STATUS_MEMORY);
  }
}

static void test_utf8(void **state) {
  (void)state;
  // Unicode 15, table 3-8: each maximal subpart is one U+FFFD.
  const char bad[] = "\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64";
  const char good[] =
      "a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"
      "b\xEF\xBF\xBD"
      "c\xEF\xBF\xBD\xEF\xBF\xBD"
      "d";
  char out[64] = "";
  assert_int_equal(tarn__utf8_repair(out, bad, sizeof bad - 1), sizeof good - 1);
  assert_string_equal(out, good);
  assert_int_equal(tarn__utf8_valid(bad, sizeof bad - 1), 1);
  static const char *const invalid[] = {"\xC0\xAF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF4\x90\x80\x80",
                                        "\xF5",     "\xFF",         "\xC3"};
  for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++)
    assert_int_equal(tarn__utf8_valid(invalid[i], strlen(invalid[i])), 0);
  static const int32_t codes[] = {0, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF};
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
    char text[4];
    int32_t code;
    size_t size = tarn__utf8_encode(text, codes[i]);
    assert_int_equal(tarn__utf8_decode(&code, text, size), size);
    assert_int_equal(code, codes[i]);
  }
}

static void test_lines(void **state) {
  (void)state;
  const char data[] =
      "\xEF\xBB\xBF"
      "eins\r\n\n\xFFzwei\ndrei";
  static const char *const expected[] = {"eins", "", "\xEF\xBF\xBDzwei", "drei"};
  sandbox_write("lines", data, sizeof data - 1);
  tarn__lines lines;
  const char *text;
  size_t length;
  assert_int_equal(tarn__lines_open(&lines, "lines", false), TARN_STATUS_OK);
  for (int i = 0; i < 4; i++) {
    assert_int_equal(tarn__lines_next(&lines, &text, &length), TARN_STATUS_OK);
    assert_non_null(text);
    assert_int_equal(length, strlen(expected[i]));
    assert_memory_equal(text, expected[i], length);
  }
  assert_int_equal(tarn__lines_next(&lines, &text, &length), TARN_STATUS_OK);
  assert_null(text);
  assert_int_equal(lines.number, 4);
  assert_int_equal(lines.replaced, 1);
  tarn__lines_close(&lines);
  assert_int_equal(tarn__lines_open(&lines, "lines", true), TARN_STATUS_OK);
  assert_int_equal(tarn__lines_next(&lines, &text, &length), TARN_STATUS_OK);
  assert_int_equal(tarn__lines_next(&lines, &text, &length), TARN_STATUS_OK);
  assert_int_equal(tarn__lines_next(&lines, &text, &length), TARN_STATUS_DATA);
  assert_non_null(strstr(tarn_error_message(), "lines:3: invalid UTF-8 at byte 1"));
  tarn__lines_close(&lines);
}

// Lines that are longer than the reader's buffer, and a file that ends exactly with one.
static void test_long_lines(void **state) {
  (void)state;
  enum { LONG = 200001 };
  char *data = malloc(3 * LONG);
  assert_non_null(data);
  memset(data, 'x', 3 * LONG);
  data[LONG - 1] = data[2 * LONG - 1] = data[3 * LONG - 1] = '\n';
  sandbox_write("long", data, 3 * LONG);
  free(data);
  tarn__lines lines;
  const char *text;
  size_t length;
  assert_int_equal(tarn__lines_open(&lines, "long", true), TARN_STATUS_OK);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(tarn__lines_next(&lines, &text, &length), TARN_STATUS_OK);
    assert_int_equal(length, LONG - 1);
  }
  assert_int_equal(tarn__lines_next(&lines, &text, &length), TARN_STATUS_OK);
  assert_null(text);
  tarn__lines_close(&lines);
}

// A training within which another one begins, on a thread of its own that goes on when the first one is over.
typedef struct training {
  struct training *inner;
  pthread_t thread;
  sem_t begun, *over;  // the other one's lines are asked for; the first one is over
  int lines, told;
} training;

static tarn_status next_of(void *user, const char **text, size_t *length);

static void count_tell(void *user, double pieces, double share) {
  training *t = user;
  assert_true(pieces >= 1 && share >= 0 && share <= 1);
  t->told++;
}

static void *train_one(void *user) {
  char *bytes;
  size_t size;
  tarn_vocab_options options;
  tarn_vocab_default(&options);
  options.type = TARN_VOCAB_TYPE_BPE;
  options.size = 60;
  options.threads = 1;
  options.normalization = TARN_VOCAB_NORMALIZATION_NMT_NFKC;
  if (tarn__spm_train(&bytes, &size, next_of, count_tell, user, &options) == TARN_STATUS_OK) tarn__free(bytes);
  return NULL;
}

static tarn_status next_of(void *user, const char **text, size_t *length) {
  static const char *const words[] = {"ein haus", "eine maus", "viele kleine hunde", "der grosse hund laeuft"};
  training *t = user;
  if (t->lines == 0 && t->inner) {
    t->inner->over = &t->begun;
    assert_int_equal(sem_init(&t->inner->begun, 0, 0), 0);
    assert_int_equal(pthread_create(&t->inner->thread, NULL, train_one, t->inner), 0);
    sem_wait(&t->inner->begun);
  } else if (t->lines == 0 && t->over) {
    sem_post(&t->begun);
    sem_wait(t->over);
  }
  *text = t->lines < 400 ? words[t->lines % 4] : NULL;
  *length = *text ? strlen(*text) : 0;
  t->lines++;
  return TARN_STATUS_OK;
}

// There is one std::cerr: the first of two trainings is told, and it stays whole however they end.
static void test_trainings_at_once(void **state) {
  (void)state;
  training inner = {0}, outer = {.inner = &inner}, after = {0};
  assert_int_equal(sem_init(&outer.begun, 0, 0), 0);
  train_one(&outer);
  sem_post(&outer.begun);
  pthread_join(inner.thread, NULL);
  assert_true(outer.told > 0);
  assert_int_equal(inner.told, 0);
  assert_true(outer.lines > 400 && inner.lines > 400);
  train_one(&after);
  assert_true(after.told > 0);
  sem_destroy(&outer.begun);
  sem_destroy(&inner.begun);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_trainings_at_once),
      cmocka_unit_test(test_types),
      cmocka_unit_test(test_rare_characters),
      cmocka_unit_test(test_no_special_from_text),
      cmocka_unit_test(test_lowercase),
      cmocka_unit_test(test_deterministic_and_from_memory),
      cmocka_unit_test(test_whitespace_counts),
      cmocka_unit_test(test_bad_requests),
      cmocka_unit_test(test_damaged),
      cmocka_unit_test(test_zero_bytes_stay_inside),
      cmocka_unit_test(test_memory_failures),
      cmocka_unit_test(test_utf8),
      cmocka_unit_test(test_lines),
      cmocka_unit_test(test_long_lines),
  };
  return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
