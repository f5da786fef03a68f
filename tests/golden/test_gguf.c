// GGUF files of llama.cpp: one that its own package wrote (make_gguf.py), the way there and back in every type, and
// damaged ones.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "foreign/half_floats.h"
#include "golden/import_check.h"
#include "golden/language_check.h"
#include "tarn/checkpoint.h"
#include "tarn/lab/foreign.h"

#define MODEL GOLDEN "gguf/model.gguf"
#define GPT2 GOLDEN "gguf/gpt2.gguf"

// The products of the rows of a tensor with 1, 2, 3, ... are those of the package, after a way through transformers'
// names.
static void check_sums(const char *path) {
  tarn__safetensors sums = {0}, exported = {0};
  must(tarn__safetensors_open(&sums, path));
  must(tarn__safetensors_open(&exported, "folder/model.safetensors"));
  assert_int_equal(sums.count, exported.count);
  for (size_t i = 0; i < sums.count; i++) {
    const tarn__stored *wanted = &sums.tensors[i];
    const tarn__stored *found = tarn__safetensors_find(&exported, wanted->name + strlen("sum/"));
    assert_non_null(found);
    const int64_t cols = found->shape[found->dims - 1];
    for (int64_t r = 0; r < wanted->shape[0]; r++) {
      double sum = 0.0;
      for (int64_t c = 0; c < cols; c++) sum += (double)(c + 1) * (double)((const float *)found->data)[r * cols + c];
      const double expected = (double)((const float *)wanted->data)[r];
      if (!(fabs(sum - expected) < 1e-4 * (1 + fabs(expected))))
        fail_msg("%s[%lld]: %g, not %g", wanted->name, (long long)r, sum, expected);
    }
  }
  tarn__safetensors_close(&sums);
  tarn__safetensors_close(&exported);
}

static void as_the_package_reads(void **state) {
  (void)state;
  must(tarn_checkpoint_import("model", MODEL, NULL, NULL));
  must(tarn_checkpoint_export_llama("folder", "model", TARN_LLAMA_FORMAT_LLAMA));
  check_sums(GOLDEN "gguf/values.safetensors");
  must(tarn_checkpoint_import("model", GPT2, NULL, NULL));
  must(tarn_checkpoint_export_gpt2("folder", "model"));
  check_sums(GOLDEN "gguf/gpt2_values.safetensors");
}

// GPT-2: the way there and back, and what another program's GPT-2 has that llama.cpp's has not.
static void gpt2(void **state) {
  (void)state;
  tarn__checkpoint *c;
  must(tarn_checkpoint_import("model", GPT2, NULL, NULL));
  const double first = score_text("model", 16);
  for (int type = 0; type <= TARN_GGUF_TYPE_Q8_0; type++) {
    must(tarn_checkpoint_export_gguf("model.gguf", "model", (tarn_gguf_type)type));
    must(tarn_checkpoint_import("again", "model.gguf", NULL, NULL));
    if (type == TARN_GGUF_TYPE_F32) check_same_tensors("model", "again");
    assert_true(fabs(score_text("again", 16) - first) < (type == TARN_GGUF_TYPE_F32 ? 1e-9 : 0.5));
  }
  must(tarn__checkpoint_open(&c, "again", TARN__F32));
  assert_string_equal(tarn_vocab_piece(c->target, tarn_vocab_eos(c->target)), "</s>");
  tarn__checkpoint_close(&c);
  must(tarn_checkpoint_import_gpt2("model", GOLDEN "gpt2_model/tied", "bytes"));
  must(tarn_checkpoint_export_gguf("model.gguf", "model", TARN_GGUF_TYPE_F32));
  must(tarn_checkpoint_import("again", "model.gguf", "bytes", NULL));
  check_same_tensors("model", "again");
  check_language_model("again", GOLDEN "gpt2_model/tied/expected.safetensors");
  must(tarn_checkpoint_import_gpt2("model", GOLDEN "gpt2_model/untied", "bytes"));
  assert_int_equal(tarn_checkpoint_export_gguf("never", "model", TARN_GGUF_TYPE_F32), TARN_STATUS_USAGE);
  must_say("the activation of its FFNs is gelu, and GGUF's gpt2 has gelu_tanh");
  assert_false(tarn__file_exists("never"));
}

