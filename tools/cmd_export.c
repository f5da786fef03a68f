// tarn export: converts a checkpoint for other tools.
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "commands.h"
#include "json_output.h"
#include "limit_options.h"
#include "model_options.h"
#include "progress_show.h"
#include "tarn/checkpoint.h"
#include "tarn/lab/foreign.h"

static const cli_command COMMAND = {
    "export", "RUN|FILE OUTPUT", "Write a checkpoint for other tools.",
    "With --format the output is a folder that transformers or CTranslate2 loads: the configuration, the weights, and\n"
    "the vocabulary's files if the format has them for its kind. Language models are written as gpt2, llama, mistral "
    "or\n"
    "qwen2, masked language models and classifiers with an encoder alone as bert or roberta, translation models as\n"
    "marian or ctranslate2. gguf is a file for llama.cpp, of models that its llama or gpt2 can express.\n"
    "Frozen and shared layers are written as ordinary matrices. A model that the format cannot express is refused.\n\n"
    "With --dense the output holds every parameter in fp32, frozen ones included, under the names that tarn inspect\n"
    "prints; the description of the model is in its metadata. It is a safetensors file, and tarn reads it as well.\n\n"
    "With --precision bf16 the output is a checkpoint whose matrices are stored in bfloat16, about half as large. In\n"
    "bf16 it computes the same bits as the original. With --precision int8 the matrices are stored as 8-bit integers\n"
    "with a scale for each row, about a quarter; it can be used in int8 only, where it computes the same bits as the\n"
    "original. With --precision int4 they are 4-bit integers with a factor for 32 of them, but for tables of\n"
    "vocabularies, which are as with int8; it can be used in int4 only."};

static const char *const FORMATS[] = {"gpt2",    "llama",  "mistral",     "qwen2", "bert",
                                      "roberta", "marian", "ctranslate2", "gguf"};
enum {
  FORMAT_GPT2,
  FORMAT_LLAMA,
  FORMAT_MISTRAL,
  FORMAT_QWEN2,
  FORMAT_BERT,
  FORMAT_ROBERTA,
  FORMAT_MARIAN,
  FORMAT_CTRANSLATE2,
  FORMAT_GGUF,
  FORMAT_COUNT = sizeof FORMATS / sizeof *FORMATS
};

static const char *const PRECISIONS[] = {"bf16", "int8", "int4"};
enum { PRECISION_INT8 = 1, PRECISION_INT4, PRECISION_COUNT = sizeof PRECISIONS / sizeof *PRECISIONS };

static tarn_status export_in(const char *output, const char *path, int precision) {
  if (precision == PRECISION_INT8) return tarn_checkpoint_export_int8(output, path);
  if (precision == PRECISION_INT4) return tarn_checkpoint_export_int4(output, path);
  return tarn_checkpoint_export_bf16(output, path);
}

static const char *const TYPES[] = {"f32", "f16", "q8_0"};  // in the order of tarn_gguf_type
enum { TYPE_COUNT = sizeof TYPES / sizeof *TYPES };

static tarn_status export_as(const char *folder, const char *path, int format, int type) {
  if (format == FORMAT_GGUF) return tarn_checkpoint_export_gguf(folder, path, (tarn_gguf_type)type);
  if (format == FORMAT_GPT2) return tarn_checkpoint_export_gpt2(folder, path);
  if (format == FORMAT_LLAMA) return tarn_checkpoint_export_llama(folder, path, TARN_LLAMA_FORMAT_LLAMA);
  if (format == FORMAT_MISTRAL) return tarn_checkpoint_export_llama(folder, path, TARN_LLAMA_FORMAT_MISTRAL);
  if (format == FORMAT_QWEN2) return tarn_checkpoint_export_llama(folder, path, TARN_LLAMA_FORMAT_QWEN2);
  if (format == FORMAT_MARIAN) return tarn_checkpoint_export_marian(folder, path);
  if (format == FORMAT_CTRANSLATE2) return tarn_checkpoint_export_ctranslate2(folder, path);
  return tarn_checkpoint_export_bert(folder, path,
                                     format == FORMAT_BERT ? TARN_BERT_FORMAT_BERT : TARN_BERT_FORMAT_ROBERTA);
}

int cmd_export(int argc, char **argv) {
  bool dense = false;
  const char *format = NULL;
  const char *precision = NULL;
  const char *type = NULL;
  const char *which = NULL;
  bool json = false;
  cli_list files = {0};
  limit_options limits = {0};
  const cli_option table[] = {
      {"dense", CLI_FLAG, &dense, NULL, "a checkpoint with frozen parameters as values", 0, 0},
      {"format", CLI_TEXT, &format, "NAME",
       "a folder for transformers: gpt2, llama, mistral, qwen2, bert, roberta or marian; or for CTranslate2: "
       "ctranslate2; or a file for llama.cpp: gguf",
       0, 0},
      {"type", CLI_TEXT, &type, "NAME", "of the matrices of gguf: f32 (the default), f16 or q8_0", 0, 0},
      {"precision", CLI_TEXT, &precision, "NAME",
       "a checkpoint of half the size, with its matrices in bf16, a quarter, in int8, or less, in int4", 0, 0},
      CHECKPOINT_OPTION(which),
      LIMIT_OPTIONS(limits),
      {"json", CLI_FLAG, &json, NULL, "print what was made as JSON", 0, 0},
      PROGRESS_OPTIONS,
      {0}};
  int code = cli_parse(&COMMAND, table, argc, argv, &files, 2, 2);
  if (code < 0) code = limit_options_set(&COMMAND, &limits);
  if (code < 0 && dense + !!format + !!precision != 1)
    code = cli_usage(&COMMAND, "give one of --dense, --format and --precision");
  int place = 0, number = 0;
  if (code < 0 && format) code = cli_word(&COMMAND, &place, "--format", format, FORMATS, FORMAT_COUNT);
  if (code < 0 && type && (!format || place != FORMAT_GGUF))
    code = cli_usage(&COMMAND, "--type goes with --format gguf");
  if (code < 0 && type) code = cli_word(&COMMAND, &number, "--type", type, TYPES, TYPE_COUNT);
  if (code < 0 && precision) code = cli_word(&COMMAND, &place, "--precision", precision, PRECISIONS, PRECISION_COUNT);
  tarn_checkpoint_found found = {0};
  if (code < 0) code = model_options_find(&COMMAND, &found, files.items[0], which);
  if (code < 0) {
    tarn_status status = dense       ? tarn_checkpoint_export(files.items[1], found.path)
                         : precision ? export_in(files.items[1], found.path, place)
                                     : export_as(files.items[1], found.path, place, number);
    code = status == TARN_STATUS_OK ? CLI_OK : cli_report(&COMMAND, status);
    if (code == CLI_OK && json) code = json_output_made(&COMMAND, files.items[1], "checkpoint", found.path);
  }
  model_options_done(&COMMAND, &found, code, false);
  cli_list_free(&files);
  return code;
}
