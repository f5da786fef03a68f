// Marian models of the package transformers (make_marian.py): their logits, tokens and translations, the way
// back, and what is refused.
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
#include "shadow_device.h"
#include "tarn/checkpoint.h"
#include "tarn/lab/foreign.h"
#include "tarn/translate.h"
#include "text/vocab_formats.h"

enum { PATH = 256 };

static const char *const MODELS[] = {"swish", "relu", "separate", "untied"};
enum { MODEL_COUNT = sizeof MODELS / sizeof *MODELS };

static const char *golden(const char *model, const char *file) {
  static char path[PATH];
  snprintf(path, sizeof path, GOLDEN "marian_model/%s%s%s", model, *file ? "/" : "", file);
  return path;
}

// The import of a copy whose settings of generation say nothing of renormalising, which changes the logit of padding.
static void import_plain(const char *model) {
  static const char *const files[] = {"config.json", "model.safetensors", "vocab.json",           "target_vocab.json",
                                      "source.spm",  "target.spm",        "tokenizer_config.json"};
  mkdir("plain", 0700);
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    char to[PATH];
    snprintf(to, sizeof to, "plain/%s", files[i]);
    if (tarn__file_exists(golden(model, files[i])))
      copy_file(golden(model, files[i]), to);
    else
      remove(to);
  }
  must(tarn_checkpoint_import_marian("model", "plain", NULL, NULL));
}

static void logits(void **state) {
  (void)state;
  for (int i = 0; i < MODEL_COUNT; i++) {
    import_plain(MODELS[i]);
    check_logits("model", golden(MODELS[i], "expected.safetensors"), 1e-4);
  }
}

// The same on a device with memory of its own.
static void on_the_shadow(void **state) {
  tarn__device_use(&shadow_device);
  logits(state);
  tarn__device_use(NULL);
  assert_true(shadow.most > 0);
  assert_int_equal(shadow.now, 0);
}

static void check_ids(const tarn_vocab *vocab, const char *text, const json_t *wanted) {
  tarn_vocab_ids ids = {0};
  must(tarn_vocab_encode(vocab, &ids, text, strlen(text)));
  if (ids.count != json_array_size(wanted)) fail_msg("\"%s\": %zu tokens", text, ids.count);
  for (size_t i = 0; i < ids.count; i++)
    if (ids.data[i] != json_integer_value(json_array_get(wanted, i)))
      fail_msg("\"%s\": token %zu is %d", text, i, ids.data[i]);
  tarn_vocab_ids_close(&ids);
}

static void check_text(const tarn_vocab *vocab, const json_t *ids, const char *wanted) {
  tarn_vocab_text text = {0};
  int32_t list[1024];
  const size_t count = json_array_size(ids);
  assert_true(count < 1024);
  for (size_t i = 0; i < count; i++) list[i] = (int32_t)json_integer_value(json_array_get(ids, i));
  list[count] = tarn_vocab_eos(vocab);
  must(tarn_vocab_decode(vocab, &text, list, count + 1));
  assert_string_equal(text.data, wanted);
  tarn_vocab_text_close(&text);
}

static void tokens(void **state) {
  (void)state;
  for (int i = 0; i < MODEL_COUNT; i++) {
    json_t *object = read_cases(golden(MODELS[i], "cases.json")), *texts = json_object_get(object, "texts"), *c;
    tarn_vocab *source, *target;
    size_t number;
    must(tarn__vocab_open_marian(&source, golden(MODELS[i], ""), false));
    must(tarn_vocab_import_marian("target", golden(MODELS[i], ""), true));
    must(tarn_vocab_open(&target, "target"));
    assert_true(tarn__vocab_is_marian(target));
    assert_true(json_array_size(texts) > 40);
    json_array_foreach(texts, number, c) {
      const char *text = json_string_value(json_object_get(c, "text"));
      check_ids(source, text, json_object_get(c, "source"));
      check_ids(target, text, json_object_get(c, "target"));
      check_text(target, json_object_get(c, "target"), json_string_value(json_object_get(c, "decoded")));
    }
    tarn_vocab_close(&source);
    tarn_vocab_close(&target);
    json_decref(object);
  }
}