// The vocabulary is that of the tokenizer.json that the file was made of.
static void the_vocabulary_is_read(void **state) {
  (void)state;
  tarn_checkpoint_info *info;
  tarn__checkpoint *c;
  tarn_vocab_ids ids = {0};
  tarn_vocab_text text = {0};
  must(tarn_checkpoint_import_gguf("model", MODEL, NULL));
  must(tarn_checkpoint_info_open(&info, "model"));
  assert_non_null(strstr(info->config, "decoder_start: 300"));
  assert_non_null(strstr(info->config, "original_length: 32"));
  tarn_checkpoint_info_close(&info);
  must(tarn__checkpoint_open(&c, "model", TARN__F32));
  assert_string_equal(tarn_vocab_piece(c->target, tarn_vocab_eos(c->target)), "</s>");
  must(tarn_vocab_encode(c->target, &ids, "the <|tool|> 1234", 17));
  must(tarn_vocab_decode(c->target, &text, ids.data, ids.count));
  assert_string_equal(text.data, "the <|tool|> 1234");
  assert_string_equal(tarn_vocab_piece(c->target, ids.data[ids.count - 5]), "<|tool|>");
  tarn_vocab_ids_close(&ids);
  tarn_vocab_text_close(&text);
  tarn__checkpoint_close(&c);
}

// In F32 nothing changes. In F16 and Q8_0 the values are those of the type, and stay the same the next time.
static void there_and_back(void **state) {
  (void)state;
  static const char *const models[] = {"llama", "mistral", "qwen2"};
  char path[128];
  for (int i = 0; i < 3; i++) {
    snprintf(path, sizeof path, GOLDEN "llama_model/%s", models[i]);
    must(tarn_checkpoint_import("model", path, "bytes", NULL));
    must(tarn_checkpoint_export_gguf("model.gguf", "model", TARN_GGUF_TYPE_F32));
    must(tarn_checkpoint_import("again", "model.gguf", "bytes", NULL));
    check_same_tensors("model", "again");
    snprintf(path, sizeof path, GOLDEN "llama_model/%s/expected.safetensors", models[i]);
    check_language_model("again", path);
  }
  must(tarn_checkpoint_import_gguf("model", MODEL, NULL));
  const double first = score_text("model", 30);
  for (int type = 0; type <= TARN_GGUF_TYPE_Q8_0; type++) {
    must(tarn_checkpoint_export_gguf("model.gguf", "model", (tarn_gguf_type)type));
    must(tarn_checkpoint_import("again", "model.gguf", NULL, NULL));
    assert_true(fabs(score_text("again", 30) - first) < (type == TARN_GGUF_TYPE_F32 ? 1e-9 : 0.5));
    must(tarn_checkpoint_export_gguf("twice.gguf", "again", (tarn_gguf_type)type));
    must(tarn_checkpoint_import("twice", "twice.gguf", NULL, NULL));
    if (type != TARN_GGUF_TYPE_Q8_0) check_same_tensors("again", "twice");
  }
}

// Both vocabularies cut a text into the same tokens.
static void check_same_ids(const tarn_vocab *a, const tarn_vocab *b, const char *text) {
  tarn_vocab_ids one = {0}, other = {0};
  must(tarn_vocab_encode(a, &one, text, strlen(text)));
  must(tarn_vocab_encode(b, &other, text, strlen(text)));
  if (one.count != other.count) fail_msg("\"%s\": %zu tokens, not %zu", text, other.count, one.count);
  assert_memory_equal(one.data, other.data, one.count * sizeof *one.data);
  tarn_vocab_ids_close(&one);
  tarn_vocab_ids_close(&other);
}

