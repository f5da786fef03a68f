// The functions of checkpoint.h, with the checkpoints of one tiny training and with models of other programs.
#include "tarn/checkpoint.h"
#include "tarn/lab/foreign.h"

#include "api.h"
#include "golden/import_check.h"
#include "tiny_run.h"

#define BEST "run/checkpoint_best.safetensors"
#define LAST "run/checkpoint_last.safetensors"
#define GPT2 GOLDEN "gpt2_model/tied"
#define LLAMA GOLDEN "llama_model/grouped"
#define BERT GOLDEN "bert_model/bert"
#define MARIAN GOLDEN "marian_model/swish"

static void byte_vocab(const char *path, bool mask_symbols) {
  tarn_vocab_options options;
  tarn_vocab_default(&options);
  options.type = TARN_VOCAB_TYPE_BYTE;
  options.mask_symbols = mask_symbols;
  works(tarn_vocab_train(path, NULL, 0, &options));
}

// One byte of the values of the file is another one; and half of the file.
static void damage(const char *path) {
  char *bytes;
  size_t size;
  works(tarn__file_read(path, &bytes, &size));
  sandbox_write("cut", bytes, size / 2);
  bytes[size - 5] ^= 1;
  sandbox_write("flipped", bytes, size);
  tarn__free(bytes);
}

static int open_all(void **state) {
  if (tiny_open(state) != 0) return -1;
  works(tiny_train("tiny.yaml", "run", NULL, 0, NULL, NULL, NULL));
  byte_vocab("bytes", false);
  byte_vocab("mask-bytes", true);
  works(tarn_checkpoint_import_gpt2("language-model", GPT2, "bytes"));
  works(tarn_checkpoint_import_bert("masked-model", BERT, "mask-bytes"));
  sandbox_write("text", "no checkpoint\n", 14);
  assert_int_equal(mkdir("empty", 0700), 0);
  damage(BEST);
  return 0;
}

// What every function that reads a checkpoint makes of a path that has none.
static void refuses_paths(tarn_status (*read)(const char *output, const char *path)) {
  static const struct {
    const char *path;
    tarn_status status;
    const char *line;
  } bad[] = {{"missing", TARN_STATUS_IO, "missing: cannot read: No such file"},
             {"text", TARN_STATUS_DATA, "text: this is text"},
             {"empty", TARN_STATUS_DATA, "empty: this is a folder without a run"},
             {"vocab", TARN_STATUS_DATA, "vocab: this is a vocabulary"},
             {"valid", TARN_STATUS_IO, "valid.tarn is a shard"},
             {"cut", TARN_STATUS_DATA, "cut"},
             {"flipped", TARN_STATUS_DATA, "flipped: the file is damaged"}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) refuses(read("never", bad[i].path), bad[i].status, bad[i].line);
  assert_int_not_equal(access("never", F_OK), 0);
}

static void use_tarn_checkpoint_choice_name(void) {
  assert_string_equal(tarn_checkpoint_choice_name(TARN_CHECKPOINT_CHOICE_AUTO), "auto");
  assert_string_equal(tarn_checkpoint_choice_name(TARN_CHECKPOINT_CHOICE_AVERAGE), "average");
  assert_null(tarn_checkpoint_choice_name(TARN_CHECKPOINT_CHOICE_COUNT));
  assert_null(tarn_checkpoint_choice_name((tarn_checkpoint_choice)-1));
}

static void refuses_find(const char *path, tarn_checkpoint_choice choice, tarn_status status, const char *line) {
  tarn_checkpoint_found found = {.path = (char *)"text"};
  refuses(tarn_checkpoint_find(&found, path, choice), status, line);
  assert_null(found.path);
}

