// Models of LLaMA's kind of the package transformers (make_llama.py): their log-probabilities and greedy continuations,
// the way back, files in several parts, and what is refused.
#include <math.h>
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
#include "golden/language_check.h"
#include "shadow_device.h"
#include "tarn/checkpoint.h"
#include "tarn/lab/foreign.h"
#include "tarn/lm.h"

static const char *const MODELS[] = {"llama", "grouped", "mistral", "qwen2"};
enum { MODEL_COUNT = sizeof MODELS / sizeof *MODELS };
static const tarn_llama_format FORMATS[MODEL_COUNT] = {TARN_LLAMA_FORMAT_LLAMA, TARN_LLAMA_FORMAT_LLAMA,
                                                       TARN_LLAMA_FORMAT_MISTRAL, TARN_LLAMA_FORMAT_QWEN2};

static const char *golden(const char *model, const char *file) {
  static char path[256];
  snprintf(path, sizeof path, GOLDEN "llama_model/%s%s%s", model, *file ? "/" : "", file);
  return path;
}

static void as_transformers_computes(void **state) {
  (void)state;
  for (int i = 0; i < MODEL_COUNT; i++) {
    must(tarn_checkpoint_import_llama("model", golden(MODELS[i], ""), "bytes"));
    check_language_model("model", golden(MODELS[i], "expected.safetensors"));
  }
}

// The same on a device with memory of its own.
static void on_the_shadow(void **state) {
  tarn__device_use(&shadow_device);
  as_transformers_computes(state);
  tarn__device_use(NULL);
  assert_true(shadow.most > 0);
  assert_int_equal(shadow.now, 0);
}

// The tensors come back as they were, in F32 in place of BF16, under the names that transformers writes.
static void there_and_back(void **state) {
  (void)state;
  for (int i = 0; i < MODEL_COUNT; i++) {
    must(tarn_checkpoint_import_llama("model", golden(MODELS[i], ""), "bytes"));
    must(tarn_checkpoint_export_llama("exported", "model", FORMATS[i]));
    must(tarn_checkpoint_import_llama("again", "exported", "bytes"));
    check_language_model("again", golden(MODELS[i], "expected.safetensors"));
    check_same_tensors("model", "again");
    if (i == 0) continue;  // in two files
    tarn__safetensors before = {0}, after = {0};
    must(tarn__safetensors_open(&before, golden(MODELS[i], "model.safetensors")));
    must(tarn__safetensors_open(&after, "exported/model.safetensors"));
    assert_int_equal(before.count, after.count);
    for (size_t t = 0; t < before.count; t++) {
      assert_string_equal(before.tensors[t].name, after.tensors[t].name);
      assert_int_equal(before.tensors[t].dims, after.tensors[t].dims);
      assert_memory_equal(before.tensors[t].shape, after.tensors[t].shape,
                          (size_t)before.tensors[t].dims * sizeof *before.tensors[t].shape);
    }
    tarn__safetensors_close(&before);
    tarn__safetensors_close(&after);
  }
}

#define LLAMA                                                                                                \
  "norm: pre, norm_type: rms, positions: rotary, max_length: 20, embedding_scale: no, embeddings: decoder, " \
  "dropout: 0"
#define GATED                                                                                                        \
  "kinds:\n  L: { heads: 2, ffn: { type: swiglu, width: 24 } }\n"                                                    \
  "  R: { heads: 2, ffn: { type: swiglu, width: 24 }, frozen: yes }\n"                                               \
  "  Q: { heads: 2, kv_heads: 1, ffn: { type: swiglu, width: 24 } }\n"                                               \
  "  B: { heads: 2, ffn: { type: swiglu, width: 24, beta: 2 } }\n  F: { heads: 2, ffn: 24 }\n  N: { mixer: none }\n" \
  "  O: { heads: 2, norm: post, ffn: { type: swiglu, width: 24 } }\n"

// A model of ours with frozen layers, which have biases.
static void biases_are_written(void **state) {
  (void)state;
  save_model("own", "model: { d_model: 16, " LLAMA " }\ndecoder: { layers: R1 L R1 }\n" GATED, "bytes");
  must(tarn_checkpoint_export_llama("dense", "own", TARN_LLAMA_FORMAT_LLAMA));
  must(tarn_checkpoint_import_llama("again", "dense", "bytes"));
  assert_true(fabs(score_text("own", 2) - score_text("again", 2)) < 1e-4);
  const tarn_llama_format others[] = {TARN_LLAMA_FORMAT_MISTRAL, TARN_LLAMA_FORMAT_QWEN2};
  for (int i = 0; i < 2; i++) {
    assert_int_equal(tarn_checkpoint_export_llama("refused", "own", others[i]), TARN_STATUS_USAGE);
    must_say(i ? "biases other than 0 besides those of queries"
               : "attention has biases other than 0, which the format mistral");
  }
  save_model("plain", "model: { d_model: 16, " LLAMA " }\ndecoder: { layers: Q Q }\n" GATED, "bytes");
  for (int i = 0; i < 2; i++) {
    must(tarn_checkpoint_export_llama("dense", "plain", others[i]));
    must(tarn_checkpoint_import("again", "dense", "bytes", NULL));
    assert_true(fabs(score_text("plain", 2) - score_text("again", 2)) < 1e-4);
  }
}