// A vocabulary of GPT-2's files is written as one of the tokenizer's kind.
static void own_gpt2_vocabulary(void **state) {
  (void)state;
  static const char *const texts[] = {"the old house", "we're  123 !!!", "\xC3\x84pfel, <|endoftext|>", "", "\xE2\x82"};
  tarn_vocab *vocab;
  tarn__checkpoint *c;
  must(tarn_vocab_import_gpt2("gpt2.vocab", GOLDEN "gpt2_toy"));
  save_model("model",
             "model: { d_model: 16, norm: pre, positions: learned, max_length: 8, embedding_scale: no, activation: "
             "gelu_tanh }\ndecoder: { layers: L }\n" KINDS,
             "gpt2.vocab");
  must(tarn_checkpoint_export_gguf("model.gguf", "model", TARN_GGUF_TYPE_F32));
  must(tarn_checkpoint_import("again", "model.gguf", NULL, NULL));
  must(tarn_vocab_open(&vocab, "gpt2.vocab"));
  must(tarn__checkpoint_open(&c, "again", TARN__F32));
  assert_int_equal(tarn_vocab_eos(vocab), tarn_vocab_eos(c->target));
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) check_same_ids(vocab, c->target, texts[i]);
  tarn__checkpoint_close(&c);
  tarn_vocab_close(&vocab);
}

#define LLAMA                                                                                               \
  "model: { d_model: 16, norm: pre, norm_type: rms, positions: rotary, max_length: 8, embedding_scale: no " \
  "}\ndecoder: "                                                                                            \
  "{ layers: G }\n" KINDS "  G: { heads: 2, ffn: { type: swiglu, width: 32 } }\n"

// Models with a vocabulary of SentencePiece, with bytes and without, in its own file and in that of a tokenizer.json:
// their scores are written, and texts are cut as before.
static void pieces(void **state) {
  (void)state;
  static const char *const texts[] = {"the cat sees a house",     "dogs and  cats", "", " x",
                                      "caf\xC3\xA9 \xE2\x98\x83", "<s> seas"};
  tarn_vocab_options options;
  sandbox_write("text", "the cat sees a house\nthe dog and the cat see\ndogs and cats and houses see the sea\n", 82);
  tarn_vocab_default(&options);
  options.type = TARN_VOCAB_TYPE_BPE;
  options.size = 21;
  options.normalization = TARN_VOCAB_NORMALIZATION_IDENTITY;
  must(tarn_vocab_train("plain", (const char *[]){"text"}, 1, &options));
  copy_file(GOLDEN "tokenizers/pieces.json", "tokenizer.json");
  sandbox_write("tokenizer_config.json", "{\"eos_token\":\"</s>\",\"bos_token\":\"<s>\"}", 38);
  must(tarn_vocab_import_tokenizer("listed", "tokenizer.json"));
  static const char *const vocabs[] = {"plain", GOLDEN "byte_fallback.model", "listed"};
  for (int i = 0; i < 3; i++) {
    tarn_vocab *vocab;
    tarn__checkpoint *c;
    save_model("model", LLAMA, vocabs[i]);
    must(tarn_checkpoint_export_gguf("model.gguf", "model", TARN_GGUF_TYPE_F32));
    must(tarn_checkpoint_import("again", "model.gguf", NULL, NULL));
    must(tarn_vocab_open(&vocab, vocabs[i]));
    must(tarn__checkpoint_open(&c, "again", TARN__F32));
    assert_int_equal(tarn_vocab_eos(vocab), tarn_vocab_eos(c->target));
    assert_int_equal(tarn_vocab_unk(vocab), tarn_vocab_unk(c->target));
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) check_same_ids(vocab, c->target, texts[k]);
    // The file of what came back is the same one.
    must(tarn_checkpoint_export_gguf("twice.gguf", "again", TARN_GGUF_TYPE_F32));
    must(tarn_checkpoint_import("twice", "twice.gguf", NULL, NULL));
    check_same_tensors("again", "twice");
    tarn__checkpoint_close(&c);
    tarn_vocab_close(&vocab);
  }
}

