// GPT-2 models of the package transformers (make_gpt2.py): their log-probabilities and greedy continuations, the way
// back, and what is refused.
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
#include "tarn/process.h"

enum { EOS = 2, PATH = 256 };

static const char *const MODELS[] = {"tied", "untied"};

static const char *golden(const char *model, const char *file) {
  static char path[PATH];
  snprintf(path, sizeof path, GOLDEN "gpt2_model/%s%s%s", model, *file ? "/" : "", file);
  return path;
}

// A sentence of more tokens than there are positions.
static void check_longest(const char *checkpoint) {
  tarn__checkpoint *c;
  tarn__scorer *scorer;
  tarn__scorer_options options;
  int32_t many[17] = {0};
  double unused[17];
  tarn__scorer_sentence sentence = {.ids = many, .length = 17, .log_probabilities = unused};
  must(tarn__checkpoint_open(&c, checkpoint, TARN__F32));
  tarn__scorer_default(&options);
  must(tarn__scorer_open(&scorer, c->model, EOS, &options));
  assert_int_equal(tarn__scorer_run(scorer, &sentence, 1), TARN_STATUS_DATA);
  assert_non_null(strstr(tarn_error_message(), "longer than model.max_length (16)"));
  tarn__scorer_close(&scorer);
  tarn__checkpoint_close(&c);
}

static void as_transformers_computes(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof MODELS / sizeof *MODELS; i++) {
    must(tarn_checkpoint_import_gpt2("model.safetensors", golden(MODELS[i], ""), "bytes"));
    check_language_model("model.safetensors", golden(MODELS[i], "expected.safetensors"));
    check_longest("model.safetensors");
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

// The tensors come back as they were, under the names that transformers writes.
static void there_and_back(void **state) {
  (void)state;
  tarn__safetensors before = {0}, after = {0};
  must(tarn_checkpoint_import_gpt2("model", golden("tied", ""), "bytes"));
  must(tarn_checkpoint_export_gpt2("exported", "model"));
  must(tarn__safetensors_open(&before, golden("tied", "model.safetensors")));
  must(tarn__safetensors_open(&after, "exported/model.safetensors"));
  assert_int_equal(before.count, after.count);
  for (size_t i = 0; i < before.count; i++) {
    const tarn__stored *a = &before.tensors[i], *b = &after.tensors[i];
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->dims, b->dims);
    assert_memory_equal(a->shape, b->shape, (size_t)a->dims * sizeof *a->shape);
    assert_int_equal(a->bytes, b->bytes);
    assert_memory_equal(a->data, b->data, a->bytes);
  }
  tarn__safetensors_close(&before);
  tarn__safetensors_close(&after);
  // A byte vocabulary has no such files.
  assert_false(tarn__file_exists("exported/vocab.json"));
  must(tarn_checkpoint_import_gpt2("untied_model", golden("untied", ""), "bytes"));
  must(tarn_checkpoint_export_gpt2("exported", "untied_model"));
  must(tarn_checkpoint_import_gpt2("again", "exported", "bytes"));
  check_language_model("again", golden("untied", "expected.safetensors"));
}

#define GPT2 "norm: pre, positions: learned, max_length: 20, embedding_scale: no, activation: gelu_tanh"

static void reservoirs_are_written_out(void **state) {
  (void)state;
  save_model("reservoirs", "model: { d_model: 16, " GPT2 " }\ndecoder: { layers: R1 L H R1 }\n" KINDS,
             GOLDEN "gpt2_toy");
  must(tarn_checkpoint_export_gpt2("dense", "reservoirs"));
  assert_true(tarn__file_exists("dense/merges.txt"));
  must(tarn_checkpoint_import_gpt2("dense_model", "dense", NULL));
  assert_true(fabs(score_text("reservoirs", EOS) - score_text("dense_model", EOS)) < 1e-4);
  // The vocabulary comes back to the byte.
  check_same_vocab(GOLDEN "gpt2_toy", "dense");
}

