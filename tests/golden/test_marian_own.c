// Models in Marian's own files (make_marian_own.py): their logits and translations beside those of Marian's equations
// in double, and what is refused.
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

#include "base/yaml_json.h"
#include "foreign/marian_format.h"
#include "golden/import_check.h"
#include "golden/translation_check.h"
#include "tarn/checkpoint.h"
#include "tarn/lab/foreign.h"
#include "text/vocab_formats.h"

enum { PATH = 256 };

// A model, the model of transformers whose SentencePiece models it has (NULL: its own), and its files.
static const struct model {
  const char *name, *pieces;
  const char *files[5];
} MODELS[] = {{"all", "swish", {"all.model1.npz", "vocab.yml"}},
              {"separate", "separate", {"separate.model1.npz", "vocab.src.yml", "vocab.trg.yml"}},
              {"source", NULL, {"source.model1.npz", "both.spm"}}};
enum { MODEL_COUNT = sizeof MODELS / sizeof *MODELS };

static const char *golden(const struct model *model, const char *file) {
  static char path[PATH];
  snprintf(path, sizeof path, GOLDEN "marian_own/%s/%s", model->name, file);
  return path;
}

// Makes the folder "own", as such models come.
static void make_folder(const struct model *model) {
  static const char *const spms[] = {"source.spm", "target.spm"};
  char from[PATH], to[PATH];
  (void)system("rm -rf own");
  mkdir("own", 0700);
  copy_file(golden(model, "decoder.yml"), "own/decoder.yml");
  for (int i = 0; i < 5 && model->files[i]; i++) {
    snprintf(to, sizeof to, "own/%s", model->files[i]);
    copy_file(golden(model, model->files[i]), to);
  }
  for (int i = 0; i < 2 && model->pieces; i++) {
    snprintf(from, sizeof from, GOLDEN "marian_model/%s/%s", model->pieces, spms[i]);
    snprintf(to, sizeof to, "own/%s", spms[i]);
    copy_file(from, to);
  }
}

static bool built_without_minizip(void) {
  make_folder(&MODELS[0]);
  const tarn_status status = tarn_checkpoint_import("model", "own", NULL, NULL);
  if (status == TARN_STATUS_UNSUPPORTED) must_say("this build reads no archives of NumPy");
  return status == TARN_STATUS_UNSUPPORTED;
}

static void logits_and_translations(void **state) {
  (void)state;
  if (built_without_minizip()) skip();
  for (int i = 0; i < MODEL_COUNT; i++) {
    make_folder(&MODELS[i]);
    must(tarn_checkpoint_import("model", "own", NULL, NULL));
    check_logits("model", golden(&MODELS[i], "expected.safetensors"), 1e-5);
    json_t *object = read_cases(golden(&MODELS[i], "cases.json"));
    translate("model", json_object_get(object, "translations"), TARN_TRANSLATE_PRECISION_FP32);
    json_decref(object);
  }
}

// Without decoder.yml the files have usual names, and the search Marian's defaults; and a vocabulary may be given.
static void usual_names(void **state) {
  (void)state;
  if (built_without_minizip()) skip();
  tarn_checkpoint_info *info;
  make_folder(&MODELS[0]);
  remove("own/decoder.yml");
  assert_int_equal(rename("own/all.model1.npz", "own/model.npz"), 0);
  must(tarn_checkpoint_import_marian("model", "own", NULL, NULL));
  check_logits("model", golden(&MODELS[0], "expected.safetensors"), 1e-5);
  must(tarn_checkpoint_info_open(&info, "model"));
  static const char *const lines[] = {"beam: 12\n",     "length_penalty: 0\n", "max_len_a: 3\n",
                                      "max_len_b: 0\n", "min_length: 0\n",     "max_length: 1000\n",
                                      "epsilon: 1e-06", "embeddings: all",     "positions: sinusoidal\n"};
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
    if (!strstr(info->config, lines[i])) fail_msg("no %s in %s", lines[i], info->config);
  tarn_checkpoint_info_close(&info);
  must(tarn_vocab_import_marian("vocab", "own", false));
  remove("own/source.spm");
  must(tarn_checkpoint_import_marian("again", "own", "vocab", NULL));
  check_logits("again", golden(&MODELS[0], "expected.safetensors"), 1e-5);
  // One of as many tokens whose last one is a word is no such vocabulary.
  static const char other[] = "tarn-vocab whitespace 1\nlowercase 0\nsize 155\n<unk>\n<s>\n</s>\n";
  FILE *file = fopen("words", "w");
  assert_non_null(file);
  fputs(other, file);
  for (int i = 3; i < 155; i++) fprintf(file, "word%d\n", i);
  assert_int_equal(fclose(file), 0);
  assert_int_equal(tarn_checkpoint_import_marian("never", "own", "words", NULL), TARN_STATUS_DATA);
  must_say(
      "the last token of the vocabulary of the source is \"word154\", and not the one that the decoder reads first");
}

