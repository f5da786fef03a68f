// Models of fairseq (make_fairseq.py): their logits, translations and probabilities beside those of fairseq's
// definitions in double, and what is refused.
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

#include "golden/import_check.h"
#include "golden/translation_check.h"
#include "store/safetensors.h"
#include "tarn/checkpoint.h"
#include "tarn/lab/foreign.h"

enum { PATH = 256, LONGEST = 12 };

static const char *const MODELS[] = {"iwslt", "joined", "learned"};
enum { MODEL_COUNT = sizeof MODELS / sizeof *MODELS };

static const char *golden(const char *model, const char *file) {
  static char path[PATH];
  snprintf(path, sizeof path, GOLDEN "fairseq/%s/%s", model, file);
  return path;
}

// Makes the folder "in".
static void make_folder(const char *model) {
  static const char *const files[] = {"model.safetensors", "config.json", "dict.de.txt",
                                      "dict.en.txt",       "code",        "bpecodes"};
  (void)system("rm -rf in");
  mkdir("in", 0700);
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    char to[PATH];
    snprintf(to, sizeof to, "in/%s", files[i]);
    if (tarn__file_exists(golden(model, files[i]))) copy_file(golden(model, files[i]), to);
  }
}

static void logits_and_translations(void **state) {
  (void)state;
  for (int i = 0; i < MODEL_COUNT; i++) {
    make_folder(MODELS[i]);
    must(tarn_checkpoint_import("model", "in", NULL, NULL));
    check_logits("model", golden(MODELS[i], "expected.safetensors"), 1e-5);
    json_t *object = read_cases(golden(MODELS[i], "cases.json"));
    check_search("model", json_object_get(object, "translations"), 0, LONGEST,
                 "translation");  // the file's beam, fairseq's 5
    check_search("model", json_object_get(object, "translations"), 1, LONGEST, "greedy");
    json_decref(object);
  }
}

// What a description keeps, and dictionaries as vocabularies of their own.
static void parts(void **state) {
  (void)state;
  tarn_checkpoint_info *info;
  static const char *const lines[] = {"beam: 5\n",       "max_len_b: 200\n", "norm: post\n",       "first: 2",
                                      "output_bias: no", "decoder_start: 2", "embeddings: decoder"};
  make_folder("iwslt");
  must(tarn_checkpoint_import("model", "in", NULL, NULL));
  must(tarn_checkpoint_info_open(&info, "model"));
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
    if (!strstr(info->config, lines[i])) fail_msg("no %s in %s", lines[i], info->config);
  tarn_checkpoint_info_close(&info);
  must(tarn_checkpoint_import("again", "in", "in/dict.de.txt", "in/dict.en.txt"));
  check_logits("again", golden("iwslt", "expected.safetensors"), 1e-5);
}

static void encodes(const char *dictionary, const char *codes, const char *text, const char *wanted, const char *back) {
  tarn_vocab *vocab;
  tarn_vocab_ids ids = {0};
  tarn_vocab_text out = {0};
  char line[256] = "";
  (void)system("rm -rf v");
  mkdir("v", 0700);
  sandbox_write("v/dict.x.txt", dictionary, strlen(dictionary));
  if (codes) sandbox_write("v/codes", codes, strlen(codes));
  must(tarn_vocab_open(&vocab, "v/dict.x.txt"));
  must(tarn_vocab_encode(vocab, &ids, text, strlen(text)));
  for (size_t i = 0, at = 0; i < ids.count; i++)
    at += (size_t)snprintf(line + at, sizeof line - at, "%s%d", i ? " " : "", ids.data[i]);
  assert_string_equal(line, wanted);
  must(tarn_vocab_decode(vocab, &out, ids.data, ids.count));
  assert_string_equal(out.data, back);
  tarn_vocab_ids_close(&ids);
  tarn_vocab_text_close(&out);
  tarn_vocab_close(&vocab);
}