static void other_models_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *text, *words;
  } cases[] = {
      {"model: { d_model: 16, norm: pre }\ndecoder: { layers: L }\n" KINDS, "model.positions is not learned"},
      {"model: { d_model: 16, norm: pre, positions: learned }\ndecoder: { layers: L }\n" KINDS,
       "embedding_scale is yes"},
      {"model: { d_model: 16, " GPT2 ", output_bias: yes }\ndecoder: { layers: L }\n" KINDS, "output_bias is yes"},
      {"model: { d_model: 16, " GPT2 ", embedding_norm: yes }\ndecoder: { layers: L }\n" KINDS,
       "embedding_norm is yes"},
      {"model: { d_model: 16, " GPT2 " }\ndecoder: { layers: L, final_norm: no }\n" KINDS, "final_norm is no"},
      {"model: { d_model: 16, " GPT2 ", embeddings: none, output_rank: 4 }\ndecoder: { layers: L }\n" KINDS,
       "output_rank is 4"},
      {"model: { d_model: 16, " GPT2 " }\ndecoder: { layers: L N }\n" KINDS, "layer 2 (kind N) is none of attention"},
      {"model: { d_model: 16, " GPT2 " }\ndecoder: { layers: L G }\n" KINDS
       "  G: { heads: 2, ffn: { type: swiglu, width: 32 } }\n",
       "layer 2 (kind G) has swiglu as its FFN, and GPT-2's have ffn"},
      {"model: { d_model: 16, " GPT2 " }\ndecoder: { layers: L G }\n" KINDS "  G: { heads: 2, ffn: 0 }\n",
       "layer 2 (kind G) has nothing as its FFN, and GPT-2's have ffn"},
      {"model: { d_model: 16, " GPT2 " }\ndecoder: { layers: L W }\n" KINDS,
       "kinds L and W have different heads or ffn"},
      // The norm behind the last layer is that of a layer that is left out.
      {"model: { d_model: 16, " GPT2 " }\ndecoder: { layers: L E, layers_to_keep: [1] }\n" KINDS
       "  E: { mixer: attention, heads: 2, ffn: 24, norm_type: { epsilon: 0.001 } }\n",
       "the norm behind the last layer and those of kind L have different epsilons"},
      {"model: { d_model: 16, " GPT2 " }\ndecoder: { layers: L E, layers_to_keep: [1] }\n" KINDS
       "  E: { mixer: attention, heads: 2, ffn: 24, norm_type: rms }\n",
       "the norm behind the last layer is of type rms, and GPT-2's is layer"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    save_model("other", cases[i].text, "bytes");
    assert_int_equal(tarn_checkpoint_export_gpt2("refused", "other"), TARN_STATUS_USAGE);
    must_say(cases[i].words);
    assert_false(tarn__file_exists("refused"));
  }
}

static void refused(const char *words) {
  assert_int_equal(tarn_checkpoint_import_gpt2("never", "bad", "bytes"), TARN_STATUS_DATA);
  must_say(words);
  assert_false(tarn__file_exists("never"));
}

