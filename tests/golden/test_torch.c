// Models of PyTorch's nn.Transformer (make_torch.py): their logits, translations and probabilities beside those that
// PyTorch computes in double, and what is refused.
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

enum { PATH = 256 };

static const char *const MODELS[] = {"tutorial", "stacks"};
enum { MODEL_COUNT = sizeof MODELS / sizeof *MODELS };

static const char *golden(const char *model, const char *file) {
  static char path[PATH];
  snprintf(path, sizeof path, GOLDEN "torch/%s/%s", model, file);
  return path;
}

// Makes the folder "in".
static void make_folder(const char *model) {
  static const char *const files[] = {"model.safetensors", "config.json", "tokens.source.txt",
                                      "tokens.target.txt", "source.spm",  "target.spm"};
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
    check_search("model", json_object_get(object, "translations"), 0, 0, "greedy");  // the file's beam and lengths
    check_search("model", json_object_get(object, "translations"), 5, 0, "translation");
    json_decref(object);
  }
}

static void has(const char *line) {
  tarn_checkpoint_info *info;
  must(tarn_checkpoint_info_open(&info, "model"));
  if (!strstr(info->config, line)) fail_msg("no %s in %s", line, info->config);
  tarn_checkpoint_info_close(&info);
}

static void has_lines(const char *model, const char *const *lines) {
  make_folder(model);
  must(tarn_checkpoint_import("model", "in", NULL, NULL));
  for (; *lines; lines++) has(*lines);
}

// What a description keeps, and the vocabularies of a checkpoint as those of another import.
static void parts(void **state) {
  (void)state;
  has_lines("tutorial", (const char *[]){"norm: post\n", "final_norm: yes", "positions: sinusoidal_paper",
                                         "max_length: 32\n", "beam: 1\n", "max_len_a: 1\n", "max_len_b: 4\n",
                                         "decoder_start: 2", "output_bias: yes", "embeddings: none", NULL});
  tarn_vocab *source, *target;
  must(tarn_checkpoint_vocabs(&source, &target, "model"));
  must(tarn_vocab_save(source, "source.vocab"));
  must(tarn_vocab_save(target, "target.vocab"));
  tarn_vocab_close(&source);
  tarn_vocab_close(&target);
  must(tarn_checkpoint_import("again", "in", "source.vocab", "target.vocab"));
  json_t *object = read_cases(golden("tutorial", "cases.json"));
  check_search("again", json_object_get(object, "translations"), 0, 0, "greedy");
  json_decref(object);
  has_lines("stacks", (const char *[]){"norm: pre\n", "final_norm: no", "positions: learned", "epsilon: 1e-06",
                                       "embedding_scale: no", "embeddings: decoder", "activation: gelu", "layers: E\n",
                                       "layers: D*2\n", NULL});
}

// Positions that are no tensor, and a source that begins without a token.
static void without(void **state) {
  (void)state;
  static const char to[] = "\"source_bos\": false, \"positions\": \"sinusoidal\", \"max_length\": 32";
  tarn_vocab *source, *target;
  tarn_vocab_ids ids = {0};
  make_folder("tutorial");
  write_changed("in/config.json", golden("tutorial", "config.json"), "\"dropout\": 0.1", to);
  write_renamed("in/model.safetensors", golden("tutorial", "model.safetensors"), "positional_encoding.pos_embedding",
                NULL);
  must(tarn_checkpoint_import("model", "in", NULL, NULL));
  check_logits("model", golden("tutorial", "expected.safetensors"), 1e-5);
  must(tarn_checkpoint_vocabs(&source, &target, "model"));
  must(tarn_vocab_encode(source, &ids, "die", 3));
  assert_int_equal(ids.count, 1);
  tarn_vocab_ids_close(&ids);
  tarn_vocab_close(&source);
  tarn_vocab_close(&target);
  // A table of sinusoids on one side has the number of positions.
  write_changed("in/config.json", golden("tutorial", "config.json"), "\"dropout\": 0.1",
                "\"positions\": \"sinusoidal\", \"target_positions\": \"positional_encoding.pos_embedding\"");
  copy_file(golden("tutorial", "model.safetensors"), "in/model.safetensors");
  must(tarn_checkpoint_import("model", "in", NULL, NULL));
  check_logits("model", golden("tutorial", "expected.safetensors"), 1e-5);
}

