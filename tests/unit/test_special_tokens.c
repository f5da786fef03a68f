// The special tokens of masked models in every kind of vocabulary, and where words begin.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"
#include "data/sentence_pair.h"
#include "sandbox.h"
#include "tarn/vocab.h"
#include "text/vocab_formats.h"

static const char TEXT[] =
    "the cat sat on the mat\nthe <mask> sat <cls> on\na cat and a mat sat\non <sep> the other mat a cat sat again\n";

static tarn_status train(tarn_vocab_type type, int64_t size, bool mask_symbols) {
  const char *files[] = {"text"};
  const size_t count = type != TARN_VOCAB_TYPE_BYTE;
  tarn_vocab_options options;
  tarn_vocab_default(&options);
  options.type = type;
  if (count) options.size = size;
  options.mask_symbols = mask_symbols;
  sandbox_write("text", TEXT, sizeof TEXT - 1);
  return tarn_vocab_train("v", files, count, &options);
}

static tarn_vocab *make(tarn_vocab_type type, int64_t size, bool mask_symbols) {
  tarn_vocab *vocab;
  const tarn_status status = train(type, size, mask_symbols);
  if (status) print_error("%s\n", tarn_error_message());
  assert_int_equal(status, TARN_STATUS_OK);
  assert_int_equal(tarn_vocab_open(&vocab, "v"), TARN_STATUS_OK);
  return vocab;
}

static const struct {
  tarn_vocab_type type;
  int64_t size;
  int32_t first;  // the id of <cls>
} KINDS[] = {{TARN_VOCAB_TYPE_BPE, 40, 3},
             {TARN_VOCAB_TYPE_UNIGRAM, 26, 3},
             {TARN_VOCAB_TYPE_WHITESPACE, 12, 3},
             {TARN_VOCAB_TYPE_BYTE, 262, 259},
             {TARN_VOCAB_TYPE_CHAR, 20, 3}};
enum { KIND_COUNT = sizeof KINDS / sizeof *KINDS };

// No text gives a special token, and none of them gives text.
static void expect_apart(const tarn_vocab *vocab) {
  const int32_t all[] = {tarn_vocab_bos(vocab), tarn_vocab_special(vocab, TARN_SPECIAL_CLS),
                         tarn_vocab_special(vocab, TARN_SPECIAL_MASK), tarn_vocab_special(vocab, TARN_SPECIAL_SEP),
                         tarn_vocab_eos(vocab)};
  static const char hostile[] = "<cls> a <sep><mask> <mask> </s>";
  tarn_vocab_ids ids = {0};
  tarn_vocab_text text = {0};
  assert_int_equal(tarn_vocab_encode(vocab, &ids, hostile, sizeof hostile - 1), TARN_STATUS_OK);
  assert_true(ids.count > 0);
  for (size_t i = 0; i < ids.count; i++)
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) assert_int_not_equal(ids.data[i], all[k]);
  assert_int_equal(tarn_vocab_decode(vocab, &text, all, sizeof all / sizeof *all), TARN_STATUS_OK);
  assert_string_equal(text.data, "");
  tarn_vocab_ids_close(&ids);
  tarn_vocab_text_close(&text);
}

static void test_with_symbols(void **state) {
  (void)state;
  static const char *const NAMES[] = {"<cls>", "<sep>", "<mask>"};
  for (int kind = 0; kind < KIND_COUNT; kind++) {
    tarn_vocab *vocab = make(KINDS[kind].type, KINDS[kind].size, true);
    assert_true(tarn_vocab_size(vocab) <= KINDS[kind].size);
    assert_int_equal(tarn_vocab_bos(vocab), 1);
    assert_int_equal(tarn_vocab_eos(vocab), 2);
    for (int i = 0; i < TARN_SPECIAL_COUNT; i++) {
      const int32_t id = tarn_vocab_special(vocab, (tarn_special)i);
      assert_int_equal(id, KINDS[kind].first + i);
      assert_string_equal(tarn_vocab_piece(vocab, id), NAMES[i]);
      assert_true(tarn_vocab_begins_word(vocab, id));
    }
    expect_apart(vocab);
    tarn_vocab_close(&vocab);
  }
}

