// BERT and RoBERTa models of the package transformers (make_bert.py): their logits, the way back, and what is refused.
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

#include "config/config_part.h"
#include "golden/import_check.h"
#include "parts/table/part_table.h"
#include "shadow_device.h"
#include "tarn/checkpoint.h"
#include "tarn/lab/foreign.h"
#include "tarn/process.h"

enum { VOCAB = 262, SENTENCES = 3, LENGTH = 14, ROWS = SENTENCES * LENGTH, WIDTH = 16, PATH = 256 };

static const char *const MODELS[] = {"bert", "roberta", "untied", "classes", "number"};
enum { MODEL_COUNT = sizeof MODELS / sizeof *MODELS };
static const tarn_bert_format FORMATS[MODEL_COUNT] = {TARN_BERT_FORMAT_BERT, TARN_BERT_FORMAT_ROBERTA,
                                                      TARN_BERT_FORMAT_BERT, TARN_BERT_FORMAT_BERT,
                                                      TARN_BERT_FORMAT_ROBERTA};

static const char *golden(const char *model, const char *file) {
  static char path[PATH];
  snprintf(path, sizeof path, GOLDEN "bert_model/%s%s%s", model, *file ? "/" : "", file);
  return path;
}

// The states of sentences, or with `head` the logits of all tokens at each place, or of labels; returns how many they
// are.
static int64_t run(const tarn__model *model, const tarn__stored *ids, const tarn__stored *segments, bool head,
                   float *output) {
  int32_t positions[ROWS], offsets[SENTENCES + 1];
  tarn__graph graph = {0};
  tarn__host_room host = {0};
  void *room, *values;
  for (int s = 0; s <= SENTENCES; s++) offsets[s] = s * LENGTH;
  tarn__packed_positions(positions, offsets, SENTENCES);
  const tarn__packed packed = {SENTENCES, ROWS, LENGTH, ids->data, positions, offsets, segments->data, NULL};
  const tarn__task_weights *weights = &model->weights;

  tarn__model_begin(model, &graph, false, 1);
  const tarn__device *device = graph.device;
  tarn__tensor *x = tarn__model_build_states(model, &graph, &packed, NULL);
  if (head && !weights->norm.use.part) {
    x = tarn__select_rows(&graph, x, tarn__graph_input(&graph, SENTENCES, offsets, "first tokens"));
    x = tarn__tanh(&graph, tarn__linear(&graph, x, weights->dense.weight, weights->dense.bias, TARN__IDENTITY));
    x = tarn__linear(&graph, x, weights->output_table, weights->output_bias, TARN__IDENTITY);
    x->keep = true;
  } else if (head) {
    x = tarn__linear(&graph, x, weights->dense.weight, weights->dense.bias, TARN__GELU);
    x = tarn__norm_of(&weights->norm.use)->build(&graph, x, NULL, 0.0, &weights->norm).y;
    x = tarn__linear(&graph, x, weights->output_table, weights->output_bias, TARN__IDENTITY);
    x->keep = true;
  }
  must(tarn__graph_plan(&graph));
  must(tarn__device_allocate(device, &room, TARN__MEMORY_OTHER, graph.workspace_bytes, 1));
  tarn__graph_bind(&graph, room);
  must(tarn__graph_run(&graph, &(tarn__exec){.threads = 1}));
  must(tarn__graph_read(&graph, &values, x, &host));
  const int64_t count = x->rows * x->cols;
  memcpy(output, values, (size_t)count * sizeof *output);
  tarn__host_room_close(&host);
  tarn__device_free(device, room);
  tarn__graph_close(&graph);
  return count;
}

