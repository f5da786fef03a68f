// What is no text is recognised, wherever text is read.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "base/file.h"
#include "base/input.h"
#include "run/file_kind.h"
#include "sandbox.h"
#include "tarn/process.h"
#include "tarn/score.h"
#include "tarn/text.h"
#include "tarn/vocab.h"
#include "text/lines.h"

static char warning[512];

static void keep_warning(void *user, tarn_log_level level, const char *text) {
  (void)user;
  (void)level;
  snprintf(warning, sizeof warning, "%s", text);
}

#define KIND(bytes) tarn__file_kind_of(bytes, sizeof(bytes) - 1)

static void test_kinds(void **state) {
  (void)state;
  assert_int_equal(KIND(""), TARN__FILE_KIND_EMPTY);
  assert_int_equal(KIND("Haus und Hof\n"), TARN__FILE_KIND_TEXT);
  assert_int_equal(KIND("\xEF\xBB\xBFHaus\n"), TARN__FILE_KIND_TEXT);
  assert_int_equal(KIND("\nz\nA\nb\nc\nd"), TARN__FILE_KIND_TEXT);
  assert_int_equal(KIND("caf\xE9 in Latin-1\n"), TARN__FILE_KIND_TEXT);
  assert_int_equal(KIND("TARNSHRD\1\0\0\0"), TARN__FILE_KIND_SHARD);
  assert_int_equal(KIND("tarn-vocab whitespace 1\n"), TARN__FILE_KIND_VOCAB);
  assert_int_equal(KIND("\x0A\x0E\x0A\5<unk>\x15\0\0\0\0\x18\2"), TARN__FILE_KIND_VOCAB);
  assert_int_equal(KIND("\x20\1\0\0\0\0\0\0{\"__metadata__\""), TARN__FILE_KIND_TENSORS);
  assert_int_equal(KIND("\x80\1\0\0\0\0\0\0{\"__metadata__\":{\"tarn.format\":\"1\"}"), TARN__FILE_KIND_MODEL);
  assert_int_equal(KIND("\x80\1\0\0\0\0\0\0{\"__metadata__\":{\"format\":\"" TARN__SERIES_MARK "\","),
                   TARN__FILE_KIND_SERIES);
  assert_int_equal(KIND("\x80\1\0\0\0\0\0\0{\"__metadata__\":{\"format\":\"pt\"},"), TARN__FILE_KIND_HF_WEIGHTS);
  assert_int_equal(KIND("\xFF\xFEH\0a\0"), TARN__FILE_KIND_UTF16);
  assert_int_equal(KIND("\xFE\xFF\0H\0a"), TARN__FILE_KIND_UTF16);
  assert_int_equal(KIND("H\0a\0u\0s\0 \0u\0n\0d\0"), TARN__FILE_KIND_UTF16);
  assert_int_equal(KIND("\0H\0a\0u\0s\0 \0u\0n\0d"), TARN__FILE_KIND_UTF16);
  assert_int_equal(KIND("\xFF\xFE\0\0H\0\0\0a\0\0\0"), TARN__FILE_KIND_UTF32);
  assert_int_equal(KIND("H\0\0\0a\0\0\0u\0\0\0s\0\0\0"), TARN__FILE_KIND_UTF32);
  assert_int_equal(KIND("\0\0\0H\0\0\0a\0\0\0u\0\0\0s"), TARN__FILE_KIND_UTF32);
  assert_int_equal(KIND("\x1F\x8B\x08\0"), TARN__FILE_KIND_COMPRESSED);
  assert_int_equal(KIND("\xFD"
                        "7zXZ\0\0"),
                   TARN__FILE_KIND_COMPRESSED);
  assert_int_equal(KIND("\x28\xB5\x2F\xFD\4"), TARN__FILE_KIND_COMPRESSED);
  assert_int_equal(KIND("BZh91AY&SY\1"), TARN__FILE_KIND_COMPRESSED);
  assert_int_equal(KIND("PK\3\4archive/data.txt"), TARN__FILE_KIND_ZIP);
  assert_int_equal(KIND("PK\3\4archive/data.pkl"), TARN__FILE_KIND_PICKLE);
  assert_int_equal(KIND("{\"n_embd\": 4,\n\"model_type\": \"gpt2\"}"), TARN__FILE_KIND_HF_CONFIG);
  assert_int_equal(KIND("# A model.\ndecoder: { layers: L }\nkinds:\n  L: {}\n"), TARN__FILE_KIND_CONFIG);
  assert_int_equal(KIND("encoder: { layers: L }\nkinds:\n  L: {}\n"), TARN__FILE_KIND_CONFIG);
  assert_int_equal(KIND("base: b.yaml\nvariants:\n  a: {}\n"), TARN__FILE_KIND_SWEEP_CONFIG);
  assert_int_equal(KIND("abc\0def \1\2\3 xyz"), TARN__FILE_KIND_UNKNOWN);
}

