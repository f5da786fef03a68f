// tokenizer.json of Hugging Face's tokenizers (make_tokenizers.py): ids and texts of every variant, the way back, and
// what is refused.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
// cmocka needs the headers above.
#include <cmocka.h>
#include <jansson.h>

#include "golden/import_check.h"
#include "text/vocab_formats.h"

static const char END[] = "{\"eos_token\": {\"content\": \"</s>\"}, \"bos_token\": \"<s>\"}";

static json_t *load(const char *name) {
  char path[256];
  snprintf(path, sizeof path, GOLDEN "tokenizers/%s.json", name);
  json_t *object = json_load_file(path, 0, NULL);
  assert_non_null(object);
  return object;
}

// Writes a tokenizer into the folder "t".
static void save(const json_t *tokenizer) {
  mkdir("t", 0700);
  assert_int_equal(json_dump_file(tokenizer, "t/tokenizer.json", JSON_COMPACT), 0);
  sandbox_write("t/tokenizer_config.json", END, sizeof END - 1);
}

static void check_ids(const tarn_vocab *vocab, const char *text, const json_t *wanted) {
  tarn_vocab_ids ids = {0};
  must(tarn_vocab_encode(vocab, &ids, text, strlen(text)));
  if (ids.count != json_array_size(wanted)) fail_msg("\"%s\": %zu tokens", text, ids.count);
  for (size_t i = 0; i < ids.count; i++)
    if (ids.data[i] != json_integer_value(json_array_get(wanted, i)))
      fail_msg("\"%s\": token %zu is %d (%s)", text, i, ids.data[i], tarn_vocab_piece(vocab, ids.data[i]));
  tarn_vocab_ids_close(&ids);
}

static void check_text(const tarn_vocab *vocab, const json_t *list, const char *wanted) {
  int32_t ids[100];
  tarn_vocab_text text = {0};
  const size_t count = json_array_size(list);
  assert_true(count <= 100);
  for (size_t i = 0; i < count; i++) ids[i] = (int32_t)json_integer_value(json_array_get(list, i));
  must(tarn_vocab_decode(vocab, &text, ids, count));
  assert_string_equal(text.data, wanted);
  tarn_vocab_text_close(&text);
}

static void check_variant(const char *path, const json_t *cases, const json_t *variant) {
  tarn_vocab *vocab;
  const json_t *texts = json_object_get(cases, "texts"), *decoded = json_object_get(variant, "decoded");
  const json_t *ids = json_object_get(variant, "ids");
  const size_t first = (size_t)json_integer_value(json_object_get(cases, "first_decoded"));
  must(tarn_vocab_open(&vocab, path));
  for (size_t i = 0; i < json_array_size(texts); i++)
    check_ids(vocab, json_string_value(json_array_get(texts, i)), json_array_get(ids, i));
  for (size_t i = 0; i < json_array_size(decoded); i++)
    check_text(vocab, json_array_get(ids, first + i), json_string_value(json_array_get(decoded, i)));
  assert_string_equal(tarn_vocab_piece(vocab, tarn_vocab_eos(vocab)), "</s>");
  assert_string_equal(tarn_vocab_piece(vocab, tarn_vocab_bos(vocab)), "<s>");
  tarn_vocab_close(&vocab);
}

// The files that tarn writes are the same vocabulary again.
static void check_back(void) {
  tarn_vocab *vocab;
  must(tarn_vocab_open(&vocab, "t"));
  mkdir("back", 0700);
  must(tarn__vocab_export_tokenizer("back", vocab));
  tarn_vocab_close(&vocab);
}

static void as_the_package(void **state) {
  (void)state;
  json_t *cases = load("cases"), *variant;
  size_t i;
  json_array_foreach(json_object_get(cases, "variants"), i, variant) {
    json_t *tokenizer = load(json_string_value(json_object_get(variant, "base")));
    json_object_update(tokenizer, json_object_get(variant, "parts"));
    save(tokenizer);
    check_variant("t", cases, variant);
    check_back();
    check_variant("back", cases, variant);
    must(tarn_vocab_import_tokenizer("vocab", "t/tokenizer.json"));
    check_variant("vocab", cases, variant);
    json_decref(tokenizer);
  }
  json_decref(cases);
}

