// tarn encode: the tokens of lines of text, to look at a vocabulary or to feed another program.
#include <stdio.h>
#include <stdlib.h>

#include "cli.h"
#include "commands.h"
#include "tarn/vocab.h"

static const cli_command command = {.name = "encode",
                                    .arguments = "< TEXT",
                                    .summary = "Print the tokens of each line of text, separated by spaces.",
                                    .text = "Reads standard input. Invalid UTF-8 is replaced as in tarn prepare."};

static void print_tokens(const tarn_vocab *vocab, const tarn_vocab_ids *ids, bool as_ids) {
  for (size_t i = 0; i < ids->count; i++) {
    if (i) putchar(' ');
    if (as_ids)
      printf("%d", ids->data[i]);
    else
      fputs(tarn_vocab_piece(vocab, ids->data[i]), stdout);
  }
  putchar('\n');
}

static tarn_status encode_lines(const tarn_vocab *vocab, bool as_ids) {
  tarn_vocab_ids ids = {0};
  char *line = NULL;
  size_t capacity = 0;
  tarn_status status = TARN_STATUS_OK;
  ssize_t length;
  while (status == TARN_STATUS_OK && !ferror(stdout) && (length = getline(&line, &capacity, stdin)) >= 0) {
    while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r')) length--;
    status = tarn_vocab_encode(vocab, &ids, line, (size_t)length);
    if (status == TARN_STATUS_OK) print_tokens(vocab, &ids, as_ids);
  }
  free(line);
  tarn_vocab_ids_close(&ids);
  return status;
}

int cmd_encode(int argc, char **argv) {
  const char *path = NULL;
  bool as_ids = false;
  cli_list none = {0};
  const cli_option options[] = {{"vocab", CLI_TEXT, &path, "FILE", "the vocabulary", 0, 0},
                                {"ids", CLI_FLAG, &as_ids, NULL, "print numbers in place of pieces", 0, 0},
                                {0}};
  int code = cli_parse(&command, options, argc, argv, &none, 0, 0);
  cli_list_free(&none);
  if (code >= 0) return code;
  if (!path) return cli_usage(&command, "--vocab is missing");
  tarn_vocab *vocab = NULL;
  tarn_status status = tarn_vocab_open(&vocab, path);
  if (status == TARN_STATUS_OK) status = encode_lines(vocab, as_ids);
  tarn_vocab_close(&vocab);
  return status == TARN_STATUS_OK ? CLI_OK : cli_report(&command, status);
}