// A unigram model has no form there, and texts that are normalised are so in tarn alone: warnings say so.
static void other_pieces(void **state) {
  (void)state;
  tarn_vocab_options options;
  sandbox_write("text", "the cat sees a house\nthe dog and the cat see\ndogs and cats and houses see the sea\n", 82);
  for (int unigram = 0; unigram < 2; unigram++) {
    tarn_vocab_default(&options);
    options.type = unigram ? TARN_VOCAB_TYPE_UNIGRAM : TARN_VOCAB_TYPE_BPE;
    options.size = 21;
    must(tarn_vocab_train("vocab", (const char *[]){"text"}, 1, &options));
    save_model("model", LLAMA, "vocab");
    warning_count = 0;
    tarn_log_set(keep_warning, NULL);
    must(tarn_checkpoint_export_gguf("model.gguf", "model", TARN_GGUF_TYPE_F32));
    tarn_log_set(NULL, NULL);
    assert_int_equal(warning_count, 1);
    assert_non_null(strstr(warnings, unigram ? "no vocabulary was written" : "llama.cpp does not normalise texts"));
  }
  assert_int_equal(tarn_checkpoint_import("never", "model.gguf", NULL, NULL), TARN_STATUS_DATA);
  must_say("it has no \"tokenizer.ggml.model\", and so no vocabulary; name one");
}