static void translations(void **state) {
  (void)state;
  for (int i = 0; i < MODEL_COUNT; i++) {
    json_t *object = read_cases(golden(MODELS[i], "cases.json"));
    must(tarn_checkpoint_import_marian("model", golden(MODELS[i], ""), NULL, NULL));
    translate("model", json_object_get(object, "translations"), TARN_TRANSLATE_PRECISION_FP32);
    translate("model", json_object_get(object, "translations"), TARN_TRANSLATE_PRECISION_INT8);
    json_decref(object);
  }
}

static void refused(const char *words) {
  assert_int_equal(tarn_checkpoint_import_marian("never", "bad", NULL, NULL), TARN_STATUS_DATA);
  must_say(words);
  assert_false(tarn__file_exists("never"));
}

static void copy_to_bad(const char *model, const char *file) {
  char to[PATH];
  snprintf(to, sizeof to, "bad/%s", file);
  copy_file(golden(model, file), to);
}

// A text in one of the files is replaced by another one.
static void wrong_files(void **state) {
  (void)state;
  static const struct {
    const char *file, *from, *to, *words;
  } cases[] = {
      {"config.json", "\"d_model\"", "\"d_modell\"", "it has no \"d_model\", but \"d_modell\""},
      {"config.json", "\"d_model\": 16", "\"d_model\": 20", "has the shape [155, 16] where [155, 20] was expected"},
      {"config.json", "\"model_type\": \"marian\"", "\"model_type\": \"bart\"", "\"model_type\" is bart, not marian"},
      {"config.json", "\"is_decoder\": false", "\"normalize_before\": true", "\"normalize_before\" is true"},
      {"config.json", "\"is_decoder\": false", "\"static_position_embeddings\": false",
       "\"static_position_embeddings\" is false"},
      {"config.json", "\"swish\"", "\"mish\"", "\"activation_function\" is \"mish\""},
      {"config.json", "\"encoder_layers\": 2", "\"encoder_layers\": 1", "is none of a Marian model of 1 and 1 layers"},
      {"config.json", "\"encoder_attention_heads\": 2", "\"encoder_attention_heads\": 3",
       "\"encoder_attention_heads\" is 3, which does not divide \"d_model\" (16)"},
      {"config.json", "\"vocab_size\": 155", "\"vocab_size\": 154", "but \"decoder_vocab_size\" is not \"vocab_size\""},
      {"config.json", "\"decoder_start_token_id\": 154", "\"decoder_start_token_id\": 155",
       "\"decoder_start_token_id\" is 155, which is no token"},
      {"config.json", "\"eos_token_id\": 0", "\"eos_token_id\": 2", "\"forced_eos_token_id\" is 0"},
      {"vocab.json", "\"</s>\":0,\"<unk>\":1", "\"</s>\":1,\"<unk>\":0",
       "has the end of sentence 1, but bad/config.json"},
      {"config.json", "\"dropout\": 0.1", "\"dropout\": 1.5", "bad/config.json: \"dropout\": 1.5 is out of range"},
      {"generation_config.json", "154\n    ]", "153\n    ]", "\"bad_words_ids\" names other tokens than the padding"},
      {"generation_config.json", "\"num_beams\": 4", "\"num_beams\": 5000", "\"num_beams\": 5000 is out of range"},
      {"generation_config.json", "\"use_cache\": true", "\"early_stopping\": \"never\"",
       "\"early_stopping\" is a word"},
      {"generation_config.json", "\"use_cache\": true", "\"do_sample\": true", "\"do_sample\" is true"},
      {"generation_config.json", "\"decoder_start_token_id\": 154", "\"decoder_start_token_id\": 3",
       "generation_config.json: \"decoder_start_token_id\" is 3, but config.json reads its model with 154"},
      {"generation_config.json", "\"eos_token_id\": 0", "\"eos_token_id\": [0, 5]",
       "generation_config.json: \"eos_token_id\" is a list, and not of one token"},
      {"generation_config.json", "\"eos_token_id\": 0", "\"eos_token_id\": [5]",
       "generation_config.json: \"eos_token_id\" is 5, but config.json reads its model with 0"},
      {"config.json", "\"eos_token_id\": 0", "\"eos_token_id\": []", "config.json: \"eos_token_id\" is a list"},
      {"generation_config.json", "\"forced_eos_token_id\": 0", "\"forced_eos_token_id\": 5",
       "\"forced_eos_token_id\" is 5"},
      {"vocab.json", "\"<unk>\":1", "\"<unk>\":3", "have the same id 3"},
      {"vocab.json", "\"<unk>\":1", "\"<unkn>\":1", "the vocabulary needs the tokens <unk> and </s>"},
      {"vocab.json", "\"<unk>\":1,", "", "but the ids of 154 tokens are 0 to 153 without holes"},
  };
  static const char *const files[] = {
      "config.json", "generation_config.json", "model.safetensors", "vocab.json", "source.spm", "target.spm"};
  mkdir("bad", 0700);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char path[PATH];
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) copy_to_bad("swish", files[k]);
    snprintf(path, sizeof path, "bad/%s", cases[i].file);
    write_changed(path, golden("swish", cases[i].file), cases[i].from, cases[i].to);
    refused(cases[i].words);
  }
  for (size_t k = 0; k < sizeof files / sizeof *files; k++) copy_to_bad("swish", files[k]);
  sandbox_write("bad/target.spm", "nonsense", 8);
  refused("vocabulary of target.spm");
  copy_to_bad("swish", "target.spm");
  sandbox_write("bad/tokenizer_config.json", "{\"unk_token\":{\"content\":\"UNK\"}}", 31);
  refused("\"unk_token\" is not \"<unk>\"");
  sandbox_write("bad/tokenizer_config.json", "{\"sp_model_kwargs\":{\"alpha\":1}}", 31);
  refused("\"sp_model_kwargs\" changes how SentencePiece works");
  remove("bad/tokenizer_config.json");
  remove("bad/vocab.json");
  assert_int_equal(tarn_checkpoint_import_marian("never", "bad", NULL, NULL), TARN_STATUS_IO);
}