static void use_tarn_checkpoint_find(void) {
  tarn_checkpoint_found found;
  works(tarn_checkpoint_find(&found, "run", TARN_CHECKPOINT_CHOICE_LAST));
  assert_string_equal(found.path, LAST);
  assert_true(found.in_run);
  tarn_checkpoint_found_close(&found);
  works(tarn_checkpoint_find(&found, "run", TARN_CHECKPOINT_CHOICE_AUTO));
  assert_string_not_equal(found.reason, "");
  tarn_checkpoint_found_close(&found);
  works(tarn_checkpoint_find(&found, BEST, TARN_CHECKPOINT_CHOICE_AUTO));
  assert_string_equal(found.path, BEST);
  assert_false(found.in_run);
  tarn_checkpoint_found_close(&found);
  refuses_find("run", TARN_CHECKPOINT_CHOICE_COUNT, TARN_STATUS_USAGE, "a choice of checkpoint that does not exist");
  refuses_find(BEST, TARN_CHECKPOINT_CHOICE_LAST, TARN_STATUS_USAGE, "so there is no last checkpoint to choose");
  refuses_find("missing", TARN_CHECKPOINT_CHOICE_BEST, TARN_STATUS_IO, "missing: cannot read");
  refuses_find("empty", TARN_CHECKPOINT_CHOICE_AUTO, TARN_STATUS_DATA, "empty: this is a folder without a run");
  refuses_find("empty", TARN_CHECKPOINT_CHOICE_BEST, TARN_STATUS_DATA, "empty: this is a folder without a run");
  assert_int_equal(mkdir("only-last", 0700), 0);
  copy_file(LAST, "only-last/checkpoint_last.safetensors");
  refuses_find("only-last", TARN_CHECKPOINT_CHOICE_BEST, TARN_STATUS_DATA, "in this run; there is: last");
}

static void use_tarn_checkpoint_found_close(void) {
  tarn_checkpoint_found found = {0};
  tarn_checkpoint_found_close(&found);
  works(tarn_checkpoint_find(&found, "run", TARN_CHECKPOINT_CHOICE_BEST));
  tarn_checkpoint_found_close(&found);
  assert_null(found.path);
  tarn_checkpoint_found_close(&found);
}

static tarn_status open_info(const char *output, const char *path) {
  tarn_checkpoint_info *info;
  (void)output;
  const tarn_status status = tarn_checkpoint_info_open(&info, path);
  if (status != TARN_STATUS_OK) assert_null(info);
  tarn_checkpoint_info_close(&info);
  return status;
}

static void use_tarn_checkpoint_info_open(void) {
  tarn_checkpoint_info *info;
  works(tarn_checkpoint_info_open(&info, BEST));
  assert_string_equal(info->path, BEST);
  assert_string_equal(info->precision, "fp32");
  assert_int_equal(info->source_vocab, TINY_VOCAB);
  assert_true(info->joint_vocab);
  assert_in_range(info->param_count, 10, 1000);
  assert_true(info->trained > 0 && info->frozen > 0 && info->shared_layers > 0);
  tarn_checkpoint_info_close(&info);
  works(tarn_checkpoint_info_open(&info, LAST));
  assert_string_equal(info->kind, "training");
  assert_int_equal(info->update, 12);
  tarn_checkpoint_info_close(&info);
  refuses_paths(open_info);
}

static void use_tarn_checkpoint_info_close(void) {
  tarn_checkpoint_info *info = NULL;
  tarn_checkpoint_info_close(&info);
  assert_null(info);
  works(tarn_checkpoint_info_open(&info, BEST));
  tarn_checkpoint_info_close(&info);
  assert_null(info);
  tarn_checkpoint_info_close(&info);
}

// The first parameter that is trained, or that is drawn from a recipe.
static size_t param_of(const tarn_checkpoint_info *info, bool recipe) {
  for (size_t i = 0; i < info->param_count; i++)
    if (recipe ? info->params[i].recipe != NULL : info->params[i].trained) return i;
  fail_msg("there is no such parameter");
  return 0;
}

static void use_tarn_checkpoint_info_mapped(void) {
  tarn_checkpoint_info *info;
  works(tarn_checkpoint_info_open(&info, BEST));
  assert_non_null(tarn_checkpoint_info_mapped(info, param_of(info, false)));
  assert_null(tarn_checkpoint_info_mapped(info, param_of(info, true)));
  assert_null(tarn_checkpoint_info_mapped(info, info->param_count));
  assert_null(tarn_checkpoint_info_mapped(info, SIZE_MAX));
  tarn_checkpoint_info_close(&info);
}