// Without the option nothing is as it was not: ids, and the bytes of a file.
static void test_without_symbols(void **state) {
  (void)state;
  for (int kind = 0; kind < KIND_COUNT; kind++) {
    tarn_vocab *vocab =
        make(KINDS[kind].type, KINDS[kind].type == TARN_VOCAB_TYPE_BYTE ? 259 : KINDS[kind].size, false);
    assert_int_equal(tarn_vocab_special(vocab, TARN_SPECIAL_CLS), -1);
    assert_int_equal(tarn_vocab_special(vocab, TARN_SPECIAL_SEP), 2);
    assert_int_equal(tarn_vocab_special(vocab, TARN_SPECIAL_MASK), -1);
    size_t size;
    const char *bytes = tarn_vocab_bytes(vocab, &size);
    if (KINDS[kind].type == TARN_VOCAB_TYPE_BYTE) assert_memory_equal(bytes, "tarn-vocab byte 1\n", size);
    if (KINDS[kind].type == TARN_VOCAB_TYPE_CHAR) assert_memory_equal(bytes, "tarn-vocab char 1\nlowercase 0\n", 30);
    tarn_vocab_close(&vocab);
  }
}

// "cat a" and "ca t" in each kind: a 1 for a token that begins a word.
static void expect_words(const tarn_vocab *vocab, const char *text, const char *expected) {
  tarn_vocab_ids ids = {0};
  char begins[64];
  assert_int_equal(tarn_vocab_encode(vocab, &ids, text, strlen(text)), TARN_STATUS_OK);
  assert_true(ids.count < sizeof begins);
  for (size_t i = 0; i < ids.count; i++) begins[i] = tarn_vocab_begins_word(vocab, ids.data[i]) ? '1' : '0';
  begins[ids.count] = '\0';
  assert_string_equal(begins, expected);
  tarn_vocab_ids_close(&ids);
}

static void test_words(void **state) {
  (void)state;
  static const char *const EXPECTED[] = {"1101", NULL, "111", "0001000010", "0001000010"};
  for (int kind = 0; kind < KIND_COUNT; kind++) {
    tarn_vocab *vocab = make(KINDS[kind].type, KINDS[kind].size, true);
    if (EXPECTED[kind]) expect_words(vocab, "the cats a", EXPECTED[kind]);
    assert_true(tarn_vocab_begins_word(vocab, -1));
    assert_true(tarn_vocab_begins_word(vocab, tarn_vocab_size(vocab)));
    assert_true(tarn_vocab_begins_word(vocab, tarn_vocab_unk(vocab)));
    for (int32_t id = 0; id < tarn_vocab_size(vocab) && KINDS[kind].type <= TARN_VOCAB_TYPE_UNIGRAM; id++) {
      const char *piece = tarn_vocab_piece(vocab, id);
      assert_int_equal(tarn_vocab_begins_word(vocab, id), id < 6 || strncmp(piece, "\xE2\x96\x81", 3) == 0);
    }
    tarn_vocab_close(&vocab);
  }
}