static void other_models_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *text, *words;
  } cases[] = {
      {"model: { d_model: 16, " LLAMA " }\ndecoder: { layers: L N }\n" GATED, "layer 2 (kind N) is none of attention"},
      {"model: { d_model: 16, " LLAMA " }\ndecoder: { layers: L O }\n" GATED, "layer 2 (kind O) is not pre-norm"},
      {"model: { d_model: 16, " LLAMA " }\ndecoder: { layers: L F }\n" GATED, "layer 2 (kind F) has ffn as its FFN"},
      {"model: { d_model: 16, " LLAMA " }\ndecoder: { layers: L Q }\n" GATED, "kinds L and Q have different kv_heads"},
      {"model: { d_model: 16, " LLAMA " }\ndecoder: { layers: B }\n" GATED, "the FFN of kind B has a beta"},
      {"model: { d_model: 16, " LLAMA ", output_bias: yes }\ndecoder: { layers: L }\n" GATED, "output_bias is yes"},
      {"model: { d_model: 16, norm: pre, positions: learned }\ndecoder: { layers: F }\n" GATED,
       "model.positions is not rotary"},
      {"model: { d_model: 16, norm: pre, positions: rotary, embedding_scale: no }\ndecoder: { layers: L }\n" GATED,
       "norms of type layer, and LLaMA's are rms"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    save_model("other", cases[i].text, "bytes");
    assert_int_equal(tarn_checkpoint_export_llama("refused", "other", TARN_LLAMA_FORMAT_LLAMA), TARN_STATUS_USAGE);
    must_say(cases[i].words);
    assert_false(tarn__file_exists("refused"));
  }
}

static void refused(const char *words) {
  const tarn_status status = tarn_checkpoint_import("never", "bad", "bytes", NULL);
  assert_true(status == TARN_STATUS_DATA || status == TARN_STATUS_IO);
  must_say(words);
  assert_false(tarn__file_exists("never"));
}

static void wrong_configs(void **state) {
  (void)state;
  static const struct {
    const char *from, *to, *words;
  } cases[] = {
      {"\"hidden_size\"", "\"hiden_size\"", "bad/config.json: it has no \"hidden_size\", but \"hiden_size\""},
      {"\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3", "which does not divide \"num_attention_heads\" (4)"},
      {"\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3", "tensor \"layers.2.input_layernorm.weight\" is missing"},
      {"\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1", "\"model.layers.1.input_layernorm.weight\" is none"},
      {"\"mlp_bias\": true", "\"mlp_bias\": false", "mlp.down_proj.bias\" is none of a model of this kind"},
      {"\"gelu\"", "\"gelu_new\"", "\"hidden_act\" is of the kind of gelu_tanh; tarn's gates have silu, gelu and relu"},
      {"\"rope_type\": \"llama3\"", "\"rope_type\": \"yarn\"",
       "\"rope_parameters\" is of type \"yarn\"; tarn has default, linear and llama3"},
      {"\"factor\": 8.0,", "", "\"rope_parameters\" has no \"factor\""},
      {"\"high_freq_factor\": 4.0", "\"high_freq_factor\": 0.5", "\"high_freq_factor\": 0.5 is not more than"},
      {"\"rope_theta\": 50.0", "\"rope_theta\": 0.5", "bad/config.json: \"rope_theta\": 0.5 is out of range"},
      {"\"head_dim\": 6", "\"head_dim\": 8", "q_proj.weight\" has the shape [24, 4] where [32, 4] was expected"},
      {"\"eos_token_id\": 2", "\"eos_token_id\": 3", "the end of sentence is token 2"},
      {"\"bos_token_id\": 1", "\"bos_token_id\": 300", "is no token of 259"},
      {"\"vocab_size\": 259", "\"vocab_size\": 258", "has 259 tokens, but bad/config.json says 258"},
      {"\"model_type\": \"llama\"", "\"model_type\": \"lama\"", "\"model_type\" is \"lama\"; tarn imports gpt2, llama"},
      {"\"model_type\": \"llama\"", "\"model_type\": \"mistral\"", "bias\" is none of a model of this kind"},
  };
  mkdir("bad", 0700);
  copy_file(golden("grouped", "model.safetensors"), "bad/model.safetensors");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    write_changed("bad/config.json", golden("grouped", "config.json"), cases[i].from, cases[i].to);
    refused(cases[i].words);
  }
  copy_file(golden("grouped", "config.json"), "bad/config.json");
  assert_int_equal(tarn_checkpoint_import_llama("never", "bad", NULL), TARN_STATUS_DATA);
  must_say("it has no vocabulary");
}