// Widened or scaled, what a file has stored is what the model computes with.
static void same_values(const tarn_checkpoint_info *info, size_t param, const tarn_checkpoint_stored *stored) {
  static float values[1 << 16];
  const tarn_checkpoint_param *p = &info->params[param];
  assert_in_range(p->rows * p->cols, 1, 1 << 16);
  works(tarn_checkpoint_info_values(info, param, values));
  for (int64_t i = 0; i < p->rows * p->cols; i++) {
    float found = 0;
    if (strcmp(stored->precision, "int8") == 0) {
      found = stored->scales[i / p->cols] * (float)((const int8_t *)stored->values)[i];
    } else if (strcmp(stored->precision, "bf16") == 0) {
      const uint32_t bits = (uint32_t)((const uint16_t *)stored->values)[i] << 16;
      memcpy(&found, &bits, sizeof found);
    } else {
      found = ((const float *)stored->values)[i];
    }
    assert_memory_equal(&found, &values[i], sizeof found);
  }
}

static void use_tarn_checkpoint_info_stored(void) {
  static const char *const files[] = {BEST, "half-stored", "quarter-stored"};
  static const char *const precisions[] = {"fp32", "bf16", "int8"};
  works(tarn_checkpoint_export_bf16("half-stored", "run"));
  works(tarn_checkpoint_export_int8("quarter-stored", "run"));
  for (int f = 0; f < 3; f++) {
    tarn_checkpoint_info *info;
    tarn_checkpoint_stored stored;
    int found = 0;
    works(tarn_checkpoint_info_open(&info, files[f]));
    for (size_t i = 0; i < info->param_count; i++) {
      assert_int_equal(tarn_checkpoint_info_stored(info, &stored, i), info->params[i].recipe == NULL);
      if (!stored.values) continue;
      same_values(info, i, &stored);
      found += strcmp(stored.precision, precisions[f]) == 0;
      assert_int_equal(stored.scales != NULL, strcmp(stored.precision, "int8") == 0);
    }
    assert_true(found > 0);
    assert_false(tarn_checkpoint_info_stored(info, &stored, info->param_count));
    assert_null(stored.values);
    tarn_checkpoint_info_close(&info);
  }
}

static void use_tarn_checkpoint_info_values(void) {
  static float values[1 << 16];
  tarn_checkpoint_info *info;
  works(tarn_checkpoint_info_open(&info, BEST));
  for (int recipe = 0; recipe < 2; recipe++) {
    const size_t i = param_of(info, recipe);
    const size_t count = (size_t)(info->params[i].rows * info->params[i].cols);
    assert_in_range(count, 1, 1 << 16);
    values[count - 1] = -77;
    works(tarn_checkpoint_info_values(info, i, values));
    assert_true(values[count - 1] != -77);
    if (!recipe) assert_memory_equal(values, tarn_checkpoint_info_mapped(info, i), count * sizeof *values);
  }
  refuses(tarn_checkpoint_info_values(info, info->param_count, values), TARN_STATUS_USAGE,
          "there is no parameter number");
  refuses(tarn_checkpoint_info_values(info, SIZE_MAX, values), TARN_STATUS_USAGE, "there is no parameter number");
  tarn_checkpoint_info_close(&info);
}

static tarn_status open_vocabs(const char *output, const char *path) {
  tarn_vocab *source, *target;
  (void)output;
  const tarn_status status = tarn_checkpoint_vocabs(&source, &target, path);
  if (status != TARN_STATUS_OK) assert_true(!source && !target);
  tarn_vocab_close(&source);
  tarn_vocab_close(&target);
  return status;
}

static void use_tarn_checkpoint_vocabs(void) {
  tarn_vocab *source, *target;
  works(tarn_checkpoint_vocabs(&source, &target, "run"));
  assert_int_equal(tarn_vocab_size(source), TINY_VOCAB);
  assert_null(target);
  tarn_vocab_close(&source);
  refuses_paths(open_vocabs);
}

static tarn_status average_one(const char *output, const char *path) {
  return tarn_checkpoint_average(output, &path, 1);
}