// Writes "stacks" with one matrix of words for all uses, and with the sinusoids of "tutorial" as its positions, the
// last of which has another number if it is `changed`.
static void write_shared(const char *to, bool changed) {
  enum { NUMBERS = 32 * 6 };
  float table[NUMBERS];
  tarn__safetensors file = {0}, other = {0};
  tarn__stored tensors[64];
  size_t count = 0;
  must(tarn__safetensors_open(&file, golden("stacks", "model.safetensors")));
  must(tarn__safetensors_open(&other, golden("tutorial", "model.safetensors")));
  const tarn__stored *sinusoids = tarn__safetensors_find(&other, "positional_encoding.pos_embedding");
  assert_int_equal(sinusoids->bytes, sizeof table);
  memcpy(table, sinusoids->data, sizeof table);
  table[NUMBERS - 1] += changed ? 1.0f : 0.0f;
  assert_true(file.count <= 64);
  for (size_t i = 0; i < file.count; i++) {
    if (strcmp(file.tensors[i].name, "module.source.weight") == 0) continue;
    tensors[count] = file.tensors[i];
    if (strcmp(file.tensors[i].name, "module.places") == 0) {
      tensors[count].dtype = "F32";
      tensors[count].data = table;
      tensors[count].bytes = sizeof table;
    }
    count++;
  }
  assert_int_equal(count, file.count - 1);
  must(tarn__safetensors_write(to, tensors, count, NULL, 0));
  tarn__safetensors_close(&file);
  tarn__safetensors_close(&other);
}

// The model is the same function whether all is reordered or its sinusoids are taken for learned positions.
static void reordered(void **state) {
  (void)state;
  static const char *const lines[] = {"two children", "the man", "old", "water is cold ."};
  enum { LINES = sizeof lines / sizeof *lines };
  size_t lengths[LINES];
  tarn_translate_result results[2][LINES];
  tarn_translator_options options;
  tarn_translator *translators[2];
  tarn_translator_default(&options);
  options.beam = 3;
  make_folder("stacks");
  write_changed("in/config.json", golden("stacks", "config.json"), "\"source_embedding\": \"source\"",
                "\"source_embedding\": \"target\"");
  for (int i = 0; i < LINES; i++) lengths[i] = strlen(lines[i]);
  for (int changed = 0; changed < 2; changed++) {
    write_shared("in/model.safetensors", changed);
    must(tarn_checkpoint_import("model", "in", "in/tokens.target.txt", NULL));
    has(changed ? "positions: learned" : "positions: sinusoidal_paper");
    has("embeddings: all");
    must(tarn_translator_open(&translators[changed], "model", &options));
    must(tarn_translator_lines(translators[changed], results[changed], lines, lengths, LINES));
  }
  for (int i = 0; i < LINES; i++) {
    const tarn_translate_hypothesis *a = &results[0][i].hypotheses[0], *b = &results[1][i].hypotheses[0];
    assert_true(a->tokens > 1);
    assert_string_equal(a->text, b->text);
    assert_true(fabs((double)a->log_probability - (double)b->log_probability) < 1e-4);
  }
  for (int i = 0; i < 2; i++) tarn_translator_close(&translators[i]);
}