static const char INDEX[] = "model.safetensors.index.json", FIRST[] = "model-00001-of-00002.safetensors",
                  SECOND[] = "model-00002-of-00002.safetensors";

// Files in several parts, whose index is from elsewhere.
static void wrong_parts(void **state) {
  (void)state;
  static const struct {
    const char *from, *to, *words;
  } cases[] = {
      {"\"weight_map\"", "\"weights\"", "index.json: it has no \"weight_map\" from tensors to files"},
      {"\"model.norm.weight\": \"model-00002", "\"model.norm.weight\": \"model-00001",
       "it says that tensor \"model.norm.weight\" is in model-00001-of-00002.safetensors, which it is not"},
      {"\"model.norm.weight\": \"model-0", "\"model.norm.weight\": \"../model-0",
       "does not give the name of a file beside it for tensor \"model.norm.weight\""},
      {"\"model.norm.weight\": \"model-00002", "\"model.norm.weight\": \"model-00003",
       "model-00003-of-00002.safetensors"},
      {"\"model.norm.weight\": ", "\"model.normal.weight\": ", "it says that tensor \"model.normal.weight\" is in"},
      {"{", "[", "index.json:"},
  };
  mkdir("parts", 0700);
  remove("bad/model.safetensors");
  mkdir("bad", 0700);
  copy_file(golden("llama", "config.json"), "bad/config.json");
  copy_file(golden("llama", FIRST), "bad/model-00001-of-00002.safetensors");
  copy_file(golden("llama", SECOND), "bad/model-00002-of-00002.safetensors");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    write_changed("bad/model.safetensors.index.json", golden("llama", INDEX), cases[i].from, cases[i].to);
    refused(cases[i].words);
  }
  // A tensor that both files have; one that the index does not name.
  copy_file(golden("llama", INDEX), "bad/model.safetensors.index.json");
  tarn__safetensors file = {0};
  tarn__stored tensors[64];
  must(tarn__safetensors_open(&file, golden("llama", SECOND)));
  for (int change = 0; change < 2; change++) {
    for (size_t i = 0; i < file.count; i++) tensors[i] = file.tensors[i];
    tensors[file.count] = *tarn__safetensors_find(&file, "model.norm.weight");
    tensors[file.count].name = change ? "model.other.weight" : "model.embed_tokens.weight";
    must(tarn__safetensors_write("bad/model-00002-of-00002.safetensors", tensors, file.count + 1, NULL, 0));
    refused(change ? "it does not name tensor \"model.other.weight\" of bad/model-00002-of-00002.safetensors"
                   : "tensor \"model.embed_tokens.weight\" is in two of its files");
  }
  tarn__safetensors_close(&file);
}

// Pickles are named, and nothing reads them.
static void pickles(void **state) {
  (void)state;
  static const char pickle[] = "\x80\x02}q\x00.", archive[] = "PK\3\4..........................archive/data.pkl";
  mkdir("pickled", 0700);
  copy_file(golden("qwen2", "config.json"), "pickled/config.json");
  sandbox_write("pickled/pytorch_model.bin", archive, sizeof archive);
  assert_int_equal(tarn_checkpoint_import("never", "pickled", "bytes", NULL), TARN_STATUS_DATA);
  must_say(
      "pickled: there is no model.safetensors, and pytorch_model.bin is a pickle, a program that reading it would run; "
      "save the model anew in Python as safetensors");
  sandbox_write("old.pt", pickle, sizeof pickle);
  const char *const files[] = {"pickled/pytorch_model.bin", "old.pt"};
  for (int i = 0; i < 2; i++) {
    tarn_lm *lm;
    tarn_lm_options options;
    tarn_lm_default(&options);
    assert_int_not_equal(tarn_checkpoint_import("never", files[i], "bytes", NULL), TARN_STATUS_OK);
    must_say("this is a pickle, a program that reading it would run");
    assert_int_not_equal(tarn_lm_open(&lm, files[i], &options), TARN_STATUS_OK);
    must_say("this is a pickle");
  }
}

static int open_all(void **state) { return open_with_bytes(state, false); }

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(as_transformers_computes),
      cmocka_unit_test(on_the_shadow),
      cmocka_unit_test(there_and_back),
      cmocka_unit_test(biases_are_written),
      cmocka_unit_test(other_models_are_refused),
      cmocka_unit_test(wrong_configs),
      cmocka_unit_test(wrong_parts),
      cmocka_unit_test(pickles),
  };
  return cmocka_run_group_tests(tests, open_all, sandbox_close);
}