static void test_damaged(void **state) {
  (void)state;
  static const struct {
    const char *bytes, *message;
  } cases[] = {{"tarn-vocab byte 3\n", "version 3; this program reads version 1 or 2"},
               {"tarn-vocab byte 0\n", "version 0"},
               {"tarn-vocab byte 2\nx", "more after its end"},
               {"tarn-vocab char 2\nlowercase 0\nsize 5\nU+0061\nU+0062\n", "<cls>, <sep> and <mask>"},
               {"tarn-vocab whitespace 2\nlowercase 0\nsize 7\n<unk>\n<s>\n</s>\n<cls>\n<mask>\n<sep>\na\n",
                "token 4 must be <sep>"},
               {"tarn-vocab whitespace 2\nlowercase 0\nsize 3\n<unk>\n<s>\n</s>\n", "<cls>, <sep> and <mask>"},
               {"tarn-vocab gpt2 2\nsize 0\n", "version 2; this program reads version 1"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tarn_vocab *vocab;
    assert_int_equal(tarn_vocab_open_memory(&vocab, cases[i].bytes, strlen(cases[i].bytes)), TARN_STATUS_DATA);
    if (!strstr(tarn_error_message(), cases[i].message)) fail_msg("%zu: %s", i, tarn_error_message());
    assert_null(vocab);
  }
  assert_int_equal(train(TARN_VOCAB_TYPE_CHAR, 6, true), TARN_STATUS_USAGE);
  assert_non_null(strstr(tarn_error_message(), "with <cls>, <sep> and <mask> is 7 to"));
}

// GPT-2's toy with the tokens of RoBERTa behind its own, in the folder "roberta".
static void make_roberta(const char *tokens) {
  tarn_vocab *toy;
  char *json;
  size_t size;
  assert_int_equal(tarn_vocab_open(&toy, TARN_SOURCE_DIR "/tests/golden/gpt2_toy"), TARN_STATUS_OK);
  assert_int_equal(tarn__mkdir("roberta"), TARN_STATUS_OK);
  assert_int_equal(tarn__vocab_export_gpt2("roberta", toy), TARN_STATUS_OK);
  assert_int_equal(tarn__file_read("roberta/vocab.json", &json, &size), TARN_STATUS_OK);
  FILE *file = fopen("roberta/vocab.json", "wb");
  assert_non_null(file);
  fprintf(file, "%.*s, %s}", (int)(strrchr(json, '}') - json), json, tokens);
  assert_int_equal(fclose(file), 0);
  tarn__free(json);
  tarn_vocab_close(&toy);
}

// A row of two sentences: "<ids> </s> </s> <ids> </s>" of RoBERTa's tokenizer, one end between them of others. Of one
// that is cut the ends stay.
static void check_pairs(const tarn_vocab *vocab, int64_t between) {
  const tarn__piece first = {"aa b", 4}, second = {"b", 1}, none = {0};
  const int32_t end = tarn_vocab_eos(vocab);
  tarn_vocab_ids ids = {0};
  tarn__sentence_pair row = {0};
  assert_int_equal(tarn_vocab_encode(vocab, &ids, first.text, first.length), TARN_STATUS_OK);
  const int64_t a = (int64_t)ids.count;
  assert_int_equal(tarn_vocab_encode(vocab, &ids, second.text, second.length), TARN_STATUS_OK);
  const int64_t b = (int64_t)ids.count;
  assert_int_equal(tarn__sentence_pair_make(&row, vocab, &first, &second, 100), TARN_STATUS_OK);
  assert_int_equal(row.length, a + between + b + 1);
  assert_int_equal(row.second, a + between);
  for (int64_t i = a; i < a + between; i++) assert_int_equal(row.ids[i], end);
  assert_memory_equal(row.ids + row.second, ids.data, (size_t)b * sizeof *ids.data);
  assert_int_equal(row.ids[row.length - 1], end);
  assert_int_equal(tarn__sentence_pair_make(&row, vocab, &first, &second, between + 3), TARN_STATUS_OK);
  assert_int_equal(row.length, between + 3);
  assert_int_equal(row.ids[1], end);
  assert_int_equal(tarn__sentence_pair_make(&row, vocab, &first, &second, between + 2), TARN_STATUS_USAGE);
  assert_int_equal(tarn__sentence_pair_make(&row, vocab, &first, &none, 100), TARN_STATUS_OK);
  assert_int_equal(row.length, a + 1);
  assert_int_equal(row.second, row.length);
  tarn__sentence_pair_close(&row);
  tarn_vocab_ids_close(&ids);
}

static void test_roberta(void **state) {
  (void)state;
  static const char text[] = "the <s> </s> <mask> <pad> \xFF layers";
  tarn_vocab *toy, *vocab, *again;
  tarn_vocab_ids ids[2] = {{0}};
  tarn_vocab_text back = {0};
  make_roberta("\"<s>\": 640, \"</s>\": 641, \"<pad>\": 642, \"<mask>\": 643");
  assert_int_equal(tarn_vocab_open(&toy, TARN_SOURCE_DIR "/tests/golden/gpt2_toy"), TARN_STATUS_OK);
  assert_int_equal(tarn_vocab_open(&vocab, "roberta"), TARN_STATUS_OK);
  assert_true(tarn__vocab_is_roberta(vocab) && !tarn__vocab_is_gpt2(vocab));
  check_pairs(vocab, 2);
  assert_int_equal(tarn_vocab_size(vocab), 644);
  assert_int_equal(tarn_vocab_bos(vocab), 640);
  assert_int_equal(tarn_vocab_eos(vocab), 641);
  assert_int_equal(tarn_vocab_pad(vocab), 642);
  assert_int_equal(tarn_vocab_unk(vocab), -1);
  assert_int_equal(tarn_vocab_special(vocab, TARN_SPECIAL_CLS), 640);
  assert_int_equal(tarn_vocab_special(vocab, TARN_SPECIAL_SEP), 641);
  assert_int_equal(tarn_vocab_special(vocab, TARN_SPECIAL_MASK), 643);
  // Text has the tokens of GPT-2's, and gives its bytes back.
  assert_int_equal(tarn_vocab_encode(toy, &ids[0], text, sizeof text - 1), TARN_STATUS_OK);
  assert_int_equal(tarn_vocab_encode(vocab, &ids[1], text, sizeof text - 1), TARN_STATUS_OK);
  assert_int_equal(ids[0].count, ids[1].count);
  assert_memory_equal(ids[0].data, ids[1].data, ids[0].count * sizeof(int32_t));
  assert_int_equal(tarn_vocab_decode(vocab, &back, ids[1].data, ids[1].count), TARN_STATUS_OK);
  assert_string_equal(back.data, text);
  assert_int_equal(tarn_vocab_decode(vocab, &back, (const int32_t[]){640, 643, 642, 641}, 4), TARN_STATUS_OK);
  assert_string_equal(back.data, "");
  assert_true(tarn_vocab_begins_word(vocab, 643));
  assert_int_equal(tarn__mkdir("back"), TARN_STATUS_OK);
  assert_int_equal(tarn__vocab_export_gpt2("back", vocab), TARN_STATUS_OK);
  assert_int_equal(tarn_vocab_open(&again, "back"), TARN_STATUS_OK);
  assert_string_equal(tarn_vocab_hash(vocab), tarn_vocab_hash(again));
  for (int i = 0; i < 2; i++) tarn_vocab_ids_close(&ids[i]);
  tarn_vocab_text_close(&back);
  tarn_vocab_close(&toy);
  tarn_vocab_close(&vocab);
  tarn_vocab_close(&again);
  // Without a mask it is GPT-2's with tokens that are called so.
  make_roberta("\"<s>\": 640, \"</s>\": 641");
  assert_int_equal(tarn_vocab_open(&vocab, "roberta"), TARN_STATUS_OK);
  assert_true(tarn__vocab_is_gpt2(vocab));
  assert_int_equal(tarn_vocab_special(vocab, TARN_SPECIAL_MASK), -1);
  tarn_vocab_close(&vocab);
}

// vocab.txt and its settings come back.
static void test_wordpiece_export(void **state) {
  (void)state;
  static const tarn_wordpiece_case CASES[] = {TARN_WORDPIECE_CASED, TARN_WORDPIECE_UNCASED};
  tarn_vocab *vocab, *again;
  assert_int_equal(tarn__mkdir("bert"), TARN_STATUS_OK);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(tarn_vocab_import_wordpiece("w", TARN_SOURCE_DIR "/tests/golden/wordpiece_toy", CASES[i]),
                     TARN_STATUS_OK);
    assert_int_equal(tarn_vocab_open(&vocab, "w"), TARN_STATUS_OK);
    assert_true(tarn__vocab_is_wordpiece(vocab));
    assert_int_equal(tarn__vocab_export_wordpiece("bert", vocab), TARN_STATUS_OK);
    assert_int_equal(tarn__vocab_export_gpt2("bert", vocab), TARN_STATUS_USAGE);
    assert_int_equal(tarn_vocab_open(&again, "bert"), TARN_STATUS_OK);
    assert_string_equal(tarn_vocab_hash(vocab), tarn_vocab_hash(again));
    tarn_vocab_close(&vocab);
    tarn_vocab_close(&again);
  }
}