// Makes <unk> likelier than all words by far, and translates a sentence: whether it has <unk>.
static bool translates_with_unk(const char *checkpoint) {
  tarn__checkpoint *c;
  tarn_translator *translator;
  tarn_translator_options options;
  tarn_translate_result result;
  static const char line[] = "Ein alter Mann";
  const size_t length = sizeof line - 1;
  static float bias[256];
  tarn__param *param = NULL;
  must(tarn__checkpoint_open(&c, checkpoint, TARN__F32));
  for (size_t i = 0; i < c->model->param_count; i++)
    if (strcmp(c->model->params[i]->name, "output.bias") == 0) param = c->model->params[i];
  assert_non_null(param);
  assert_true(param->cols <= 256);
  const int32_t unk = tarn_vocab_unk(c->target);
  bias[unk] = 100.0f;
  must(tarn__param_set(param, bias));
  must(tarn__checkpoint_save("loud", c->model, &(tarn__checkpoint_extra){.source = c->source, .target = c->target}));
  tarn__checkpoint_close(&c);
  tarn_translator_default(&options);
  options.max_len_a = 0;
  options.max_len_b = 3;
  must(tarn_translator_open(&translator, "loud", &options));
  const char *const text = line;
  must(tarn_translator_lines(translator, &result, &text, &length, 1));
  const int32_t *ids;
  const float *values;
  bool found = false;
  const int64_t count = tarn_translator_tokens(translator, &ids, &values, 0, 0);
  assert_true(count > 0);
  for (int64_t i = 0; i < count; i++) found = found || ids[i] == unk;
  // What is not chosen keeps its probability.
  assert_true(found || result.hypotheses[0].log_probability < -50.0);
  tarn_translator_close(&translator);
  return found;
}

// Marian never chooses <unk>, unless it is asked to.
static void unknown_words(void **state) {
  (void)state;
  if (built_without_minizip()) skip();
  must(tarn_checkpoint_import("model", "own", NULL, NULL));
  assert_false(translates_with_unk("model"));
  write_changed("own/decoder.yml", golden(&MODELS[0], "decoder.yml"), "beam-size: 1", "beam-size: 2\nallow-unk: true");
  must(tarn_checkpoint_import("model", "own", NULL, NULL));
  assert_true(translates_with_unk("model"));
}

// A list in JSON, whose texts may have pairs of surrogates.
static void list_in_json(void **state) {
  (void)state;
  tarn_vocab *vocab;
  static const char list[] = "{\"</s>\": 0, \"<unk>\": 1, \"\\ud83d\\ude00\": 2}";
  static const char decoder[] = "vocabs: [a.vocab.json]\n", array[] = "[]";
  make_folder(&MODELS[0]);
  sandbox_write("own/decoder.yml", decoder, sizeof decoder - 1);
  sandbox_write("own/a.vocab.json", list, sizeof list - 1);
  must(tarn__vocab_open_marian(&vocab, "own", false));
  assert_string_equal(tarn_vocab_piece(vocab, 2), "\xf0\x9f\x98\x80");
  assert_string_equal(tarn_vocab_piece(vocab, 3), "<pad>");
  tarn_vocab_close(&vocab);
  sandbox_write("own/a.vocab.json", array, sizeof array - 1);
  assert_int_equal(tarn__vocab_open_marian(&vocab, "own", false), TARN_STATUS_DATA);
  must_say("own/a.vocab.json: not a JSON object from tokens to ids");
}

// A piece of a SentencePiece model that is no text.
static void pieces_in_bytes(void **state) {
  (void)state;
  char *data;
  size_t size, at = 0;
  tarn_vocab *vocab;
  make_folder(&MODELS[2]);
  must(tarn__file_read("own/both.spm", &data, &size));
  while (at + 4 < size && memcmp(data + at, "\n\002ge", 4) != 0) at++;
  assert_true(at + 4 < size);
  data[at + 3] = '\xff';
  sandbox_write("own/both.spm", data, size);
  tarn__free(data);
  assert_int_equal(tarn__vocab_open_marian(&vocab, "own", false), TARN_STATUS_DATA);
  must_say("own/both.spm: piece 9 is not valid UTF-8 after \"g\"");
}