// Positions that are no sinusoids, and a copy of a tied matrix that differs.
static void wrong_tensors(void **state) {
  (void)state;
  static const char *const names[] = {"model.encoder.embed_positions.weight", "lm_head.weight"};
  static const char *const words[] = {"does not hold the sinusoids of Marian's models", "differ, though"};
  tarn__safetensors file = {0};
  tarn__stored tensors[128];
  mkdir("bad", 0700);
  static const char *const files[] = {"config.json", "vocab.json", "source.spm", "target.spm"};
  for (size_t k = 0; k < sizeof files / sizeof *files; k++) copy_to_bad("relu", files[k]);
  must(tarn__safetensors_open(&file, golden("relu", "model.safetensors")));
  assert_true(file.count <= 128);
  for (int change = 0; change < 2; change++) {
    memcpy(tensors, file.tensors, file.count * sizeof *tensors);
    const size_t at = (size_t)(tarn__safetensors_find(&file, names[change]) - file.tensors);
    float *values = malloc(tensors[at].bytes);
    assert_non_null(values);
    memcpy(values, tensors[at].data, tensors[at].bytes);
    values[5] += 0.5f;
    tensors[at].data = values;
    must(tarn__safetensors_write("bad/model.safetensors", tensors, file.count, NULL, 0));
    refused(words[change]);
    free(values);
  }
  tarn__safetensors_close(&file);
}

// Tensors come back as they were, under the names that transformers writes, and vocabularies to the byte.
static void there_and_back(void **state) {
  (void)state;
  static const char *const files[] = {"source.spm", "target.spm"};
  for (int i = 0; i < MODEL_COUNT; i++) {
    tarn__safetensors before = {0}, after = {0};
    import_plain(MODELS[i]);
    must(tarn_checkpoint_export_marian("exported", "model"));
    must(tarn_checkpoint_import_marian("again", "exported", NULL, NULL));
    check_logits("again", golden(MODELS[i], "expected.safetensors"), 1e-4);
    must(tarn__safetensors_open(&before, golden(MODELS[i], "model.safetensors")));
    must(tarn__safetensors_open(&after, "exported/model.safetensors"));
    if (i != 1) assert_int_equal(before.count, after.count);
    for (size_t k = 0; k < after.count; k++) {
      const tarn__stored *b = &after.tensors[k], *a = tarn__safetensors_find(&before, b->name);
      if (!a) fail_msg("%s is new", b->name);
      assert_int_equal(a->dims, b->dims);
      assert_memory_equal(a->shape, b->shape, (size_t)a->dims * sizeof *a->shape);
      assert_int_equal(a->bytes, b->bytes);
      assert_memory_equal(a->data, b->data, a->bytes);
    }
    tarn__safetensors_close(&before);
    tarn__safetensors_close(&after);
    for (int target = 0; target < 2; target++) {
      char path[PATH], *a, *b;
      size_t size, other;
      snprintf(path, sizeof path, "exported/%s", files[target]);
      must(tarn__file_read(path, &b, &other));
      must(tarn__file_read(golden(MODELS[i], files[target]), &a, &size));
      assert_int_equal(size, other);
      assert_memory_equal(a, b, size);
      tarn__free(a);
      tarn__free(b);
    }
  }
}

