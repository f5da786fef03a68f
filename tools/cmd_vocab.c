// tarn vocab: trains a vocabulary.
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "commands.h"
#include "tarn/text.h"
#include "tarn/vocab.h"

static const cli_command COMMAND = {
    "vocab", "FILE...", "Train a vocabulary on text files.",
    "The lines of all files are taken together: give source and target for a joint vocabulary. bpe and unigram are\n"
    "SentencePiece models for raw text; whitespace is a list of words for text that is split already."};

// Returns -1 to go on, as cli_parse() does.
static int parse_type(tarn_vocab_type *type, const char *word) {
  static const char *const names[] = {"bpe", "unigram", "whitespace"};
  for (size_t i = 0; i < 3; i++) {
    if (strcmp(word, names[i]) != 0) continue;
    *type = (tarn_vocab_type)i;
    return -1;
  }
  const char *nearest = tarn_text_nearest(word, names, 3);
  if (nearest) return cli_usage(&COMMAND, "unknown type \"%s\"; did you mean %s?", word, nearest);
  return cli_usage(&COMMAND, "unknown type \"%s\"; there are bpe, unigram and whitespace", word);
}

int cmd_vocab(int argc, char **argv) {
  tarn_vocab_options options;
  tarn_vocab_default(&options);
  const char *type = "bpe";
  const char *output = NULL;
  int64_t threads = options.threads;
  cli_list files = {0};
  const cli_option table[] = {
      {"output", CLI_TEXT, &output, "FILE", "where to write the vocabulary; needed", 0, 0},
      {"type", CLI_TEXT, &type, "TYPE", "bpe, unigram or whitespace", 0, 0},
      {"size", CLI_INT, &options.size, "N", "tokens, with <unk>, <s> and </s>", 4, 1000000},
      {"character-coverage", CLI_REAL, &options.character_coverage, "SHARE",
       "share of the characters that get tokens (bpe, unigram)", 0.9, 1.0},
      {"lowercase", CLI_FLAG, &options.lowercase, NULL, "fold the case of all text", 0, 0},
      {"minimum-count", CLI_INT, &options.minimum_count, "N", "leave out rarer words (whitespace)", 1, 1e15},
      {"sentences", CLI_INT, &options.sentences, "N", "train on a sample of this many lines, 0 for all (bpe, unigram)",
       0, 1e15},
      {"threads", CLI_INT, &threads, "N", "threads of the training; for unigram part of the result", 1, 1024},
      {0}};
  int code = cli_parse(&COMMAND, table, argc, argv, &files, 1, SIZE_MAX);
  if (code < 0) code = output ? parse_type(&options.type, type) : cli_usage(&COMMAND, "--output is missing");
  if (code < 0) {
    options.threads = (int)threads;
    tarn_status status = tarn_vocab_train(output, files.items, files.count, &options);
    code = status == TARN_STATUS_OK ? CLI_OK : cli_report(&COMMAND, status);
  }
  cli_list_free(&files);
  return code;
}
