// tarn encode: prints the tokens of lines of text, for inspecting a vocabulary or as input of another program.
#include <stdio.h>
#include <stdlib.h>

#include "cli.h"
#include "commands.h"
#include "json_output.h"
#include "progress_show.h"
#include "tarn/vocab.h"
#include "text_notes.h"

static const cli_command command = {
    .name = "encode",
    .arguments = "< TEXT",
    .summary = "Print the tokens of each line of text, separated by spaces.",
    .text = "Reads standard input. Invalid UTF-8 is replaced and counted as in tarn prepare."};

typedef struct output {
  const tarn_vocab *vocab;
  bool as_ids, json;
  int64_t line;
  int code;     // of a line that could not be created
  int64_t cut;  // lines encoded in parts
} output;

static int print_json(const output *out, const tarn_vocab_ids *ids) {
  json_t *numbers = json_array();
  json_t *pieces = json_array();
  int failed = 0;
  for (size_t i = 0; i < ids->count; i++) {
    failed |= json_array_append_new(numbers, json_integer(ids->data[i])) != 0;
    failed |= json_array_append_new(pieces, json_output_text(tarn_vocab_piece(out->vocab, ids->data[i]))) != 0;
  }
  json_t *object = json_pack("{s:I, s:o, s:o}", "line", (json_int_t)out->line, "ids", numbers, "pieces", pieces);
  if (failed) json_decref(object);
  return json_output_print(&command, stdout, failed ? NULL : object, JSON_COMPACT);
}

// Stops at the first line that cannot be written.
static tarn_status print_tokens(void *user, const tarn_vocab_ids *ids) {
  output *out = user;
  out->cut += ids->parts > 1;
  out->line++;
  if (out->json) {
    out->code = print_json(out, ids);
    return out->code != CLI_OK || ferror(stdout) ? TARN_STATUS_IO : TARN_STATUS_OK;
  }
  for (size_t i = 0; i < ids->count; i++) {
    if (i) putchar(' ');
    if (out->as_ids)
      printf("%d", ids->data[i]);
    else
      fputs(tarn_vocab_piece(out->vocab, ids->data[i]), stdout);
  }
  putchar('\n');
  return ferror(stdout) ? TARN_STATUS_IO : TARN_STATUS_OK;
}

static int encode(const char *path, bool as_ids, bool json, bool strict) {
  tarn_vocab *vocab = NULL;
  int64_t replaced = 0;
  tarn_status status = tarn_vocab_open(&vocab, path);
  output out = {.vocab = vocab, .as_ids = as_ids, .json = json};
  if (status == TARN_STATUS_OK) status = tarn_vocab_encode_file(vocab, &replaced, "-", strict, print_tokens, &out);
  tarn_vocab_close(&vocab);
  if (out.code != CLI_OK) return out.code;
  if (ferror(stdout)) return CLI_OK;  // main() reports the write error on standard output, and fails
  if (status != TARN_STATUS_OK) return cli_report(&command, status);
  if (replaced) fprintf(stderr, "invalid UTF-8 replaced in: %s\n", CLI_COUNT(replaced, "line"));
  text_notes_cut(out.cut);
  return CLI_OK;
}

int cmd_encode(int argc, char **argv) {
  const char *path = NULL;
  bool as_ids = false;
  bool json = false;
  bool strict = false;
  cli_list none = {0};
  const cli_option options[] = {
      {"vocab", CLI_TEXT, &path, "FILE", "the vocabulary; needed", 0, 0},
      {"ids", CLI_FLAG, &as_ids, NULL, "print numbers in place of pieces", 0, 0},
      {"strict", CLI_FLAG, &strict, NULL, "refuse invalid UTF-8 instead of replacing it by U+FFFD", 0, 0},
      {"json", CLI_FLAG, &json, NULL, "print JSON, one object a line, with pieces and numbers", 0, 0},
      PROGRESS_OPTIONS,
      {0}};
  int code = cli_parse(&command, options, argc, argv, &none, 0, 0);
  cli_list_free(&none);
  if (code >= 0) return code;
  if (!path) return cli_usage(&command, "--vocab is missing");
  return encode(path, as_ids, json, strict);
}