// One tensor is left out, added, or changed.
static void wrong_tensors(void **state) {
  (void)state;
  static const char victim[] = "transformer.h.1.mlp.c_fc.weight";
  tarn__safetensors file = {0};
  mkdir("bad", 0700);
  copy_file(golden("tied", "config.json"), "bad/config.json");
  must(tarn__safetensors_open(&file, golden("tied", "model.safetensors")));
  tarn__stored tensors[64];
  size_t at = (size_t)(tarn__safetensors_find(&file, victim) - file.tensors);
  for (int change = 0; change < 5; change++) {
    static const char *const words[] = {"tensor \"h.1.mlp.c_fc.weight\" is missing",
                                        "tensor \"transformer.h.2.ln_1.bias\" is none of a GPT-2 model of 2 layers",
                                        "c_fc.weight\" has the shape [64, 16] where [16, 64] was expected",
                                        "c_fc.weight\" has type I32", "tie_word_embeddings"};
    size_t count = file.count;
    for (size_t i = 0; i < count; i++) tensors[i] = file.tensors[i];
    if (change == 0) tensors[at] = tensors[--count];
    if (change == 1 || change == 4) {
      const char *like = change == 1 ? "transformer.h.1.ln_1.bias" : "transformer.wpe.weight";
      tensors[count] = *tarn__safetensors_find(&file, like);
      tensors[count++].name = change == 1 ? "transformer.h.2.ln_1.bias" : "lm_head.weight";
    }
    if (change == 2) tensors[at].shape[0] = 64, tensors[at].shape[1] = 16;
    if (change == 3) tensors[at].dtype = "I32";
    must(tarn__safetensors_write("bad/model.safetensors", tensors, count, NULL, 0));
    refused(words[change]);
  }
  tarn__safetensors_close(&file);
}

// Masks of the model's own layers are passed over, whatever else ends like them is not; weights are numbers.
static void masks_and_numbers(void **state) {
  (void)state;
  static const struct {
    const char *name, *words;
  } masks[] = {
      {"transformer.h.0.attn.bias", NULL},
      {"h.1.attn.masked_bias", NULL},
      {"transformer.h.2.attn.bias", "tensor \"transformer.h.2.attn.bias\" is none of a GPT-2 model of 2 layers"},
      {"adapter.attn.bias", "tensor \"adapter.attn.bias\" is none of a GPT-2 model"},
      {"transformer.h.01.attn.bias", "is none of a GPT-2 model"},
  };
  tarn__safetensors file = {0};
  mkdir("bad", 0700);
  copy_file(golden("tied", "config.json"), "bad/config.json");
  must(tarn__safetensors_open(&file, golden("tied", "model.safetensors")));
  tarn__stored tensors[64];
  for (size_t i = 0; i < file.count; i++) tensors[i] = file.tensors[i];
  for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
    tensors[file.count] = *tarn__safetensors_find(&file, "transformer.wpe.weight");
    tensors[file.count].name = masks[i].name;
    must(tarn__safetensors_write("bad/model.safetensors", tensors, file.count + 1, NULL, 0));
    if (masks[i].words)
      refused(masks[i].words);
    else
      must(tarn_checkpoint_import_gpt2("masked", "bad", "bytes"));
  }
  tarn__stored *victim = &tensors[tarn__safetensors_find(&file, "transformer.h.1.mlp.c_fc.weight") - file.tensors];
  const void *good = victim->data;
  static float values[16 * 64];
  assert_int_equal(victim->bytes, sizeof values);
  for (int i = 0; i < 2; i++) {
    memcpy(values, good, sizeof values);
    values[100] = i ? -INFINITY : NAN;
    victim->data = values;
    must(tarn__safetensors_write("bad/model.safetensors", tensors, file.count, NULL, 0));
    refused("model.safetensors: tensor \"transformer.h.1.mlp.c_fc.weight\" holds numbers that are not finite");
  }
  tarn__safetensors_close(&file);
}