// Every reader of text refuses the file and names it.
static void refuse(const char *bytes, size_t size, const char *expected) {
  const char *const files[] = {"t"};
  tarn_vocab_options vocab;
  tarn_vocab_default(&vocab);
  vocab.type = TARN_VOCAB_TYPE_CHAR;
  tarn_sentences_options sentences;
  tarn_sentences_default(&sentences);
  tarn_sentences_result result;
  tarn_score_lines scored;
  sandbox_write("t", bytes, size);
  for (int reader = 0; reader < 3; reader++) {
    tarn_status status = reader == 0   ? tarn_vocab_train("v", files, 1, &vocab)
                         : reader == 1 ? tarn_sentences_write(&result, "s", files, 1, &sentences)
                                       : tarn_score_lines_open(&scored, "t");
    assert_int_equal(status, TARN_STATUS_DATA);
    if (!strstr(tarn_error_message(), expected)) print_error("reader %d: %s\n", reader, tarn_error_message());
    assert_non_null(strstr(tarn_error_message(), expected));
    assert_memory_equal(tarn_error_message(), "t:", 2);
  }
  assert_false(tarn__file_exists("v") || tarn__file_exists("s"));
}
#define REFUSE(bytes, expected) refuse(bytes, sizeof(bytes) - 1, expected)

static void test_refused(void **state) {
  (void)state;
  REFUSE("\xFF\xFEH\0a\0\n\0", "t: this is text in UTF-16; a text is a file of lines in UTF-8; convert it with: iconv");
  REFUSE("H\0a\0u\0s\0b\0a\0u\0\n\0z\0w\0e\0i\0\n\0", "t: this is text in UTF-16");
  REFUSE("one line\nand \0 zero\n", "t:2: a zero byte, which no text in UTF-8 has");
  REFUSE("a\0", "t:1: a zero byte");
  REFUSE(
      "BZh91AY&SY\n\n",
      "t: this is a compressed file; a text is a file of lines in UTF-8; unpack it first (.gz, .xz and .zst are read "
      "as they are)");
  REFUSE("TARNSHRD and more\n", "t: this is a shard;");
}

// Lines that are given as they are, without repair, are checked too.
static void test_raw_lines(void **state) {
  (void)state;
  tarn__lines lines = {0};
  const char *text;
  size_t length;
  sandbox_write("t", "\xFF\xFEH\0\n\0", 6);
  assert_int_equal(tarn__lines_open(&lines, "t", false), TARN_STATUS_OK);
  lines.raw = true;
  assert_int_equal(tarn__lines_next(&lines, &text, &length), TARN_STATUS_DATA);
  tarn__lines_close(&lines);
}

static void test_replaced_bytes(void **state) {
  (void)state;
  tarn__lines lines = {0};
  const char *text;
  size_t length;
  sandbox_write("t",
                "\xEF\xBB\xBF"
                "caf\xE9\r\n\xE2\x82 x\n",
                15);
  assert_int_equal(tarn__lines_open(&lines, "t", false), TARN_STATUS_OK);
  assert_int_equal(tarn__lines_next(&lines, &text, &length), TARN_STATUS_OK);
  assert_int_equal(lines.length, 4);
  assert_int_equal(length, 6);
  assert_int_equal(tarn__lines_next(&lines, &text, &length), TARN_STATUS_OK);
  assert_int_equal(lines.replaced, 2);
  assert_int_equal(lines.replaced_bytes, 3);
  tarn__lines_close(&lines);
}

// Kept, because sacreBLEU keeps it; said, because it changes a score.
static void test_mark_is_told(void **state) {
  (void)state;
  tarn_score_lines lines;
  sandbox_write("t", "\xEF\xBB\xBFone\n\xEF\xBB\xBFtwo\n", 14);
  tarn_log_set(keep_warning, NULL);
  assert_int_equal(tarn_score_lines_open(&lines, "t"), TARN_STATUS_OK);
  tarn_log_set(NULL, NULL);
  assert_string_equal(warning, "t: its first line begins with a byte order mark, which is scored as part of it");
  assert_string_equal(lines.items[0], "\xEF\xBB\xBFone");
  tarn_score_lines_close(&lines);
}

// zlib counts in 32 bits; a caller may have room for more. The memory is only reserved.
static void test_gzip_with_much_room(void **state) {
  (void)state;
  static const char packed[] =
      "\037\213\010\000\000\000\000\000\002\003\363\110\054\055\346\002\000\143\035\306\233\005\000\000\000";
  const size_t room = (size_t)1 << 32;
  tarn__input input;
  size_t got;
  void *bytes = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (bytes == MAP_FAILED) skip();
  assert_int_equal(tarn__file_write("text.gz", packed, sizeof packed - 1), TARN_STATUS_OK);
  assert_int_equal(tarn__input_open(&input, "text.gz"), TARN_STATUS_OK);
  const tarn_status status = tarn__input_read(&input, bytes, room, &got);
  if (status == TARN_STATUS_OK) {
    assert_int_equal(got, 5);
    assert_memory_equal(bytes, "Haus\n", 5);
  } else {
    assert_int_equal(status, TARN_STATUS_UNSUPPORTED);  // this build is without zlib
  }
  tarn__input_close(&input);
  munmap(bytes, room);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_kinds),     cmocka_unit_test(test_gzip_with_much_room), cmocka_unit_test(test_refused),
      cmocka_unit_test(test_raw_lines), cmocka_unit_test(test_replaced_bytes),      cmocka_unit_test(test_mark_is_told),
  };
  return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