static void use_tarn_checkpoint_average(void) {
  static const char *const same[] = {BEST, LAST}, *const others[] = {BEST, "language-model"};
  tarn_checkpoint_info *info;
  works(tarn_checkpoint_average("mean", same, 2));
  works(tarn_checkpoint_info_open(&info, "mean"));
  assert_string_equal(info->kind, "average");
  assert_non_null(info->averaged);
  tarn_checkpoint_info_close(&info);
  refuses(tarn_checkpoint_average("never", NULL, 0), TARN_STATUS_USAGE, "there is no checkpoint to average");
  refuses(tarn_checkpoint_average("never", others, 2), TARN_STATUS_DATA, "cannot be averaged");
  refuses(tarn_checkpoint_average("missing/never", same, 2), TARN_STATUS_IO, "missing/never");
  refuses_paths(average_one);
}

static tarn_status prune_half(const char *output, const char *path) {
  return tarn_checkpoint_prune(output, path, &(tarn_prune){.rate = 0.5});
}

static void use_tarn_checkpoint_prune(void) {
  tarn_checkpoint_info *info;
  works(tarn_checkpoint_prune("pruned", "run", &(tarn_prune){.encoder_layers_to_keep = "1,2"}));
  works(tarn_checkpoint_info_open(&info, "pruned"));
  assert_non_null(strstr(info->model, "layers_to_keep"));
  tarn_checkpoint_info_close(&info);
  static const struct {
    tarn_prune prune;
    const char *line;
  } bad[] = {{{.encoder_layers_to_keep = "5"}, "there is no layer 5: the encoder has layers 1 to 4"},
             {{.encoder_layers_to_keep = "0"}, "there is no layer 0"},
             {{.encoder_layers_to_keep = ""}, "layers to keep are depths from 1 with commas"},
             {{.decoder_layers_to_keep = "1,"}, "not \"1,\""},
             {{.decoder_layers_to_keep = "99999999999"}, "there is no layer 99999999999"},
             {{.rate = 0.6}, "the rate of pruning is 0 to 0.5, not 0.6"},
             {{.rate = -1}, "not -1"}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    refuses(tarn_checkpoint_prune("never", "run", &bad[i].prune), TARN_STATUS_USAGE, bad[i].line);
  refuses(tarn_checkpoint_prune("never", "pruned", &(tarn_prune){.encoder_layers_to_keep = "3"}), TARN_STATUS_USAGE,
          "layer 3 of the encoder was left out before");
  refuses_paths(prune_half);
}

static void use_tarn_checkpoint_export(void) {
  tarn_checkpoint_info *info;
  works(tarn_checkpoint_export("dense", "run"));
  works(tarn_checkpoint_info_open(&info, "dense"));
  assert_string_equal(info->kind, "dense");
  assert_true(info->frozen_bytes > 0);
  tarn_checkpoint_info_close(&info);
  refuses(tarn_checkpoint_export("missing/never", "run"), TARN_STATUS_IO, "missing/never");
  refuses_paths(tarn_checkpoint_export);
}

static void use_tarn_checkpoint_export_bf16(void) {
  static const char *const halves[] = {"half", "half"};
  tarn_checkpoint_info *info;
  works(tarn_checkpoint_export_bf16("half", "run"));
  works(tarn_checkpoint_info_open(&info, "half"));
  assert_string_equal(info->precision, "bf16");
  tarn_checkpoint_info_close(&info);
  refuses(tarn_checkpoint_average("never", halves, 2), TARN_STATUS_DATA, "is in bf16; average first");
  refuses(tarn_checkpoint_export_bf16("missing/never", "run"), TARN_STATUS_IO, "missing/never");
  refuses_paths(tarn_checkpoint_export_bf16);
}

static void use_tarn_checkpoint_export_int8(void) {
  tarn_checkpoint_info *info;
  works(tarn_checkpoint_export_int8("quarter", "run"));
  works(tarn_checkpoint_info_open(&info, "quarter"));
  assert_string_equal(info->precision, "int8");
  tarn_checkpoint_info_close(&info);
  refuses(tarn_checkpoint_export("never", "quarter"), TARN_STATUS_DATA, "quarter: it holds int8");
  works(tarn_checkpoint_export_int8("quarter-language", "language-model"));
  refuses(tarn_checkpoint_export_gpt2("never", "quarter-language"), TARN_STATUS_DATA,
          "quarter-language: it holds int8");
  refuses(tarn_checkpoint_export_int8("missing/never", "run"), TARN_STATUS_IO, "missing/never");
  refuses_paths(tarn_checkpoint_export_int8);
}

// A language model of whose matrices only the table of its vocabulary is trained.
static void train_table(const char *run) {
  static const char description[] =
      "model: { d_model: 16, dropout: 0, max_length: 20 }\ndecoder: { layers: R }\n"
      "kinds: { R: { mixer: attention, heads: 2, ffn: 32, frozen: yes } }\n"
      "data: { vocab: vocab, train: sentences }\n"
      "train: { max_updates: 2, lr: 0.01, warmup: 4, max_tokens: 400, threads: 1 }\n";
  make_text_shard("sentences", 60, TINY_VOCAB, 5);
  sandbox_write("table.yaml", description, sizeof description - 1);
  works(tiny_train("table.yaml", run, NULL, 0, NULL, NULL, NULL));
}

static void use_tarn_checkpoint_export_int4(void) {
  tarn_checkpoint_info *info;
  works(tarn_checkpoint_export_int4("eighth", "run"));
  works(tarn_checkpoint_info_open(&info, "eighth"));
  assert_string_equal(info->precision, "int4");
  tarn_checkpoint_info_close(&info);
  refuses(tarn_checkpoint_export("never", "eighth"), TARN_STATUS_DATA, "eighth: it holds int4");
  works(tarn_checkpoint_export_int4("eighth-language", "language-model"));
  refuses(tarn_checkpoint_export_gpt2("never", "eighth-language"), TARN_STATUS_DATA, "eighth-language: it holds int4");
  refuses(tarn_checkpoint_export_int4("missing/never", "run"), TARN_STATUS_IO, "missing/never");
  // A file that said nothing of INT4 would be used in INT8; one that holds the frozen matrices says it.
  train_table("table");
  works(tarn_checkpoint_export_int8("quarter-table", "table"));
  refuses(tarn_checkpoint_export_int4("never", "table"), TARN_STATUS_UNSUPPORTED,
          ": in int4 its file would hold no matrix");
  works(tarn_checkpoint_export("dense-table", "table"));
  works(tarn_checkpoint_export_int4("eighth-table", "dense-table"));
  refuses_paths(tarn_checkpoint_export_int4);
}

// What the imports have in common.
static void refuses_folders(tarn_status (*import)(const char *output, const char *folder)) {
  refuses(import("never", "missing"), TARN_STATUS_IO, "missing");
  refuses(import("never", "empty"), TARN_STATUS_IO, "empty/config.json: cannot read");
  refuses(import("never", "text"), TARN_STATUS_IO, "text");
  refuses(import("never", GOLDEN "wordpiece_toy"), TARN_STATUS_IO, "config.json: cannot read");
  assert_int_not_equal(access("never", F_OK), 0);
}

static tarn_status import_gpt2(const char *output, const char *folder) {
  return tarn_checkpoint_import_gpt2(output, folder, "bytes");
}

static void use_tarn_checkpoint_import_gpt2(void) {
  tarn_checkpoint_info *info;
  works(tarn_checkpoint_info_open(&info, "language-model"));
  assert_int_equal(info->target_vocab, 259);
  tarn_checkpoint_info_close(&info);
  refuses(tarn_checkpoint_import_gpt2("never", GPT2, NULL), TARN_STATUS_DATA, "it has no vocabulary");
  refuses(tarn_checkpoint_import_gpt2("never", GPT2, "vocab"), TARN_STATUS_DATA, "has 60 tokens, but");
  refuses(tarn_checkpoint_import_gpt2("never", GPT2, "missing"), TARN_STATUS_IO, "missing");
  refuses(tarn_checkpoint_import_gpt2("never", BERT, "mask-bytes"), TARN_STATUS_DATA,
          "\"model_type\" is bert, not gpt2");
  refuses(tarn_checkpoint_import_gpt2("missing/never", GPT2, "bytes"), TARN_STATUS_IO, "missing/never");
  refuses_folders(import_gpt2);
}

static void use_tarn_checkpoint_export_gpt2(void) {
  works(tarn_checkpoint_export_gpt2("as-gpt2", "language-model"));
  works(tarn_checkpoint_import_gpt2("again", "as-gpt2", "bytes"));
  refuses(tarn_checkpoint_export_gpt2("never", "run"), TARN_STATUS_USAGE, "run/");
  refuses(tarn_checkpoint_export_gpt2("text/never", "language-model"), TARN_STATUS_IO, "text");
  refuses_paths(tarn_checkpoint_export_gpt2);
}

static tarn_status import_llama(const char *output, const char *folder) {
  return tarn_checkpoint_import_llama(output, folder, "bytes");
}

static void use_tarn_checkpoint_import_llama(void) {
  tarn_checkpoint_info *info;
  works(tarn_checkpoint_import_llama("llama", LLAMA, "bytes"));
  works(tarn_checkpoint_info_open(&info, "llama"));
  assert_non_null(strstr(info->config, "kv_heads: 2"));
  tarn_checkpoint_info_close(&info);
  refuses(tarn_checkpoint_import_llama("never", LLAMA, NULL), TARN_STATUS_DATA, "it has no vocabulary");
  refuses(tarn_checkpoint_import_llama("never", LLAMA, "vocab"), TARN_STATUS_DATA, "has 60 tokens, but");
  refuses(tarn_checkpoint_import_llama("never", LLAMA, "missing"), TARN_STATUS_IO, "missing");
  refuses(tarn_checkpoint_import_llama("never", GPT2, "bytes"), TARN_STATUS_DATA, "\"model_type\" is gpt2");
  refuses(tarn_checkpoint_import_llama("missing/never", LLAMA, "bytes"), TARN_STATUS_IO, "missing/never");
  refuses_folders(import_llama);
}

static tarn_status export_llama(const char *folder, const char *path) {
  return tarn_checkpoint_export_llama(folder, path, TARN_LLAMA_FORMAT_LLAMA);
}

static void use_tarn_checkpoint_export_llama(void) {
  works(tarn_checkpoint_import_llama("llama", LLAMA, "bytes"));
  works(tarn_checkpoint_export_llama("as-llama", "llama", TARN_LLAMA_FORMAT_LLAMA));
  works(tarn_checkpoint_import_llama("again", "as-llama", "bytes"));
  refuses(tarn_checkpoint_export_llama("never", "run", TARN_LLAMA_FORMAT_LLAMA), TARN_STATUS_USAGE, "run/");
  refuses(tarn_checkpoint_export_llama("never", "language-model", TARN_LLAMA_FORMAT_QWEN2), TARN_STATUS_USAGE,
          "model.positions is not rotary");
  refuses(tarn_checkpoint_export_llama("never", "llama", (tarn_llama_format)3), TARN_STATUS_USAGE,
          "there is no format 3");
  refuses(tarn_checkpoint_export_llama("text/never", "llama", TARN_LLAMA_FORMAT_LLAMA), TARN_STATUS_IO, "text");
  refuses_paths(export_llama);
}

static void use_tarn_checkpoint_import_gguf(void) {
  works(tarn_checkpoint_import_gguf("from-gguf", GOLDEN "gguf/model.gguf", NULL));
  refuses(tarn_checkpoint_import_gguf("never", GOLDEN "gguf/model.gguf", "vocab"), TARN_STATUS_DATA, "has 60 tokens");
  refuses(tarn_checkpoint_import_gguf("never", "text", NULL), TARN_STATUS_DATA, "text: not a GGUF file");
  refuses(tarn_checkpoint_import_gguf("never", "missing", NULL), TARN_STATUS_IO, "missing");
  refuses(tarn_checkpoint_import_gguf("missing/never", GOLDEN "gguf/model.gguf", NULL), TARN_STATUS_IO,
          "missing/never");
}

static tarn_status export_gguf(const char *output, const char *path) {
  return tarn_checkpoint_export_gguf(output, path, TARN_GGUF_TYPE_F32);
}

static void use_tarn_checkpoint_export_gguf(void) {
  works(tarn_checkpoint_import_gguf("from-gguf", GOLDEN "gguf/model.gguf", NULL));
  works(tarn_checkpoint_export_gguf("as.gguf", "from-gguf", TARN_GGUF_TYPE_Q8_0));
  works(tarn_checkpoint_import("again", "as.gguf", NULL, NULL));
  refuses(tarn_checkpoint_import("never", "as.gguf", NULL, "bytes"), TARN_STATUS_USAGE, "has one vocabulary");
  works(tarn_checkpoint_export_gguf("gpt2.gguf", "language-model", TARN_GGUF_TYPE_F16));
  refuses(tarn_checkpoint_export_gguf("never", "masked-model", TARN_GGUF_TYPE_F32), TARN_STATUS_USAGE, "masked-model");
  refuses(tarn_checkpoint_export_gguf("never", "from-gguf", (tarn_gguf_type)3), TARN_STATUS_USAGE,
          "there is no type 3");
  refuses(tarn_checkpoint_export_gguf("text/never", "from-gguf", TARN_GGUF_TYPE_F32), TARN_STATUS_IO, "text");
  refuses_paths(export_gguf);
}

static tarn_status import_any(const char *output, const char *folder) {
  return tarn_checkpoint_import(output, folder, "bytes", NULL);
}

static void use_tarn_checkpoint_import(void) {
  works(tarn_checkpoint_import("any", GPT2, "bytes", NULL));
  works(tarn_checkpoint_import("any", LLAMA, "bytes", NULL));
  works(tarn_checkpoint_import("any", BERT, "mask-bytes", NULL));
  works(tarn_checkpoint_import("any", MARIAN, NULL, NULL));
  refuses(tarn_checkpoint_import("never", GPT2, "bytes", "bytes"), TARN_STATUS_USAGE, "has one vocabulary");
  refuses(tarn_checkpoint_import("missing/never", GPT2, "bytes", NULL), TARN_STATUS_IO, "missing/never");
  refuses_folders(import_any);
}

static tarn_status import_bert(const char *output, const char *folder) {
  return tarn_checkpoint_import_bert(output, folder, "mask-bytes");
}

static void use_tarn_checkpoint_import_bert(void) {
  tarn_checkpoint_info *info;
  works(tarn_checkpoint_info_open(&info, "masked-model"));
  assert_int_equal(info->target_vocab, 262);
  tarn_checkpoint_info_close(&info);
  refuses(tarn_checkpoint_import_bert("never", BERT, NULL), TARN_STATUS_DATA, "it has no vocabulary");
  refuses(tarn_checkpoint_import_bert("never", BERT, "bytes"), TARN_STATUS_DATA, "bytes");
  refuses(tarn_checkpoint_import_bert("never", GPT2, "bytes"), TARN_STATUS_DATA, "\"model_type\" is gpt2");
  refuses(tarn_checkpoint_import_bert("missing/never", BERT, "mask-bytes"), TARN_STATUS_IO, "missing/never");
  refuses_folders(import_bert);
}

static tarn_status export_bert(const char *folder, const char *path) {
  return tarn_checkpoint_export_bert(folder, path, TARN_BERT_FORMAT_BERT);
}

static void use_tarn_checkpoint_export_bert(void) {
  works(tarn_checkpoint_export_bert("as-bert", "masked-model", TARN_BERT_FORMAT_BERT));
  works(tarn_checkpoint_import_bert("again", "as-bert", "mask-bytes"));
  refuses(tarn_checkpoint_export_bert("never", "run", TARN_BERT_FORMAT_BERT), TARN_STATUS_USAGE, "run/");
  refuses(tarn_checkpoint_export_bert("never", "masked-model", (tarn_bert_format)2), TARN_STATUS_USAGE,
          "there is no format 2");
  refuses(tarn_checkpoint_export_bert("never", "masked-model", (tarn_bert_format)-1), TARN_STATUS_USAGE,
          "there is no format -1");
  refuses(tarn_checkpoint_export_bert("text/never", "masked-model", TARN_BERT_FORMAT_BERT), TARN_STATUS_IO, "text");
  refuses_paths(export_bert);
}

static tarn_status import_marian(const char *output, const char *folder) {
  return tarn_checkpoint_import_marian(output, folder, NULL, NULL);
}

static void use_tarn_checkpoint_import_marian(void) {
  tarn_checkpoint_info *info;
  works(tarn_checkpoint_import_marian("translator", MARIAN, NULL, NULL));
  works(tarn_checkpoint_info_open(&info, "translator"));
  assert_int_equal(info->source_vocab, 155);
  assert_non_null(strstr(info->config, "decoder_start: 154"));
  tarn_checkpoint_info_close(&info);
  refuses(tarn_checkpoint_import_marian("never", MARIAN, "vocab", NULL), TARN_STATUS_DATA, "60 tokens");
  refuses(tarn_checkpoint_import_marian("never", MARIAN, "missing", NULL), TARN_STATUS_IO, "missing");
  refuses(tarn_checkpoint_import_marian("never", GPT2, "bytes", NULL), TARN_STATUS_DATA,
          "\"model_type\" is gpt2, not marian");
  refuses(tarn_checkpoint_import_marian("missing/never", MARIAN, NULL, NULL), TARN_STATUS_IO, "missing/never");
  refuses_folders(import_marian);
}

static void use_tarn_checkpoint_export_marian(void) {
  works(tarn_checkpoint_import_marian("translator", MARIAN, NULL, NULL));
  works(tarn_checkpoint_export_marian("as-marian", "translator"));
  works(tarn_checkpoint_import_marian("again", "as-marian", NULL, NULL));
  refuses(tarn_checkpoint_export_marian("never", "language-model"), TARN_STATUS_USAGE, "language-model: ");
  refuses(tarn_checkpoint_export_marian("text/never", "translator"), TARN_STATUS_IO, "text");
  refuses_paths(tarn_checkpoint_export_marian);
}

static void use_tarn_checkpoint_export_ctranslate2(void) {
  works(tarn_checkpoint_export_ctranslate2("as-ctranslate2", "run"));
  assert_int_equal(access("as-ctranslate2/model.bin", F_OK), 0);
  assert_int_equal(access("as-ctranslate2/shared_vocabulary.json", F_OK), 0);
  refuses(tarn_checkpoint_export_ctranslate2("never", "language-model"), TARN_STATUS_USAGE, "CTranslate2 translates");
  refuses(tarn_checkpoint_export_ctranslate2("text/never", "run"), TARN_STATUS_IO, "text");
  refuses_paths(tarn_checkpoint_export_ctranslate2);
}

int main(void) {
  static const char *const headers[] = {"checkpoint.h", "lab/foreign.h", NULL};
  static const api_use uses[] = {
      USE(tarn_checkpoint_choice_name),   USE(tarn_checkpoint_find),
      USE(tarn_checkpoint_found_close),   USE(tarn_checkpoint_info_open),
      USE(tarn_checkpoint_info_close),    USE(tarn_checkpoint_info_mapped),
      USE(tarn_checkpoint_info_stored),   USE(tarn_checkpoint_info_values),
      USE(tarn_checkpoint_vocabs),        USE(tarn_checkpoint_average),
      USE(tarn_checkpoint_prune),         USE(tarn_checkpoint_export),
      USE(tarn_checkpoint_export_bf16),   USE(tarn_checkpoint_export_int8),
      USE(tarn_checkpoint_export_int4),   USE(tarn_checkpoint_import_gpt2),
      USE(tarn_checkpoint_export_gpt2),   USE(tarn_checkpoint_import_bert),
      USE(tarn_checkpoint_export_bert),   USE(tarn_checkpoint_import_marian),
      USE(tarn_checkpoint_export_marian), USE(tarn_checkpoint_export_ctranslate2),
      USE(tarn_checkpoint_import_llama),  USE(tarn_checkpoint_export_llama),
      USE(tarn_checkpoint_import),        USE(tarn_checkpoint_import_gguf),
      USE(tarn_checkpoint_export_gguf),
  };
  return api_main(headers, uses, sizeof uses / sizeof *uses, open_all, sandbox_close);
}