// Special tokens come first, a later line overwrites, and a text that has a special token has an unknown one.
static void dictionaries(void **state) {
  (void)state;
  encodes("a 9\nb@@ 7\nb 3\r\nmadeupword0000 0", NULL, " a  b@@ b\ta x </s>", "4 5 6 4 3 3", "a bb a <unk> <unk>");
  encodes("a 9\nb 7\na 2 #fairseq:overwrite\n", NULL, "a b", "6 5", "a b");
  encodes("a 9\nb@@ 7\n", NULL, "a b@@", "4 5", "a b");
  encodes("a 9\n", "", "", "", "");
  // Blanks are Python's: no-break and ideographic spaces, a next line, a file separator, but not a zero-width one.
  encodes("a 9\nb 7\n", NULL,
          "a\xc2\xa0"
          "b\xe3\x80\x80"
          "a\xc2\x85\x1c b a\xe2\x80\x8b",
          "4 5 4 5 3", "a b a b <unk>");
  // a b a b: (a, b</w>) first, then (a, b); an unknown letter stays alone.
  static const char codes[] = "#version: 0.2\na b</w>\na b\nab ab</w>\na b\n";
  encodes("abab 9\nab@@ 8\nab 7\na@@ 6\nb 5\n\xc3\xa9 4\na 2\n", codes, "abab ab aab a\xc3\xa9 b", "4 6 7 6 7 9 8",
          "abab ab aab a\xc3\xa9 b");
  // Codes are applied between blanks of ASCII, and their symbols split at all others.
  encodes("ab 9\nab@@ 8\n@@ 7\na@@ 6\nb 5\n", codes,
          "\n ab\xc2\xa0"
          "ab  ab\r\n",
          "5 6 4 4", "abab ab");
}

static void refused_vocab(const char *dictionary, const char *codes, const char *words) {
  tarn_vocab *vocab;
  (void)system("rm -rf v");
  mkdir("v", 0700);
  sandbox_write("v/dict.x.txt", dictionary, strlen(dictionary));
  if (codes) sandbox_write("v/codes", codes, strlen(codes));
  assert_int_equal(tarn_vocab_open(&vocab, "v/dict.x.txt"), TARN_STATUS_DATA);
  must_say(words);
}

static void wrong_dictionaries(void **state) {
  (void)state;
  refused_vocab("a 9\nb\n", NULL, "v/dict.x.txt:2: it is not a token, a blank and a count");
  refused_vocab("a 9\nb many\n", NULL, "v/dict.x.txt:2: it is not a token");
  refused_vocab(" 9\n", NULL, "v/dict.x.txt:1: it is not a token");
  refused_vocab("\xff 9\n", NULL, "v/dict.x.txt:1: the token is not UTF-8");
  refused_vocab("a 9\nb 7\na 2\n", NULL, "v/dict.x.txt:3: token \"a\" occurs before");
  refused_vocab("a 9\n<pad> 1\n", NULL, "v/dict.x.txt:2: token \"<pad>\" occurs before");
  refused_vocab("a 9\n", "a b c\n", "codes, line 1: it is not two symbols and a count");
  refused_vocab("a 9\n", "a b\n", "neither of subword-nmt's version 0.2");
  refused_vocab("a 9\n", "#version: 0.2\na b c\n", "codes, line 2: it is not two symbols");
  refused_vocab("a 9\n", "a b 3\na b\n", "codes, line 2: it is not two symbols and a count");
  sandbox_write("v/spm.model", "x", 1);
  tarn_vocab *vocab;
  assert_int_equal(tarn_vocab_open(&vocab, "v/dict.x.txt"), TARN_STATUS_DATA);
  must_say("v/codes cuts texts, and so does v/spm.model: keep one of them");
}

static void refused(const char *words) {
  assert_int_equal(tarn_checkpoint_import("never", "in", NULL, NULL), TARN_STATUS_DATA);
  must_say(words);
  assert_false(tarn__file_exists("never"));
}