static void refused(const char *words) {
  assert_int_equal(tarn_checkpoint_import("never", "own", NULL, NULL), TARN_STATUS_DATA);
  must_say(words);
  assert_false(tarn__file_exists("never"));
}

// A text in one of the files is replaced by another one.
static void wrong_files(void **state) {
  (void)state;
  static const struct {
    const char *file, *from, *to, *words;
  } cases[] = {
      {"decoder.yml", "[all.model1.npz]", "[all.model1.npz, b.npz]",
       "own/decoder.yml: \"models\" lists 2 files, not 1"},
      {"decoder.yml", "[all.model1.npz]", "all.model1.npz", "own/decoder.yml: \"models\" lists 0 files, not 1"},
      {"decoder.yml", "[all.model1.npz]", "[..]", "\"models\" does not name a file"},
      {"decoder.yml", "[all.model1.npz]", "[vocab.yml]", "own/vocab.yml: not an archive of NumPy"},
      {"decoder.yml", "[vocab.yml, vocab.yml]", "[a, b, c]", "\"vocabs\" lists 3 files, not 1 or 2"},
      {"decoder.yml", "[vocab.yml, vocab.yml]", "[vocab.txt]", "vocab.txt: its name ends neither in .yml"},
      {"decoder.yml", "[vocab.yml, vocab.yml]", "[target.spm]", "the vocabulary of the source has"},
      {"decoder.yml", "beam-size: 1", "beam-size: 5000", "\"beam-size\": 5000 is out of range"},
      {"decoder.yml", "beam-size: 1", "beam-size: many", "own/decoder.yml: \"beam-size\" is not a whole number"},
      {"decoder.yml", "beam-size: 1", "beam-size: [1", "own/decoder.yml:"},
      {"vocab.yml", "<unk>: 1", "<unk>: 3", "have the same id 3"},
      {"vocab.yml", "<unk>: 1", "<unk>: x", "vocab.yml: the id of \"<unk>\" is not a whole number"},
      {"vocab.yml", "<unk>: 1", "<unkn>: 1", "the vocabulary needs the tokens <unk> and </s>"},
      {"vocab.yml", "<unk>: 1\n", "", "are 0 to 153 without holes"},
      {"vocab.yml", "a: 34\n", "b: 34\n", "vocab.yml:46: key \"b\" is given twice"},
      {"vocab.yml", "a: 34\n", "*a : 34\n", "vocab.yml:35: anchors and aliases"},
  };
  if (built_without_minizip()) skip();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char path[PATH];
    make_folder(&MODELS[0]);
    snprintf(path, sizeof path, "own/%s", cases[i].file);
    write_changed(path, golden(&MODELS[0], cases[i].file), cases[i].from, cases[i].to);
    refused(cases[i].words);
  }
  make_folder(&MODELS[0]);
  sandbox_write("own/decoder.yml", "- 1\n", 4);
  refused("own/decoder.yml: not a YAML map");
  make_folder(&MODELS[0]);
  remove("own/target.spm");
  assert_int_equal(tarn_checkpoint_import("never", "own", NULL, NULL), TARN_STATUS_IO);
}

#define SIZES \
  "dim-emb: 8\nenc-depth: 1\ndec-depth: 2\ntransformer-heads: 2\ntransformer-dim-ffn: 12\ndim-vocabs: [9, 9]\n"

// The settings of a model of this text, where `more` adds to those that every model needs.
static tarn_status read_settings(tarn__marian_config *config, const char *more, const char *search) {
  char text[512];
  json_t *decoder;
  snprintf(text, sizeof text, "%s%s", SIZES, more);
  must(tarn__yaml_json(&decoder, "decoder.yml", search, strlen(search)));
  const tarn_status status = tarn__marian_own_config(config, "model", decoder, "own", text, strlen(text));
  json_decref(decoder);
  return status;
}