// A text in config.json is replaced by another one.
static void wrong_configs(void **state) {
  (void)state;
  static const struct {
    const char *from, *to, *words;
  } cases[] = {
      {"\"n_embd\": 16,", "", "it has no \"n_embd\""},
      {"\"n_embd\"", "\"n_embed\"", "bad/config.json: it has no \"n_embd\", but \"n_embed\""},
      {"\"n_head\": 2", "\"n_head\": 3", "bad/config.json: \"n_head\" is 3, which does not divide \"n_embd\" (16)"},
      {"\"resid_pdrop\": 0.1", "\"resid_pdrop\": 1.5", "bad/config.json: \"resid_pdrop\": 1.5 is out of range"},
      {"\"attn_pdrop\": 0.1", "\"attn_pdrop\": -0.5", "bad/config.json: \"attn_pdrop\": -0.5 is out of range"},
      {"\"n_positions\": ", "\"n_positions\": 99999", "bad/config.json: \"n_positions\": "},
      {"\"n_layer\": 2", "\"n_layer\": 2.5", "\"n_layer\" is not a whole number"},
      {"\"n_layer\": 2", "\"n_layer\": 3", "tensor \"h.2.ln_1.weight\" is missing"},
      {"\"gelu_new\"", "\"mish\"", "\"activation_function\" is \"mish\"; tarn has gelu_new"},
      {"\"vocab_size\": 259", "\"vocab_size\": 260", "has 259 tokens, but bad/config.json says 260"},
      {"\"n_layer\": 2", "\"n_layer\": 3e0", "tensor \"h.2.ln_1.weight\" is missing"},
      {"\"n_layer\": 2", "\"n_layer\": 1e4", "bad/config.json: \"n_layer\" is 10000, but a stack has at most"},
      {"\"eos_token_id\": 2", "\"eos_token_id\": 2.5", "\"eos_token_id\" is not a whole number"},
      {"\"eos_token_id\": 2", "\"eos_token_id\": 1", "the end of sentence is token 2"},
      {"1e-05", "0.0", "bad/config.json: \"layer_norm_epsilon\": 0 is out of range"},
      {"\"model_type\": \"gpt2\"", "\"model_type\": \"llama\"", "\"model_type\" is llama, not gpt2"},
      {"\"scale_attn_weights\": true", "\"scale_attn_weights\": false", "\"scale_attn_weights\" is false"},
      {"{", "[", "bad/config.json:"},
  };
  mkdir("bad", 0700);
  copy_file(golden("tied", "model.safetensors"), "bad/model.safetensors");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    write_changed("bad/config.json", golden("tied", "config.json"), cases[i].from, cases[i].to);
    refused(cases[i].words);
  }
  copy_file(golden("tied", "config.json"), "bad/config.json");
  assert_int_equal(tarn_checkpoint_import_gpt2("never", "bad", NULL), TARN_STATUS_DATA);
  assert_non_null(strstr(tarn_error_message(), "it has no vocabulary"));
}

// Keys that are not known are told in one line, the nearest known one with each; those of Hugging Face's are known.
static void unknown_keys_are_told_once(void **state) {
  (void)state;
  char *text;
  size_t size;
  mkdir("told", 0700);
  copy_file(golden("tied", "model.safetensors"), "told/model.safetensors");
  must(tarn__file_read(golden("tied", "config.json"), &text, &size));
  for (int i = 0; i < 2; i++) {
    char changed[4096];
    int length =
        snprintf(changed, sizeof changed, "{%s%s", i ? "\"rotary\": 1, \"n_inners\": 2, " : "", strchr(text, '{') + 1);
    sandbox_write("told/config.json", changed, (size_t)length);
    warning_count = 0;
    tarn_log_set(keep_warning, NULL);
    tarn_status status = tarn_checkpoint_import_gpt2("never", "told", NULL);
    tarn_log_set(NULL, NULL);
    assert_int_equal(status, TARN_STATUS_DATA);  // it has no vocabulary
    assert_int_equal(warning_count, i);
  }
  tarn__free(text);
  assert_string_equal(warnings,
                      "told/config.json: keys that no GPT-2 model is known by are left alone: \"rotary\", \"n_inners\" "
                      "(did you mean \"n_inner\"?)");
}

static int open_all(void **state) { return open_with_bytes(state, false); }

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(as_transformers_computes),
      cmocka_unit_test(on_the_shadow),
      cmocka_unit_test(there_and_back),
      cmocka_unit_test(reservoirs_are_written_out),
      cmocka_unit_test(other_models_are_refused),
      cmocka_unit_test(wrong_tensors),
      cmocka_unit_test(masks_and_numbers),
      cmocka_unit_test(wrong_configs),
      cmocka_unit_test(unknown_keys_are_told_once),
  };
  return cmocka_run_group_tests(tests, open_all, sandbox_close);
}