// What generation needs comes back too: translations stay the same, also those without padding.
static void translations_come_back(void **state) {
  (void)state;
  json_t *object = read_cases(golden("swish", "cases.json"));
  must(tarn_checkpoint_import_marian("model", golden("swish", ""), NULL, NULL));
  must(tarn_checkpoint_export_marian("exported", "model"));
  must(tarn_checkpoint_import_marian("again", "exported", NULL, NULL));
  translate("again", json_object_get(object, "translations"), TARN_TRANSLATE_PRECISION_FP32);
  json_decref(object);
}

// <unk> may be forbidden, which comes back as well; no other word may.
static void forbidden_words(void **state) {
  (void)state;
  static const char *const files[] = {"config.json", "model.safetensors", "vocab.json", "source.spm", "target.spm"};
  static const char unk[] = "154\n    ],\n    [\n      1\n    ]";
  mkdir("bad", 0700);
  for (size_t k = 0; k < sizeof files / sizeof *files; k++) copy_to_bad("swish", files[k]);
  write_changed("bad/generation_config.json", golden("swish", "generation_config.json"), "154\n    ]", unk);
  must(tarn_checkpoint_import_marian("model", "bad", NULL, NULL));
  must(tarn_checkpoint_export_marian("exported", "model"));
  must(tarn_checkpoint_import_marian("again", "exported", NULL, NULL));
  static const char *const made[] = {"model", "again"};
  for (int i = 0; i < 2; i++) {
    tarn_checkpoint_info *info;
    must(tarn_checkpoint_info_open(&info, made[i]));
    if (!strstr(info->config, "allow_unk: no\n")) fail_msg("%s may choose <unk>: %s", made[i], info->config);
    tarn_checkpoint_info_close(&info);
  }
  write_changed("bad/generation_config.json", golden("swish", "generation_config.json"), "154\n    ]",
                "154,\n      1\n    ]");
  refused("\"bad_words_ids\" names other tokens than the padding and <unk>");
}

#define MARIAN "d_model: 16, positions: sinusoidal_paper, max_length: 20"
#define STACKS "\nencoder: { layers: R1 L R1 }\ndecoder: { layers: L R1 H }\n"

// Frozen, shared and structured layers are written out, and sets that both stacks share.
static void own_models(void **state) {
  (void)state;
  static const char *const shares[] = {"all", "decoder", "none", "encoder_decoder"};
  tarn_vocab_options options;
  tarn_vocab_default(&options);
  options.type = TARN_VOCAB_TYPE_BYTE;
  must(tarn_vocab_train("bytes", NULL, 0, &options));
  for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
    char text[1024];
    tarn_translate_result results[2];
    char kept[256];
    tarn_translator_options use;
    snprintf(text, sizeof text,
             "model: { " MARIAN ", embeddings: %s, activation: gelu_tanh, share_stacks: %s }" STACKS KINDS, shares[i],
             i % 2 ? "yes" : "no");
    save_model("own", text, "bytes");
    must(tarn_checkpoint_export_marian("folder", "own"));
    assert_false(tarn__file_exists("folder/vocab.json"));
    must(tarn_checkpoint_import_marian("back", "folder", "bytes", NULL));
    tarn_translator_default(&use);
    use.max_len_a = 0.0;
    use.max_len_b = 8;
    for (int k = 0; k < 2; k++) {
      tarn_translator *translator;
      const char *line = "ab";
      const size_t length = 2;
      must(tarn_translator_open(&translator, k ? "back" : "own", &use));
      must(tarn_translator_lines(translator, &results[k], &line, &length, 1));
      if (k == 0)
        snprintf(kept, sizeof kept, "%s %.3f", results[k].hypotheses[0].text, results[k].hypotheses[0].score);
      else {
        char other[256];
        snprintf(other, sizeof other, "%s %.3f", results[k].hypotheses[0].text, results[k].hypotheses[0].score);
        assert_string_equal(kept, other);
      }
      tarn_translator_close(&translator);
    }
  }
}