static void wrong_settings(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"type: amun", "model: \"type\" is \"amun\", and tarn imports Transformers"},
      {"transformer-decoder-autoreg: average-attention", "its decoder has average attention (AAN"},
      {"transformer-decoder-autoreg: rnn\ndec-cell: ssru", "its decoder has SSRU layers"},
      {"transformer-decoder-autoreg: rnn\ndec-cell: gru", "\"transformer-decoder-autoreg\" is \"rnn\""},
      {"transformer-train-position-embeddings: true", "\"transformer-train-position-embeddings\" is true"},
      {"transformer-no-projection: true", "\"transformer-no-projection\" is true, which tarn does not have"},
      {"transformer-no-projection: 3", "\"transformer-no-projection\" is neither true nor false"},
      {"right-left: true", "\"right-left\" is true"},
      {"transformer-ffn-depth: 3", "\"transformer-ffn-depth\" is 3, and tarn has 2 only"},
      {"transformer-decoder-ffn-depth: 1", "\"transformer-decoder-ffn-depth\" is 1"},
      {"lemma-dim-emb: 4", "\"lemma-dim-emb\" is 4"},
      {"transformer-tied-layers: [1, 1]", "\"transformer-tied-layers\" is not empty"},
      {"transformer-preprocess: n", "are \"n\", \"dan\" and \"\"; tarn imports"},
      {"transformer-postprocess: danh", "are \"\", \"danh\" and \"\""},
      {"transformer-postprocess-emb: dn", "\"transformer-postprocess-emb\" is \"dn\""},
      {"transformer-ffn-activation: mish", "\"transformer-ffn-activation\" is \"mish\""},
      {"transformer-attention-mask: alibi", "\"transformer-attention-mask\" is \"alibi\""},
      {"transformer-decoder-dim-ffn: -2", "\"transformer-decoder-dim-ffn\" is not a whole number"},
      {"- 1", "not valid YAML"},
  };
  tarn__marian_config config;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(read_settings(&config, cases[i][0], ""), TARN_STATUS_DATA);
    must_say(cases[i][1]);
  }
  json_t *none = json_object();
  static const char *const texts[][2] = {
      {"[1]", "model: not a YAML map"},
      {"dim-emb: 8", "it has no \"enc-depth\""},
      {"{dim-emb: 8, enc-depth: 1, dec-depth: 1, transformer-heads: 3, transformer-dim-ffn: 2}", "does not divide"},
      {"{dim-emb: 8, enc-depth: 1, dec-depth: 1, transformer-heads: 2, transformer-dim-ffn: 2, dim-vocabs: [3]}",
       "\"dim-vocabs\" does not give the sizes of two vocabularies"},
      {"{dim-emb: 8, enc-depth: 1, dec-depth: 1, transformer-heads: 2, transformer-dim-ffn: 2, dim-vocabs: [3, 4], "
       "tied-embeddings-all: true}",
       "the sides share embeddings, but"},
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    assert_int_equal(tarn__marian_own_config(&config, "model", none, "own", texts[i][0], strlen(texts[i][0])),
                     TARN_STATUS_DATA);
    must_say(texts[i][1]);
  }
  json_decref(none);
}

static void good_settings(void **state) {
  (void)state;
  tarn__marian_config config;
  must(read_settings(&config, "tied-embeddings: true\ntransformer-decoder-dim-ffn: 0",
                     "normalize: true\nmax-length: 200\nmax-length-factor: 2.5"));
  assert_string_equal(config.embeddings, "decoder");
  assert_int_equal(config.decoder.ffn, 12);
  assert_int_equal(config.positions, 200);
  assert_false(config.allow_unk);
  assert_true(config.length_penalty == 1.0 && config.longest_share == 2.5 && config.beam == 12 && !config.pre);
  warning_count = 0;
  tarn_log_set(keep_warning, NULL);
  must(read_settings(&config, "transformer-preprocess: n\ntransformer-postprocess: da\ntransformer-postprocess-top: n",
                     "normalize: 0.6\nword-penalty: 1"));
  tarn_log_set(NULL, NULL);
  assert_true(config.pre && config.length_penalty == 0.6);
  assert_int_equal(warning_count, 1);
  assert_non_null(strstr(warnings, "\"word-penalty\" is left out"));
}

// Whatever allocation fails, nothing is left behind, and no file.
static void failing_memory(void **state) {
  (void)state;
  if (built_without_minizip()) skip();
  for (uint64_t n = 1;; n += n < 60 ? 1 : 17) {
    tarn__memory_fail_after(n);
    const tarn_status status = tarn_checkpoint_import("lost", "own", NULL, NULL);
    tarn__memory_fail_after(0);
    if (status == TARN_STATUS_OK) break;
    assert_int_equal(status, TARN_STATUS_MEMORY);
    assert_false(tarn__file_exists("lost"));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(logits_and_translations, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(usual_names, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(unknown_words, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(list_in_json, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(pieces_in_bytes, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(wrong_files, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(wrong_settings, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(good_settings, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(failing_memory, sandbox_open, sandbox_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