// What a vocabulary makes of a text, and of its ids.
static void expect_ids(const tarn_vocab *vocab, const char *text, const int32_t *wanted, size_t count,
                       const char *back) {
  tarn_vocab_ids ids = {0};
  tarn_vocab_text out = {0};
  assert_int_equal(tarn_vocab_encode(vocab, &ids, text, strlen(text)), TARN_STATUS_OK);
  assert_int_equal(ids.count, count);
  if (count > 0) assert_memory_equal(ids.data, wanted, count * sizeof *wanted);
  assert_int_equal(tarn_vocab_decode(vocab, &out, ids.data, ids.count), TARN_STATUS_OK);
  assert_string_equal(out.data, back);
  tarn_vocab_ids_close(&ids);
  tarn_vocab_text_close(&out);
}

// Those of a list are known by their names; an empty line is no token of a text.
static void test_list(void **state) {
  (void)state;
  static const char list[] = "b\n<sos>\n\n<unk>\na\r\n</s>\n\n<blank>";
  static const int32_t made[] = {1, 4, 2, 5, 3}, wanted[] = {4, 0, 3, 3, 0}, begun_ids[] = {1, 4, 0};
  tarn_vocab *vocab, *begun, *again;
  tarn_vocab_text out = {0};
  sandbox_write("tokens.x.txt", list, sizeof list - 1);
  assert_int_equal(tarn_vocab_open(&vocab, "tokens.x.txt"), TARN_STATUS_OK);
  assert_int_equal(tarn_vocab_size(vocab), 8);
  assert_int_equal(tarn_vocab_bos(vocab), 1);
  assert_int_equal(tarn_vocab_unk(vocab), 3);
  assert_int_equal(tarn_vocab_eos(vocab), 5);
  assert_int_equal(tarn_vocab_pad(vocab), 7);
  expect_ids(vocab, " a b\tx <sos> b", wanted, 5, "a b <unk> <unk> b");
  assert_int_equal(tarn_vocab_decode(vocab, &out, made, 5), TARN_STATUS_OK);
  assert_string_equal(out.data, "a <unk>");
  // The same with a token in front of each text, of which there is one.
  assert_int_equal(tarn__vocab_open_prefixed(&begun, vocab, 1), TARN_STATUS_OK);
  assert_string_equal(tarn_vocab_kind(begun), tarn_vocab_kind(vocab));
  expect_ids(begun, "a b", begun_ids, 3, "a b");
  expect_ids(begun, " ", NULL, 0, "");
  assert_int_equal(tarn__vocab_open_prefixed(&again, begun, 4), TARN_STATUS_OK);
  assert_string_equal(tarn_vocab_hash(again), tarn_vocab_hash(begun));
  tarn_vocab_text_close(&out);
  tarn_vocab_close(&again);
  tarn_vocab_close(&begun);
  tarn_vocab_close(&vocab);
}