static void other_models_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *text, *words;
  } cases[] = {
      {"model: { d_model: 16 }" STACKS KINDS, "model.positions is not sinusoidal_paper"},
      {"model: { " MARIAN ", norm: pre }" STACKS KINDS, "layer 1 of the encoder (kind R) is not post-norm"},
      {"model: { " MARIAN ", norm_type: rms }" STACKS KINDS, "norms of kind R are not of type layer"},
      {"model: { " MARIAN ", norm_type: { epsilon: 0.001 } }" STACKS KINDS, "with epsilon 1e-05"},
      {"model: { " MARIAN ", embeddings: encoder_output }" STACKS KINDS, "model.embeddings is encoder_output"},
      {"model: { " MARIAN ", embeddings: none, output_rank: 4 }" STACKS KINDS, "model.output_rank is 4"},
      {"model: { " MARIAN " }\nencoder: { layers: L N }\ndecoder: { layers: L }\n" KINDS,
       "layer 2 of the encoder (kind N) is none of attention"},
      {"model: { " MARIAN " }\nencoder: { layers: L }\ndecoder: { layers: L W }\n" KINDS,
       "kinds L and W have different ffn.width"},
      {"model: { " MARIAN " }\nencoder: { layers: L G }\ndecoder: { layers: L }\n" KINDS
       "  G: { heads: 2, ffn: { type: geglu, width: 32 } }\n",
       "layer 2 of the encoder (kind G) has geglu as its FFN, and Marian's have ffn"},
      {"model: { " MARIAN ", activation: elu }" STACKS KINDS, "the activation of kind R is elu"},
      {"model: { d_model: 16 }\ndecoder: { layers: L }\n" KINDS, "a language model; Marian translates"},
  };
  tarn_vocab_options options;
  tarn_vocab_default(&options);
  options.type = TARN_VOCAB_TYPE_BYTE;
  must(tarn_vocab_train("bytes", NULL, 0, &options));
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    save_model("other", cases[i].text, "bytes");
    assert_int_equal(tarn_checkpoint_export_marian("refused", "other"), TARN_STATUS_USAGE);
    must_say(cases[i].words);
    assert_false(tarn__file_exists("refused"));
  }
}

// Whatever allocation fails, nothing is left behind, and no file.
static void failing_memory(void **state) {
  (void)state;
  for (uint64_t n = 1;; n += n < 60 ? 1 : 13) {
    tarn__memory_fail_after(n);
    tarn_status status = tarn_checkpoint_import_marian("lost", golden("swish", ""), NULL, NULL);
    tarn__memory_fail_after(0);
    if (status == TARN_STATUS_OK) break;
    assert_int_equal(status, TARN_STATUS_MEMORY);
    assert_false(tarn__file_exists("lost"));
  }
  for (int format = 0; format < 2; format++)
    for (uint64_t n = 1;; n += n < 60 ? 1 : 13) {
      tarn__memory_fail_after(n);
      tarn_status status = format ? tarn_checkpoint_export_ctranslate2("lost_folder", "lost")
                                  : tarn_checkpoint_export_marian("lost_folder", "lost");
      tarn__memory_fail_after(0);
      if (status == TARN_STATUS_OK) break;
      assert_int_equal(status, TARN_STATUS_MEMORY);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(logits, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(on_the_shadow, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(tokens, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(translations, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(there_and_back, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(translations_come_back, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(forbidden_words, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(own_models, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(other_models_are_refused, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(wrong_files, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(wrong_tensors, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(failing_memory, sandbox_open, sandbox_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