// Half precision: every half comes back, and floats go to the nearest one, of two the even one.
static void halves(void **state) {
  (void)state;
  static const struct {
    float value;
    uint16_t half;
  } cases[] = {{1.0f, 0x3C00},     {-2.0f, 0xC000},          {65504.0f, 0x7BFF},       {65519.0f, 0x7BFF},
               {65520.0f, 0x7C00}, {6.1035156e-5f, 0x0400},  {5.9604645e-8f, 0x0001},  {2.9802322e-8f, 0x0000},
               {2.99e-8f, 0x0001}, {1.00048828125f, 0x3C00}, {1.00146484375f, 0x3C02}, {0.0f, 0},
               {-0.0f, 0x8000}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_int_equal(tarn__float_to_half(cases[i].value), cases[i].half);
  for (uint32_t h = 0; h < 0x10000; h++) {
    if ((h & 0x7C00) == 0x7C00 && (h & 0x3FF)) continue;
    assert_int_equal(tarn__float_to_half(tarn__half_to_float((uint16_t)h)), h);
  }
}

// Eight bytes of the file are other ones: where the pattern stands, and so many bytes behind.
static void damaged(void **state) {
  (void)state;
  static const struct {
    const char *pattern;
    size_t behind;
    uint64_t value;
    size_t bytes;
    const char *words;
  } cases[] = {
      {"GGUF", 4, 1, 4, "GGUF of version 1; tarn reads 2 and 3"},
      {"GGUF", 8, UINT64_C(1) << 60, 8, "tensors, more than it can hold"},
      {"GGUF", 16, UINT64_C(1) << 40, 8, "keys, more than"},
      {"general.architecture", 20, 99, 4, "is of the unknown type 99"},
      {"general.architecture", 24, UINT64_MAX, 8, "general.architecture ends outside of the file"},
      {"llama.block_count", 21, 0, 4, "\"llama.block_count\" is not a whole number from 1"},
      {"llama.block_count", 21, 2, 4, "tensor \"blk.1.attn_norm.weight\" is missing"},
      {"llama.embedding_length", 26, 64, 4, "heads have keys of 16 numbers"},
      {"tokenizer.ggml.tokens", 29, UINT64_C(1) << 61, 8, "tokenizer.ggml.tokens ends outside of the file"},
      {"blk.0.attn_q.weight", 23, 0, 8, "has the size 0"},
      {"blk.0.attn_q.weight", 23, 31, 8, "has rows of 31 numbers, which are no blocks of 32 (Q8_0)"},
      {"blk.0.attn_q.weight", 39, 12, 4, "is of type Q4_K; tarn reads F32, F16, BF16 and Q8_0"},
      {"blk.0.attn_q.weight", 39, 77, 4, "is of type number 77"},
      {"blk.0.attn_q.weight", 43, 5, 8, "begins at 5, which is no multiple of 32"},
      {"blk.0.attn_q.weight", 43, 0, 8, "overlap"},
      {"blk.0.attn_q.weight", 43, UINT64_C(1) << 62, 8, "ends outside of the file"},
      {"blk.0.attn_q.weight", 19, 9, 4, "has 9 dimensions"},
  };
  char *bytes;
  size_t size;
  must(tarn__file_read(MODEL, &bytes, &size));
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char *place = memmem(bytes, size, cases[i].pattern, strlen(cases[i].pattern)), kept[8];
    assert_non_null(place);
    memcpy(kept, place + cases[i].behind, cases[i].bytes);
    memcpy(place + cases[i].behind, &cases[i].value, cases[i].bytes);
    sandbox_write("bad.gguf", bytes, size);
    memcpy(place + cases[i].behind, kept, cases[i].bytes);
    assert_int_equal(tarn_checkpoint_import_gguf("never", "bad.gguf", NULL), TARN_STATUS_DATA);
    must_say(cases[i].words);
  }
  // A file that ends anywhere is refused, and so is each with another word in the place of one.
  for (size_t cut = 0; cut < size; cut += cut < 600 ? 1 : 997) {
    sandbox_write("bad.gguf", bytes, cut);
    assert_int_not_equal(tarn_checkpoint_import_gguf("never", "bad.gguf", NULL), TARN_STATUS_OK);
  }
  static const struct {
    const char *from, *to, *words;
  } words[] = {{"llama-bpe", "deep-seek", "\"tokenizer.ggml.pre\" is \"deep-seek\"; tarn has gpt-2, llama-bpe, qwen2"},
               {"rope.freq_base", "rope.freq_bass", "does not scale rotary positions as Llama 3.1 does"},
               {"eos_token_id", "oes_token_id", "it has no \"tokenizer.ggml.eos_token_id\""},
               {"ggml.merges", "ggml.murges", "it has no \"tokenizer.ggml.merges\", and so no vocabulary"},
               {"blk.0.ffn_up", "blk.0.ffn_op", "tensor \"blk.0.ffn_up.weight\" is missing"}};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    char *place = memmem(bytes, size, words[i].from, strlen(words[i].from));
    assert_non_null(place);
    memcpy(place, words[i].to, strlen(words[i].to));
    sandbox_write("bad.gguf", bytes, size);
    memcpy(place, words[i].from, strlen(words[i].from));
    assert_int_equal(tarn_checkpoint_import_gguf("never", "bad.gguf", NULL), TARN_STATUS_DATA);
    must_say(words[i].words);
  }
  tarn__free(bytes);
  assert_false(tarn__file_exists("never"));
}

static int open_all(void **state) { return open_with_bytes(state, false); }

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(as_the_package_reads),
                                     cmocka_unit_test(the_vocabulary_is_read),
                                     cmocka_unit_test(there_and_back),
                                     cmocka_unit_test(gpt2),
                                     cmocka_unit_test(own_gpt2_vocabulary),
                                     cmocka_unit_test(pieces),
                                     cmocka_unit_test(other_pieces),
                                     cmocka_unit_test(halves),
                                     cmocka_unit_test(damaged)};
  return cmocka_run_group_tests(tests, open_all, sandbox_close);
}