// Writes the model with FFNs of one unit, the first.
static void write_narrow(const char *to, const char *from) {
  enum { UNITS = 4, WIDTH = 6 };
  tarn__safetensors file = {0};
  tarn__stored tensors[64];
  uint16_t columns[64][WIDTH];
  must(tarn__safetensors_open(&file, from));
  assert_true(file.count <= 64);
  for (size_t i = 0; i < file.count; i++) {
    tarn__stored *t = &tensors[i];
    *t = file.tensors[i];
    if (strstr(t->name, "linear1.")) {
      t->shape[0] = 1;
      t->bytes /= UNITS;
    } else if (strstr(t->name, "linear2.weight")) {
      for (int d = 0; d < WIDTH; d++) memcpy(&columns[i][d], (const uint16_t *)t->data + d * UNITS, sizeof **columns);
      t->shape[1] = 1;
      t->bytes /= UNITS;
      t->data = (const uint8_t *)columns[i];
    }
  }
  must(tarn__safetensors_write(to, tensors, file.count, NULL, 0));
  tarn__safetensors_close(&file);
}

// Every `step`th number of a parameter of "whole" is in "narrow".
static void check_narrow(const char *name, int64_t count, int64_t step) {
  tarn__safetensors whole = {0}, narrow = {0};
  must(tarn__safetensors_open(&whole, "whole"));
  must(tarn__safetensors_open(&narrow, "narrow"));
  const tarn__stored *a = tarn__safetensors_find(&whole, name), *b = tarn__safetensors_find(&narrow, name);
  assert_non_null(a);
  assert_non_null(b);
  assert_int_equal(b->bytes, (size_t)count * sizeof(float));
  for (int64_t i = 0; i < count; i++)
    assert_memory_equal((const float *)a->data + i * step, (const float *)b->data + i, sizeof(float));
  tarn__safetensors_close(&whole);
  tarn__safetensors_close(&narrow);
}

// A matrix of one row, or of one column, is reordered as one of many.
static void one_unit(void **state) {
  (void)state;
  make_folder("tutorial");
  must(tarn_checkpoint_import("whole", "in", NULL, NULL));
  write_changed("in/config.json", golden("tutorial", "config.json"), "\"dim_feedforward\": 4",
                "\"dim_feedforward\": 1");
  write_narrow("in/model.safetensors", golden("tutorial", "model.safetensors"));
  must(tarn_checkpoint_import("narrow", "in", NULL, NULL));
  check_narrow("encoder.layer1.ffn.in.weight", 6, 1);
  check_narrow("encoder.layer1.ffn.in.bias", 1, 1);
  check_narrow("decoder.layer1.ffn.in.weight", 6, 1);
  check_narrow("decoder.layer1.ffn.out.weight", 6, 4);
  check_narrow("decoder.layer1.ffn.out.bias", 6, 1);
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
      {"\"nhead\": 2", "\"nhead\": 4",
       "\"nhead\" is 4, which does not divide the width of \"src_tok_emb.embedding.weight\" (6)"},
      {"\"nhead\": 2", "\"n_head\": 2", "it has no \"nhead\", but \"n_head\""},
      {"\"d_model\": 6", "\"d_model\": 512", "\"d_model\" is 512, but by the tensors of in/model.safetensors it is 6"},
      {"\"num_encoder_layers\": 1", "\"num_encoder_layers\": 3", "\"num_encoder_layers\" is 3, but by the tensors"},
      {"\"dim_feedforward\": 4", "\"dim_feedforward\": -4", "\"dim_feedforward\" is not a whole number"},
      {"\"dim_feedforward\": 4", "\"layer_norm_eps\": -1", "\"layer_norm_eps\""},
      {"\"dim_feedforward\": 4", "\"activation\": \"tanh\"", "\"activation\" is \"tanh\""},
      {"\"dim_feedforward\": 4", "\"source_embedding\": \"src_tok_emb.embeding\"",
       "there is no tensor \"src_tok_emb.embeding.weight\" (did you mean \"src_tok_emb.embedding.weight\"?)"},
      {"\"dim_feedforward\": 4", "\"generator\": \"src_tok_emb.embedding\"",
       "tensor \"src_tok_emb.embedding.weight\" has the shape"},
      {"\"dim_feedforward\": 4", "\"encoder\": \"transformer.decoder\"",
       "\"encoder\" names a stack with cross-attention "
       "(\"transformer.decoder.layers.0.multihead_attn.in_proj_weight\")"},
      {"\"dim_feedforward\": 4", "\"max_length\": 512",
       "\"max_length\" is 512, but by the tensors of in/model.safetensors it is 32"},
      {"\"dim_feedforward\": 4", "\"decoder\": \"transformer\"",
       "there is no tensor \"transformer.layers.0.self_attn.in_proj_weight\""},
      {"\"dim_feedforward\": 4", "\"target_positions\": \"generator.weight\"",
       "\"generator.weight\" are of 32 and 20 positions"},
      {"\"dim_feedforward\": 4", "\"positions\": \"generator.bias\"",
       "\"generator.bias\" is no table of positions of 6"},
      {"\"dim_feedforward\": 4", "\"positions\": \"sinusoids\"", "there is no tensor \"sinusoids\""},
      {"\"dim_feedforward\": 4", "\"positions\": \"sinusoidal\"",
       "tensor \"positional_encoding.pos_embedding\" does not belong to an nn.Transformer with 1 encoder layer and 1 "
       "decoder layer"},
      {"\"model_type\": \"nn.Transformer\"", "\"model_type\": \"nn.Transformers\"", "did you mean nn.Transformer?"},
  };
  make_folder("tutorial");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    write_changed("in/config.json", golden("tutorial", "config.json"), cases[i].from, cases[i].to);
    refused(cases[i].words);
  }
  write_changed("in/config.json", golden("tutorial", "config.json"), "\"dropout\"", "\"drop_out\"");
  tarn_log_set(keep_warning, NULL);
  must(tarn_checkpoint_import("model", "in", NULL, NULL));
  tarn_log_set(NULL, NULL);
  if (!strstr(warnings, "\"drop_out\" (did you mean \"dropout\"?)")) fail_msg("%s", warnings);
}