// A text of config.json is replaced by another one.
static void wrong_settings(void **state) {
  (void)state;
  static const struct {
    const char *from, *to, *words;
  } cases[] = {
      {"\"encoder_attention_heads\": 2", "\"encoder_attention_heads\": 3", "\"encoder_attention_heads\" is 3, which"},
      {"\"encoder_attention_heads\": 2,", "", "it has no \"encoder_attention_heads\""},
      {"\"activation_fn\": \"relu\"", "\"activation_fn\": \"linear\"", "\"activation_fn\" is \"linear\""},
      {"\"layernorm_embedding\": false", "\"layernorm_embedding\": true",
       "\"layernorm_embedding\" is true, but in/model.safetensors has no tensor"},
      {"\"arch\": \"transformer\"", "\"no_cross_attention\": true", "\"no_cross_attention\" is true"},
      {"\"adaptive_softmax_cutoff\": null", "\"adaptive_softmax_cutoff\": [9]", "adaptive softmax"},
      {"\"encoder_normalize_before\": false", "\"encoder_normalize_before\": true",
       "has no tensor \"encoder.layer_norm.weight\""},
      {"\"encoder_learned_pos\": false", "\"encoder_learned_pos\": true", "\"encoder_learned_pos\" is true"},
      {"\"share_all_embeddings\": false", "\"share_all_embeddings\": true", "the embeddings in in/model.safetensors"},
      {"\"source_lang\": \"de\"", "\"source_lang\": \"../de\"", "\"source_lang\" is not the language"},
      {"\"source_lang\": \"de\",", "", "it has no \"source_lang\""},
      {"\"max_source_positions\": 1024", "\"max_source_positions\": -1", "\"max_source_positions\" is not a whole"},
  };
  make_folder("iwslt");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    write_changed("in/config.json", golden("iwslt", "config.json"), cases[i].from, cases[i].to);
    refused(cases[i].words);
  }
  copy_file(golden("iwslt", "config.json"), "in/config.json");
  sandbox_write("in/dict.en.txt", "a 9\n", 4);
  refused(
      "in/dict.en.txt: the vocabulary has 5 tokens, 4 special ones included, but tensor "
      "\"decoder.embed_tokens.weight\" has");
}

static void rename_tensor(const char *name, const char *other) {
  write_renamed("in/model.safetensors", golden("iwslt", "model.safetensors"), name, other);
}

static void wrong_tensors(void **state) {
  (void)state;
  make_folder("iwslt");
  rename_tensor("encoder.layers.0.self_attn.q_proj.weight", NULL);
  refused("\"encoder.layers.0.self_attn.q_proj.weight\"");
  rename_tensor("decoder.version", "decoder.wings");
  refused("tensor \"decoder.wings\" is none of a Transformer of fairseq with 1 and 1 layers");
  rename_tensor("decoder.embed_tokens.weight", NULL);
  refused("tensor \"decoder.embed_tokens.weight\" is missing");
  rename_tensor("decoder.layers.0.fc1.weight", NULL);
  refused("tensor \"decoder.layers.0.fc1.weight\" is missing");
  // Older files leave out the copy of a tied output.
  rename_tensor("decoder.output_projection.weight", NULL);
  must(tarn_checkpoint_import("model", "in", NULL, NULL));
  check_logits("model", golden("iwslt", "expected.safetensors"), 1e-5);
  remove("in/model.safetensors");
  sandbox_write("in/checkpoint_best.pt", "PK\3\4", 4);
  refused("in: there is no model.safetensors, and checkpoint_best.pt is a pickle");
  must_say("docs/translation.md");
}

// Whatever allocation fails, nothing is left behind, and no file.
static void failing_memory(void **state) {
  (void)state;
  make_folder("iwslt");
  for (uint64_t n = 1;; n += n < 40 ? 1 : 37) {
    tarn__memory_fail_after(n);
    const tarn_status status = tarn_checkpoint_import("lost", "in", NULL, NULL);
    tarn__memory_fail_after(0);
    if (status == TARN_STATUS_OK) break;
    assert_int_equal(status, TARN_STATUS_MEMORY);
    assert_false(tarn__file_exists("lost"));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(logits_and_translations, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(parts, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(dictionaries, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(wrong_dictionaries, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(wrong_settings, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(wrong_tensors, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(failing_memory, sandbox_open, sandbox_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