static void check_output(const char *checkpoint, const char *expected, bool head) {
  static float output[ROWS * VOCAB];
  tarn__checkpoint *c;
  tarn__safetensors file = {0};
  double worst = 0.0;
  must(tarn__checkpoint_open(&c, checkpoint, TARN__F32));
  must(tarn__safetensors_open(&file, expected));
  const tarn__stored *wanted = tarn__safetensors_find(&file, "output");
  const float *values = wanted->data;
  const int64_t count =
      run(c->model, tarn__safetensors_find(&file, "ids"), tarn__safetensors_find(&file, "segments"), head, output);
  assert_int_equal(wanted->bytes, (size_t)count * sizeof *output);
  for (int64_t i = 0; i < count; i++) worst = fmax(worst, fabs((double)output[i] - values[i]));
  print_message("%s: largest difference %g\n", expected, worst);
  if (!(worst < 1e-4)) fail_msg("%s: a value is off by %g", expected, worst);
  tarn__safetensors_close(&file);
  tarn__checkpoint_close(&c);
}

static void logits(void **state) {
  (void)state;
  for (int i = 0; i < MODEL_COUNT; i++) {
    must(tarn_checkpoint_import_bert("model", golden(MODELS[i], ""), "bytes"));
    check_output("model", golden(MODELS[i], "expected.safetensors"), true);
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

// Rows of the table of positions that RoBERTa never reads come back as zeros; all else as it was.
static void check_tensor(const tarn__stored *a, const tarn__stored *b, size_t skipped) {
  assert_int_equal(a->dims, b->dims);
  assert_memory_equal(a->shape, b->shape, (size_t)a->dims * sizeof *a->shape);
  assert_int_equal(a->bytes, b->bytes);
  assert_memory_equal((const char *)a->data + skipped, (const char *)b->data + skipped, a->bytes - skipped);
}

// The tensors come back as they were, under the names that transformers writes.
static void there_and_back(void **state) {
  (void)state;
  for (int i = 0; i < MODEL_COUNT; i++) {
    tarn__safetensors before = {0}, after = {0};
    must(tarn_checkpoint_import_bert("model", golden(MODELS[i], ""), "bytes"));
    must(tarn_checkpoint_export_bert("exported", "model", FORMATS[i]));
    must(tarn_checkpoint_import_bert("again", "exported", "bytes"));
    check_output("again", golden(MODELS[i], "expected.safetensors"), true);
    must(tarn__safetensors_open(&before, golden(MODELS[i], "model.safetensors")));
    must(tarn__safetensors_open(&after, "exported/model.safetensors"));
    if (i != 2) assert_int_equal(before.count, after.count);
    for (size_t k = 0; k < before.count && i != 2; k++) {
      const bool positions =
          FORMATS[i] == TARN_BERT_FORMAT_ROBERTA && strstr(before.tensors[k].name, "position_embeddings");
      assert_string_equal(before.tensors[k].name, after.tensors[k].name);
      check_tensor(&before.tensors[k], &after.tensors[k], positions ? 2 * WIDTH * sizeof(float) : 0);
    }
    tarn__safetensors_close(&before);
    tarn__safetensors_close(&after);
  }
  // A byte vocabulary has no such files.
  assert_false(tarn__file_exists("exported/vocab.txt"));
}

// Names of classes come along, whatever characters they have.
static void classes_have_names(void **state) {
  (void)state;
  tarn__checkpoint *c;
  for (int i = 0; i < 2; i++) {
    must(tarn_checkpoint_import_bert("model", i ? "classes" : golden("classes", ""), "bytes"));
    must(tarn__checkpoint_open(&c, "model", TARN__F32));
    assert_int_equal(c->config->model.task, TARN__LEARNS_CLASSIFICATION);
    assert_string_equal(c->config->head.labels, "bad||worse|so \"so\"|good");
    tarn__checkpoint_close(&c);
    must(tarn_checkpoint_export_bert("classes", "model", TARN_BERT_FORMAT_BERT));
  }
  must(tarn_checkpoint_import_bert("model", golden("number", ""), "bytes"));
  must(tarn__checkpoint_open(&c, "model", TARN__F32));
  assert_int_equal(c->config->model.task, TARN__LEARNS_REGRESSION);
  tarn__checkpoint_close(&c);
}

// A file without an output: its pooler is left out, the output is drawn anew, and the encoder is as it was.
static void encoder_alone(void **state) {
  (void)state;
  warning_count = 0;
  tarn_log_set(keep_warning, NULL);
  tarn_status status = tarn_checkpoint_import_bert("body", golden("body", ""), "bytes");
  tarn_log_set(NULL, NULL);
  must(status);
  assert_int_equal(warning_count, 2);
  assert_non_null(strstr(warnings, "no output of a masked language model"));
  check_output("body", golden("body", "expected.safetensors"), false);
}

#define BERT_KINDS                                                                                     \
  KINDS                                                                                                \
  "  P: { heads: 2, ffn: 32, norm: pre }\n  E: { heads: 2, ffn: 32, norm_type: { epsilon: 0.001 } }\n" \
  "  D: { heads: 2, ffn: 32, dropout: 0.25 }\n"
#define BERT "positions: learned, max_length: 20, embedding_scale: no, embedding_norm: yes, activation: gelu"

// Reservoirs and shared layers are written out, and a model without segments gets one; the vocabulary goes along.
static void own_models(void **state) {
  (void)state;
  static float before[ROWS * VOCAB], after[ROWS * VOCAB];
  tarn__safetensors file = {0};
  tarn__checkpoint *c;
  must(tarn__safetensors_open(&file, golden("roberta", "expected.safetensors")));
  const tarn__stored *ids = tarn__safetensors_find(&file, "ids"), *segments = tarn__safetensors_find(&file, "segments");
  save_model("own", "model: { d_model: 16, " BERT " }\nencoder: { layers: R1 L H R1 }\n" BERT_KINDS, "bytes");
  for (int i = 0; i < 2; i++) {
    must(tarn_checkpoint_export_bert("dense", "own", FORMATS[i]));
    must(tarn_checkpoint_import_bert("dense_model", "dense", "bytes"));
    must(tarn__checkpoint_open(&c, "own", TARN__F32));
    run(c->model, ids, segments, true, before);
    tarn__checkpoint_close(&c);
    must(tarn__checkpoint_open(&c, "dense_model", TARN__F32));
    run(c->model, ids, segments, true, after);
    tarn__checkpoint_close(&c);
    for (int k = 0; k < ROWS * VOCAB; k++) assert_true(fabsf(before[k] - after[k]) < 1e-4f);
  }
  tarn__safetensors_close(&file);
  must(tarn_vocab_import_wordpiece("pieces", GOLDEN "wordpiece_toy", TARN_WORDPIECE_CASED));
  save_model("own", "model: { d_model: 16, segments: 2, " BERT " }\nencoder: { layers: L }\n" BERT_KINDS, "pieces");
  must(tarn_checkpoint_export_bert("whole", "own", TARN_BERT_FORMAT_BERT));
  must(tarn_checkpoint_import_bert("whole_model", "whole", NULL));
  check_same_vocab("pieces", "whole");
}

static void other_models_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *text, *words;
  } cases[] = {
      {"model: { d_model: 16, " BERT " }\ndecoder: { layers: L }\n" BERT_KINDS, "is a masked language model"},
      {"model: { d_model: 16 }\nencoder: { layers: L }\n" BERT_KINDS, "model.positions is not learned"},
      {"model: { d_model: 16, positions: learned }\nencoder: { layers: L }\n" BERT_KINDS, "embedding_scale is yes"},
      {"model: { d_model: 16, positions: learned, embedding_scale: no }\nencoder: { layers: L }\n" BERT_KINDS,
       "embedding_norm is no"},
      {"model: { d_model: 16, " BERT ", norm_type: rms }\nencoder: { layers: L }\n" BERT_KINDS, "norm_type is rms"},
      {"model: { d_model: 16, " BERT " }\nencoder: { layers: L N }\n" BERT_KINDS,
       "layer 2 (kind N) is none of attention"},
      {"model: { d_model: 16, " BERT " }\nencoder: { layers: L G }\n" BERT_KINDS
       "  G: { heads: 2, ffn: { type: swiglu, width: 32 } }\n",
       "layer 2 (kind G) has swiglu as its FFN, and BERT's have ffn"},
      {"model: { d_model: 16, " BERT " }\nencoder: { layers: L W }\n" BERT_KINDS,
       "kinds L and W have different ffn.width"},
      {"model: { d_model: 16, " BERT " }\nencoder: { layers: L P }\n" BERT_KINDS, "layer 2 (kind P) is not post-norm"},
      {"model: { d_model: 16, " BERT " }\nencoder: { layers: L E }\n" BERT_KINDS, "norms of kind E are not as"},
      {"model: { d_model: 16, positions: learned, embedding_scale: no, embedding_norm: yes }\nencoder: { layers: L "
       "}\n" BERT_KINDS,
       "the activation of kind L is relu"},
      {"model: { d_model: 16, " BERT " }\nencoder: { layers: L D }\n" BERT_KINDS,
       "kinds L and D have different dropout"},
      {"model: { d_model: 16, " BERT ", embedding_dropout: 0.3 }\nencoder: { layers: L }\n" BERT_KINDS,
       "model.embedding_dropout is 0.3 and kinds.L.dropout 0.1"},
      {"model: { d_model: 16, " BERT " }\nencoder: { layers: L, layerdrop: 0.2 }\n" BERT_KINDS,
       "encoder.layerdrop is 0.2, and BERT's format has none"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    save_model("other", cases[i].text, "bytes");
    assert_int_equal(tarn_checkpoint_export_bert("refused", "other", TARN_BERT_FORMAT_BERT), TARN_STATUS_USAGE);
    must_say(cases[i].words);
    assert_false(tarn__file_exists("refused"));
  }
}

static void refused(const char *words) {
  assert_int_equal(tarn_checkpoint_import_bert("never", "bad", "bytes"), TARN_STATUS_DATA);
  must_say(words);
  assert_false(tarn__file_exists("never"));
}

// One tensor is left out, added, or changed.
static void wrong_tensors(void **state) {
  (void)state;
  static const char victim[] = "bert.encoder.layer.1.attention.self.key.weight";
  static const char *const words[] = {
      "tensor \"encoder.layer.1.attention.self.key.weight\" is missing",
      "tensor \"bert.encoder.layer.2.output.dense.bias\" is none of a BERT model of 2 layers",
      "self.key.weight\" has the shape [16, 8] where [16, 16] was expected",
      "self.key.weight\" has type I32",
      ("\"cls.predictions.decoder.weight\" and \"bert.embeddings.word_embeddings.weight\" differ, though "
       "\"tie_word_embeddings\""),
      "self.key.weight\" holds numbers that are not finite"};
  static float values[16 * 16];
  tarn__safetensors file = {0};
  tarn__stored tensors[64];
  mkdir("bad", 0700);
  copy_file(golden("bert", "config.json"), "bad/config.json");
  must(tarn__safetensors_open(&file, golden("bert", "model.safetensors")));
  const size_t at = (size_t)(tarn__safetensors_find(&file, victim) - file.tensors);
  memcpy(values, file.tensors[at].data, sizeof values);
  values[77] = NAN;
  for (int change = 0; change < 6; change++) {
    size_t count = file.count;
    for (size_t i = 0; i < count; i++) tensors[i] = file.tensors[i];
    if (change == 0) tensors[at] = tensors[--count];
    if (change == 1 || change == 4) {
      tensors[count] = *tarn__safetensors_find(
          &file, change == 1 ? "bert.encoder.layer.1.output.dense.bias" : "bert.embeddings.position_embeddings.weight");
      tensors[count++].name = change == 1 ? "bert.encoder.layer.2.output.dense.bias" : "cls.predictions.decoder.weight";
    }
    if (change == 2) tensors[at].shape[1] = 8, tensors[at].bytes /= 2;
    if (change == 3) tensors[at].dtype = "I32";
    if (change == 5) tensors[at].data = values;
    must(tarn__safetensors_write("bad/model.safetensors", tensors, count, NULL, 0));
    refused(words[change]);
  }
  tarn__safetensors_close(&file);
}

#define LONG_64 "a name of sixty-four bytes, which is a quarter of one too many.."
#define LONG LONG_64 LONG_64 LONG_64 LONG_64

// A text in config.json is replaced by another one.
static void wrong_configs(void **state) {
  (void)state;
  static const struct {
    const char *model, *from, *to, *words;
  } cases[] = {
      {"bert", "\"hidden_size\": 16,", "", "it has no \"hidden_size\""},
      {"bert", "\"hidden_size\"", "\"hiden_size\"", "bad/config.json: it has no \"hidden_size\", but \"hiden_size\""},
      {"bert", "heads\": 2", "heads\": 3",
       "bad/config.json: \"num_attention_heads\" is 3, which does not divide \"hidden_size\" (16)"},
      {"bert", "hidden_dropout_prob\": 0.1", "hidden_dropout_prob\": 1.5",
       "bad/config.json: \"hidden_dropout_prob\": 1.5 is out of range"},
      {"bert", "attention_probs_dropout_prob\": 0.1", "attention_probs_dropout_prob\": -1",
       "bad/config.json: \"attention_probs_dropout_prob\": -1 is out of range"},
      {"bert", "layers\": 2", "layers\": 2.5", "\"num_hidden_layers\" is not a whole number"},
      {"bert", "layers\": 2", "layers\": 3", "tensor \"encoder.layer.2.attention.self.query.weight\" is missing"},
      {"bert", "type_vocab_size\": 2", "type_vocab_size\": 3", "has the shape [2, 16] where [3, 16] was expected"},
      {"bert", "\"gelu\"", "\"mish\"", "\"hidden_act\" is \"mish\"; tarn has gelu_new"},
      {"bert", "\"gelu\"", "\"relu\"", "\"hidden_act\" is not gelu"},
      {"bert", "\"vocab_size\": 262", "\"vocab_size\": 261", "has 262 tokens, but bad/config.json says 261"},
      {"bert", "1e-12", "0.0", "bad/config.json: \"layer_norm_eps\": 0 is out of range"},
      {"bert", "\"model_type\": \"bert\"", "\"model_type\": \"gpt2\"",
       "\"model_type\" is gpt2; tarn reads bert and roberta"},
      {"bert", "\"model_type\": \"bert\"", "\"model_tipe\": \"bert\"", "it has no \"model_type\", but \"model_tipe\""},
      {"bert", "\"is_decoder\": false", "\"is_decoder\": true", "\"is_decoder\" is true, which tarn does not have"},
      {"bert", "\"use_cache\": true", "\"position_embedding_type\": \"relative_key\"",
       "\"position_embedding_type\" is \"relative_key\""},
      {"roberta", "\"pad_token_id\": 1", "\"pad_token_id\": 17",
       "\"max_position_embeddings\" is 18, of which the first 18"},
      {"roberta", "\"pad_token_id\": 1", "\"pad_token_id\": 1.5", "\"pad_token_id\" is not a whole number"},
      {"roberta", "\"pad_token_id\": 1", "\"pad_token_id\": -1", "\"pad_token_id\" is -1, which is no token"},
      {"classes", "\"good\"", "\"go\\nod\"", "\"id2label\" has no name for class 2"},
      {"classes", "\"good\"", "\"go\\u0085od\"", "\"id2label\" has no name for class 2"},
      {"classes", "\"good\"", "\"go\\u007fod\"", "\"id2label\" has no name for class 2"},
      {"classes", "\"good\"", "\"go\\u2028od\"", "\"id2label\" has no name for class 2"},
      {"classes", "\"good\"", "\"" LONG "\"", "\"id2label\" has a name of 256 bytes for class 2; the longest has 255"},
      {"classes", "\"good\"", "\"|good\"", "\"id2label\" has \"|good\" for class 2, but a bar at the beginning"},
      {"classes", "\"good\"", "\"bad|worse\"", "\"id2label\" has \"bad|worse\" for class 0 and for class 2"},
      {"classes", "\"classifier_dropout\": null", "\"classifier_dropout\": 1.5",
       "bad/config.json: \"classifier_dropout\": 1.5 is out of range"},
      {"classes", "\"1\": ", "\"4\": ", "\"id2label\" has no name for class 1"},
      {"classes", "\"pad_token_id\": 0", "\"problem_type\": \"multi_label_classification\"",
       "\"problem_type\" is \"multi_label_classification\""},
      {"bert", "{", "[", "bad/config.json:"},
  };
  mkdir("bad", 0700);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    copy_file(golden(cases[i].model, "model.safetensors"), "bad/model.safetensors");
    write_changed("bad/config.json", golden(cases[i].model, "config.json"), cases[i].from, cases[i].to);
    refused(cases[i].words);
  }
  copy_file(golden("bert", "config.json"), "bad/config.json");
  copy_file(golden("bert", "model.safetensors"), "bad/model.safetensors");
  assert_int_equal(tarn_checkpoint_import_bert("never", "bad", NULL), TARN_STATUS_DATA);
  assert_non_null(strstr(tarn_error_message(), "it has no vocabulary (vocab.txt)"));
}