static void wrong_vocabularies(void **state) {
  (void)state;
  make_folder("tutorial");
  sandbox_write("in/tokens.target.txt", "<unk>\n<bos>\n<eos>\n", 18);
  refused("in/tokens.target.txt: the vocabulary has 3 tokens, but tensor \"tgt_tok_emb.embedding.weight\" has");
  make_folder("stacks");
  write_changed("in/tokens.target.txt", golden("stacks", "tokens.target.txt"), "<bos>", "<boss>");
  refused("in/tokens.target.txt: it has no beginning-of-sentence token such as <bos>");
  remove("in/tokens.target.txt");
  remove("in/target.spm");
  refused("in: there is neither tokens.target.txt nor target.spm");
}

// A vocabulary that puts <bos> in front of each text is for a source that begins so.
static void prefixed_vocabularies(void **state) {
  (void)state;
  tarn_vocab *source, *target;
  make_folder("tutorial");
  must(tarn_checkpoint_import("model", "in", NULL, NULL));
  must(tarn_checkpoint_vocabs(&source, &target, "model"));
  must(tarn_vocab_save(source, "source.vocab"));
  tarn_vocab_close(&source);
  tarn_vocab_close(&target);
  write_changed("in/config.json", golden("tutorial", "config.json"), "\"dropout\": 0.1", "\"source_bos\": false");
  assert_int_equal(tarn_checkpoint_import("never", "in", "source.vocab", "in/tokens.target.txt"), TARN_STATUS_DATA);
  must_say("source.vocab: this vocabulary puts a token in front of each text, but \"source_bos\" is false");
  make_folder("stacks");  // where both sides could have one list
  write_changed("in/tokens.source.txt", golden("stacks", "tokens.target.txt"), "<unk>", "<unk>");
  write_renamed("in/model.safetensors", golden("stacks", "model.safetensors"), "module.source.weight", NULL);
  write_changed("in/config.json", golden("stacks", "config.json"), "\"source_embedding\": \"source\"",
                "\"source_embedding\": \"target\"");
  must(tarn_checkpoint_import("model", "in", "in/tokens.target.txt", NULL));
  must(tarn_checkpoint_vocabs(&source, &target, "model"));
  must(tarn_vocab_save(source, "source.vocab"));
  tarn_vocab_close(&source);
  tarn_vocab_close(&target);
  assert_int_equal(tarn_checkpoint_import("never", "in", "source.vocab", NULL), TARN_STATUS_DATA);
  must_say("source.vocab: this vocabulary puts a token in front of each text, which is for a source");
  must(tarn_checkpoint_import("again", "in", "source.vocab", "in/tokens.target.txt"));
}