// Bytes that are no UTF-8 come back, and numbers without a token are there.
static void bytes_and_holes(void **state) {
  (void)state;
  static const char text[] = "the \xff\xe2\x96 x\xc3";
  static const char *const bases[] = {"bytes", "pieces"};
  for (int b = 0; b < 2; b++) {
    tarn_vocab *vocab;
    tarn_vocab_ids ids = {0};
    tarn_vocab_text back = {0};
    json_t *tokenizer = load(bases[b]);
    save(tokenizer);
    must(tarn__vocab_open_tokenizer(&vocab, "t", 500, 3, 4));
    assert_int_equal(tarn_vocab_size(vocab), 500);
    assert_int_equal(tarn_vocab_bos(vocab), 3);
    assert_int_equal(tarn_vocab_eos(vocab), 4);
    assert_string_equal(tarn_vocab_piece(vocab, 499), "<unused 499>");
    must(tarn_vocab_encode(vocab, &ids, text, sizeof text - 1));
    must(tarn_vocab_decode(vocab, &back, ids.data, ids.count));
    assert_int_equal(back.length, sizeof text - 1);
    assert_memory_equal(back.data, text, back.length);
    tarn_vocab_ids_close(&ids);
    tarn_vocab_text_close(&back);
    tarn_vocab_close(&vocab);
    assert_int_equal(tarn__vocab_open_tokenizer(&vocab, "t", 100, -1, -1), TARN_STATUS_DATA);
    must_say("which is not below 100");
    json_decref(tokenizer);
  }
}

// A part is replaced by another one, in the base of the same number.
static void unknown_parts_are_named(void **state) {
  (void)state;
  static const struct {
    const char *base, *part, *json, *words;
  } cases[] = {
      {"bytes", "pre_tokenizer", "{\"type\":\"BertPreTokenizer\"}",
       "t/tokenizer.json: \"pre_tokenizer\" has a part of type \"BertPreTokenizer\", which tarn does not have"},
      {"bytes", "pre_tokenizer", "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a+\"},\"behavior\":\"Isolated\"}",
       "\"pre_tokenizer\" of type Split has a \"pattern\" that tarn does not have"},
      {"bytes", "pre_tokenizer", "{\"type\":\"ByteLevel\",\"add_prefix_space\":true}",
       "of type ByteLevel has a \"add_prefix_space\" that"},
      {"bytes", "pre_tokenizer", "null", "\"pre_tokenizer\" is neither of type ByteLevel nor of Metaspace"},
      {"bytes", "normalizer", "{\"type\":\"Lowercase\"}", "\"normalizer\" has a part of type \"Lowercase\""},
      {"bytes", "normalizer", "{\"type\":\"Prepend\",\"prepend\":\"\xE2\x96\x81\"}", "\"normalizer\" marks blanks"},
      {"bytes", "decoder", "{\"type\":\"WordPiece\"}", "\"decoder\" has a part of type \"WordPiece\""},
      {"bytes", "post_processor", "{\"type\":\"BertProcessing\"}",
       "\"post_processor\" has a part of type \"BertProcessing\""},
      {"bytes", "model", "{\"type\":\"Unigram\"}", "\"model\" is of type \"Unigram\"; tarn reads BPE"},
      {"bytes", "model", "{\"type\":\"BPE\",\"dropout\":0.1}", "\"model\" has a \"dropout\", which tarn does not have"},
      {"bytes", "model", "{\"type\":\"BPE\",\"fast\":1}", "\"model\" has a \"fast\", which tarn does not know"},
      {"bytes", "model", "{\"vocab\":{\"a\":0},\"merges\":[]}", "byte 0x00 has no token"},
      {"bytes", "model", "{\"vocab\":{\"a\":0,\"b\":0},\"merges\":[]}", "have the same id 0"},
      {"bytes", "model", "{\"vocab\":{\"a\":-1},\"merges\":[]}", "\"a\" has the id -1"},
      {"bytes", "extra", "1", "it has a part \"extra\", which tarn does not know"},
      {"bytes", "added_tokens", "[{\"id\":1}]", "number 0 of \"added_tokens\" has no \"content\" and \"id\""},
      {"bytes", "added_tokens", "[{\"id\":900,\"content\":\"</s>\",\"special\":false,\"lstrip\":true}]",
       "the added token \"</s>\" has \"lstrip\", which tarn does not have"},
      {"bytes", "added_tokens", "[]", "there is no \"eos_token\" that is one of its tokens in tokenizer_config.json"},
      {"pieces", "model", "{\"type\":\"BPE\"}", "\"model\" has no \"byte_fallback\""},
      {"pieces", "decoder", "{\"type\":\"ByteLevel\"}",
       "\"decoder\" is of type ByteLevel, and \"pre_tokenizer\" is not"},
      {"pieces", "normalizer", "{\"type\":\"Prepend\",\"prepend\":\"_\"}", "of type Prepend has a \"prepend\" that"},
      {"pieces", "pre_tokenizer", "{\"type\":\"Metaspace\",\"replacement\":\"_\"}", "has a \"replacement\" that"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tarn_vocab *vocab;
    json_t *tokenizer = load(cases[i].base);
    json_object_set_new(tokenizer, cases[i].part, json_loads(cases[i].json, JSON_DECODE_ANY, NULL));
    save(tokenizer);
    assert_int_equal(tarn_vocab_open(&vocab, "t"), TARN_STATUS_DATA);
    must_say(cases[i].words);
    json_decref(tokenizer);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(as_the_package), cmocka_unit_test(bytes_and_holes),
                                     cmocka_unit_test(unknown_parts_are_named)};
  return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