// BERT's classifiers and bodies without an output have no activation but that of their layers, which may be any.
static void classifiers_with_relu(void **state) {
  (void)state;
  static const char *const from[] = {"classes", "body"};
  mkdir("bad", 0700);
  for (int i = 0; i < 2; i++) {
    tarn__checkpoint *c;
    copy_file(golden(from[i], "model.safetensors"), "bad/model.safetensors");
    write_changed("bad/config.json", golden(from[i], "config.json"), "\"gelu\"", "\"relu\"");
    must(tarn_checkpoint_import_bert("with_relu", "bad", "bytes"));
    must(tarn__checkpoint_open(&c, "with_relu", TARN__F32));
    const tarn_kind *kind = &c->config->kinds[c->config->encoder.layers[0].kind];
    assert_string_equal(tarn__kind_part(kind, "ffn.activation")->part->word, "relu");
    tarn__checkpoint_close(&c);
    if (i > 0) continue;
    must(tarn_checkpoint_export_bert("with_relu_back", "with_relu", TARN_BERT_FORMAT_BERT));
    must(tarn_checkpoint_import_bert("with_relu_again", "with_relu_back", "bytes"));
  }
}

// Every allocation may fail: a status, and no file.
static void failing_memory(void **state) {
  (void)state;
  for (uint64_t n = 1;; n += n < 60 ? 1 : 17) {
    tarn__memory_fail_after(n);
    tarn_status status = tarn_checkpoint_import_bert("lost", golden("bert", ""), "bytes");
    tarn__memory_fail_after(0);
    if (status == TARN_STATUS_OK) break;
    assert_int_equal(status, TARN_STATUS_MEMORY);
    assert_false(tarn__file_exists("lost"));
  }
  for (uint64_t n = 1;; n += n < 60 ? 1 : 17) {
    tarn__memory_fail_after(n);
    tarn_status status = tarn_checkpoint_export_bert("lost_folder", "lost", TARN_BERT_FORMAT_BERT);
    tarn__memory_fail_after(0);
    if (status == TARN_STATUS_OK) break;
    assert_int_equal(status, TARN_STATUS_MEMORY);
  }
}

static int open_all(void **state) { return open_with_bytes(state, true); }

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(logits),
                                     cmocka_unit_test(on_the_shadow),
                                     cmocka_unit_test(there_and_back),
                                     cmocka_unit_test(encoder_alone),
                                     cmocka_unit_test(classes_have_names),
                                     cmocka_unit_test(classifiers_with_relu),
                                     cmocka_unit_test(own_models),
                                     cmocka_unit_test(other_models_are_refused),
                                     cmocka_unit_test(wrong_tensors),
                                     cmocka_unit_test(wrong_configs),
                                     cmocka_unit_test(failing_memory)};
  return cmocka_run_group_tests(tests, open_all, sandbox_close);
}