// Those of a list whose texts SentencePiece cuts are the same ones, whatever else is called like Marian's.
static void test_cut_list(void **state) {
  (void)state;
  static const struct {
    const char *list;
    int32_t unk, bos, eos, pad;
  } cases[] = {{"<unk>\n<pad>\n<s>\n</s>\na\n", 0, 2, 3, 1},
               {"<unk>\n<bos>\n<eos>\n</s>\na\n", 0, 1, 2, -1},
               {"<UNK>\n<s>\n</s>\n<bos>\n<PAD>\n", 0, 3, 2, 4}};
  char *model;
  size_t size;
  assert_int_equal(tarn__file_read(TARN_SOURCE_DIR "/tests/golden/torch/stacks/target.spm", &model, &size),
                   TARN_STATUS_OK);
  sandbox_write("cut.spm", model, size);
  tarn__free(model);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tarn_vocab *vocab;
    sandbox_write("tokens.cut.txt", cases[i].list, strlen(cases[i].list));
    assert_int_equal(tarn_vocab_open(&vocab, "tokens.cut.txt"), TARN_STATUS_OK);
    assert_int_equal(tarn_vocab_unk(vocab), cases[i].unk);
    assert_int_equal(tarn_vocab_bos(vocab), cases[i].bos);
    assert_int_equal(tarn_vocab_eos(vocab), cases[i].eos);
    assert_int_equal(tarn_vocab_pad(vocab), cases[i].pad);
    tarn_vocab_close(&vocab);
  }
}

