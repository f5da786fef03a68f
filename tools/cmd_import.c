// tarn import, and tarn import-bert, import-gpt2 and import-marian for one kind: convert a model of another program to
// a checkpoint of tarn.
#include <stdio.h>

#include "cli.h"
#include "commands.h"
#include "json_output.h"
#include "progress_show.h"
#include "tarn/checkpoint.h"
#include "tarn/lab/foreign.h"

static const cli_command ANY = {
    "import", "PATH", "Make a checkpoint of a model of another program.",
    "PATH is a folder of transformers with config.json, model.safetensors (or the files that\n"
    "model.safetensors.index.json names) and the vocabulary's files; config.json says which model it is: gpt2, llama,\n"
    "mistral, qwen2, bert, roberta or marian. Or PATH is a folder of Marian's own files (OPUS-MT): decoder.yml, which\n"
    "names the weights (.npz) and the vocabularies (.yml), source.spm and target.spm. Or PATH is a folder of fairseq:\n"
    "model.safetensors, config.json and dict.LANGUAGE.txt of both sides; or of PyTorch's nn.Transformer, with\n"
    "tokens.SIDE.txt, SIDE.spm or both for the sides source and target (docs/translation.md). Or PATH is a GGUF\n"
    "file of llama.cpp (llama, qwen2, gpt2; F32, F16, BF16, Q8_0). Pickles, such as pytorch_model.bin and files .pt,\n"
    "are refused.\n"
    "tarn export --format is the way back."};

static const cli_command BERT = {
    "import-bert", "FOLDER", "Make a checkpoint of a BERT or RoBERTa model from transformers.",
    "FOLDER holds config.json and model.safetensors as save_pretrained() writes them, and the vocabulary as vocab.txt\n"
    "(BERT) or vocab.json and merges.txt (RoBERTa). The checkpoint is a masked language model, or a classifier where "
    "the\n"
    "file is one of sentences. Outputs of other tasks are left out; where there is none of these two, that of a "
    "masked\n"
    "language model is drawn anew, with a warning. tarn export --format bert or roberta is the way back."};

static const cli_command GPT2 = {
    "import-gpt2", "FOLDER", "Make a checkpoint of a GPT-2 model from transformers.",
    "FOLDER holds config.json and model.safetensors as save_pretrained() writes them, and GPT-2's vocabulary as\n"
    "vocab.json and merges.txt. Every tensor must be there with its shape, and no other; masks of attention and a "
    "second\n"
    "copy of tied embeddings are passed over. tarn export --format gpt2 is the way back."};

static const cli_command MARIAN = {
    "import-marian", "FOLDER", "Make a checkpoint of a Marian translation model (OPUS-MT), of transformers or Marian.",
    "FOLDER holds config.json and model.safetensors as save_pretrained() writes them, the vocabulary as vocab.json,\n"
    "source.spm and target.spm, and optionally generation_config.json. The settings of beam, length penalty, lengths\n"
    "and early stopping become the checkpoint's defaults, so that tarn translate gives what generate() gives. Or "
    "FOLDER\n"
    "holds Marian's own files: decoder.yml, the weights and vocabularies that it names, source.spm and target.spm\n"
    "(docs/translation.md)."};

static int import(const cli_command *command, int argc, char **argv,
                  tarn_status (*make)(const char *path, const char *folder, const char *vocab)) {
  const char *output = NULL;
  const char *vocab = NULL;
  bool json = false;
  cli_list folders = {0};
  const cli_option table[] = {
      {"output", CLI_TEXT, &output, "FILE", "where to write the checkpoint; needed", 0, 0},
      {"vocab", CLI_TEXT, &vocab, "FILE", "vocabulary, for a folder that has none or another one", 0, 0},
      {"json", CLI_FLAG, &json, NULL, "print what was made as JSON", 0, 0},
      PROGRESS_OPTIONS,
      {0}};
  int code = cli_parse(command, table, argc, argv, &folders, 1, 1);
  if (code < 0 && !output) code = cli_usage(command, "--output is missing");
  if (code < 0) {
    tarn_status status = make(output, folders.items[0], vocab);
    code = status == TARN_STATUS_OK ? CLI_OK : cli_report(command, status);
    if (code == CLI_OK && json) code = json_output_made(command, output, "folder", folders.items[0]);
  }
  cli_list_free(&folders);
  return code;
}

int cmd_import_bert(int argc, char **argv) { return import(&BERT, argc, argv, tarn_checkpoint_import_bert); }

int cmd_import_gpt2(int argc, char **argv) { return import(&GPT2, argc, argv, tarn_checkpoint_import_gpt2); }

// A command with vocabularies of two sides.
static int import_sides(const cli_command *command, int argc, char **argv,
                        tarn_status (*make)(const char *path, const char *folder, const char *vocab,
                                            const char *target_vocab)) {
  const char *output = NULL;
  const char *vocab = NULL;
  const char *target_vocab = NULL;
  bool json = false;
  cli_list folders = {0};
  const cli_option table[] = {
      {"output", CLI_TEXT, &output, "FILE", "where to write the checkpoint; needed", 0, 0},
      {"vocab", CLI_TEXT, &vocab, "FILE", "vocabulary of both sides, for a folder that has none or another one", 0, 0},
      {"target-vocab", CLI_TEXT, &target_vocab, "FILE", "vocabulary of the target, if it is another one", 0, 0},
      {"json", CLI_FLAG, &json, NULL, "print what was made as JSON", 0, 0},
      PROGRESS_OPTIONS,
      {0}};
  int code = cli_parse(command, table, argc, argv, &folders, 1, 1);
  if (code < 0 && !output) code = cli_usage(command, "--output is missing");
  if (code < 0) {
    tarn_status status = make(output, folders.items[0], vocab, target_vocab);
    code = status == TARN_STATUS_OK ? CLI_OK : cli_report(command, status);
    if (code == CLI_OK && json) code = json_output_made(command, output, "folder", folders.items[0]);
  }
  cli_list_free(&folders);
  return code;
}

int cmd_import_marian(int argc, char **argv) {
  return import_sides(&MARIAN, argc, argv, tarn_checkpoint_import_marian);
}

int cmd_import(int argc, char **argv) { return import_sides(&ANY, argc, argv, tarn_checkpoint_import); }