static void rename_tensor(const char *name, const char *other) {
  write_renamed("in/model.safetensors", golden("tutorial", "model.safetensors"), name, other);
}

// Writes a model with one more tensor.
static void add_row(const char *to, const char *from, const char *name) {
  static const float row[] = {1, 2};
  tarn__safetensors file = {0};
  tarn__stored tensors[128];
  must(tarn__safetensors_open(&file, from));
  assert_true(file.count < 128);
  memcpy(tensors, file.tensors, file.count * sizeof *tensors);
  tensors[file.count] =
      (tarn__stored){.name = name, .dtype = "F32", .dims = 1, .shape = {2}, .data = row, .bytes = sizeof row};
  must(tarn__safetensors_write(to, tensors, file.count + 1, NULL, 0));
  tarn__safetensors_close(&file);
}

static void wrong_tensors(void **state) {
  (void)state;
  make_folder("tutorial");
  rename_tensor("transformer.decoder.layers.0.multihead_attn.in_proj_bias", NULL);
  refused("\"transformer.decoder.layers.0.multihead_attn.in_proj_bias\" is missing");
  rename_tensor("transformer.decoder.layers.0.multihead_attn.in_proj_weight", NULL);
  refused("belong to two stacks; choose one with \"encoder\" of in/config.json");
  rename_tensor("transformer.encoder.layers.0.self_attn.in_proj_weight", NULL);
  refused("there is no tensor \"encoder.layers.0.self_attn.in_proj_weight\", which nn.Transformer has");
  rename_tensor("transformer.encoder.layers.0.norm2.weight", NULL);
  refused("\"transformer.encoder.layers.0.norm2.weight\" is missing");
  rename_tensor("transformer.encoder.norm.bias", "transformer.encoder.norm.wings");
  refused("\"transformer.encoder.norm.bias\" is missing");
  rename_tensor("generator.weight", "generator.wheight");
  refused(
      "there is no tensor \"generator.weight\" (did you mean \"generator.wheight\"?); the module is named by "
      "\"generator\" of in/config.json");
  rename_tensor("positional_encoding.pos_embedding", "pos_encoder.pe");
  refused("there is no tensor \"positional_encoding.pos_embedding\"");
  must_say("\"positions\" of in/config.json");
  // Norms behind a stack are optional.
  rename_tensor("transformer.encoder.norm.weight", "transformer.encoder.norm.wings");
  refused("tensor \"transformer.encoder.norm.bias\" does not belong to an nn.Transformer with 1 encoder layer and 1");
  // A copy that is not one: the output's matrix without the prefix that all others have.
  make_folder("stacks");
  add_row("in/model.safetensors", golden("stacks", "model.safetensors"), "target.weight");
  refused("there are both \"target.weight\" and \"module.target.weight\"");
  remove("in/model.safetensors");
  sandbox_write("in/model.pt", "PK\3\4", 4);
  refused("in: there is no model.safetensors, and model.pt is a pickle");
}

// Whatever allocation fails, nothing is left behind, and no file.
static void failing_memory(void **state) {
  (void)state;
  make_folder("stacks");
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
      cmocka_unit_test_setup_teardown(without, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(reordered, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(one_unit, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(wrong_settings, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(wrong_vocabularies, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(prefixed_vocabularies, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(wrong_tensors, sandbox_open, sandbox_close),
      cmocka_unit_test_setup_teardown(failing_memory, sandbox_open, sandbox_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