static void refuse_vocab(const char *path, const char *bytes, const char *words) {
  tarn_vocab *vocab;
  sandbox_write(path, bytes, strlen(bytes));
  assert_int_equal(tarn_vocab_open(&vocab, path), TARN_STATUS_DATA);
  if (!strstr(tarn_error_message(), words)) fail_msg("\"%s\" does not say \"%s\"", tarn_error_message(), words);
}

static void test_wrong_list(void **state) {
  (void)state;
  static const struct {
    const char *list, *words;
  } cases[] = {{"<unk>\n<eos>\na\nb\na\n", "tokens.x.txt:5: token \"a\" occurs before"},
               {"<unk>\n<eos>\na b\n", "tokens.x.txt:3: the token holds white space"},
               {"<unk>\n<eos>\n\xff\n", "tokens.x.txt:3: the token is not UTF-8"},
               {"<unk>\na\n", "tokens.x.txt: the list of tokens has no end of sentence, such as <eos>"},
               {"<eos>\na\n", "tokens.x.txt: the list of tokens has no unknown token, such as <unk>"},
               {"", "tokens.x.txt"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) refuse_vocab("tokens.x.txt", cases[i].list, cases[i].words);
  sandbox_write("x.spm", "any", 3);
  refuse_vocab("tokens.x.txt", "<unk>\n\n<eos>\na\n",
               "tokens.x.txt:2: an empty line cannot be a token when x.spm cuts the text");
#define PREFIXED "tarn-vocab prefixed 1\n"
  refuse_vocab("damaged", PREFIXED "first 2\n", "damaged: ");
  refuse_vocab("damaged", "tarn-vocab prefixed 2\nfirst 2\nx", "this program reads version 1");
  refuse_vocab("damaged", PREFIXED "first 2\n" PREFIXED "first 2\nx", "no vocabulary without a token in front");
  refuse_vocab("damaged", PREFIXED "first 300\ntarn-vocab byte 1\n", "there is no token 300");
  refuse_vocab("damaged", "tarn-vocab whitespace 3\nlowercase 0\nsize 3\n<unk>\n</s>\n</s>\n", "is there twice");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_with_symbols), cmocka_unit_test(test_without_symbols),
      cmocka_unit_test(test_words),        cmocka_unit_test(test_damaged),
      cmocka_unit_test(test_roberta),      cmocka_unit_test(test_wordpiece_export),
      cmocka_unit_test(test_list),         cmocka_unit_test(test_cut_list),
      cmocka_unit_test(test_wrong_list),
  };
  return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
