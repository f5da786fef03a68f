// tarn decode: turns lines of tokens into text, the inverse of tarn encode.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "commands.h"
#include "json_output.h"
#include "progress_show.h"
#include "tarn/vocab.h"
#include "text_output.h"

static const cli_command COMMAND = {.name = "decode",
                                    .arguments = "< TOKENS",
                                    .summary = "Print the text of lines of tokens, as tarn encode prints them.",
                                    .text =
                                        "Reads standard input: pieces, or with --ids their numbers, separated by "
                                        "blanks. Line ends within a text become\n"
                                        "blanks."};

typedef struct piece {
  const char *text;
  int32_t id;
} piece;

typedef struct decoder {
  tarn_vocab *vocab;
  piece *pieces;  // sorted by text; NULL: lines have token ids
  int32_t size;
  tarn_vocab_ids ids;  // allocated here, not by the library
  tarn_vocab_text text;
  int64_t line;
  bool json;
} decoder;

// Equal pieces, possible in a damaged vocabulary, are sorted by id.
static int by_text(const void *a, const void *b) {
  const piece *x = a, *y = b;
  const int order = strcmp(x->text, y->text);
  return order ? order : (x->id > y->id) - (x->id < y->id);
}

static int only_text(const void *a, const void *b) {
  return strcmp(((const piece *)a)->text, ((const piece *)b)->text);
}

static int list_pieces(decoder *d) {
  d->pieces = calloc((size_t)d->size, sizeof *d->pieces);
  if (!d->pieces) return cli_no_memory(&COMMAND);
  for (int32_t i = 0; i < d->size; i++) d->pieces[i] = (piece){tarn_vocab_piece(d->vocab, i), i};
  qsort(d->pieces, (size_t)d->size, sizeof *d->pieces, by_text);
  return -1;
}

// -1, or the exit code for a word that is not a token.
static int find(const decoder *d, int32_t *id, const char *word) {
  if (d->pieces) {
    const piece wanted = {word, 0};
    const piece *found = bsearch(&wanted, d->pieces, (size_t)d->size, sizeof wanted, only_text);
    if (found) *id = found->id;
    if (found) return -1;
    fprintf(stderr, "tarn decode: line %" PRId64 ": \"%.80s\" is no piece of the vocabulary\n", d->line, word);
    return CLI_FAILURE;
  }
  char *end;
  errno = 0;
  const long long number = strtoll(word, &end, 10);
  *id = (int32_t)number;
  if (!errno && !*end && number >= 0 && number < d->size) return -1;
  fprintf(stderr, "tarn decode: line %" PRId64 ": \"%.80s\" is no token from 0 to %" PRId32 "\n", d->line, word,
          d->size - 1);
  return CLI_FAILURE;
}

static int print_json(const decoder *d) {
  char *text = strndup(d->text.data ? d->text.data : "", d->text.length);
  json_t *object = json_pack("{s:I, s:o}", "line", (json_int_t)d->line, "text", json_output_text(text));
  if (!text) json_decref(object);
  int code = json_output_print(&COMMAND, stdout, text ? object : NULL, JSON_COMPACT);
  free(text);
  return code;
}

// -1 to continue, or an exit code.
static int decode_line(decoder *d, char *line, text_output *to) {
  static const char blanks[] = " \t\r\n";
  int code = -1;
  size_t words = 0;
  for (const char *c = line; *c; c++) words += strchr(blanks, *c) != NULL;
  int32_t *ids = calloc(words + 1, sizeof *ids);
  size_t count = 0;
  char *rest;
  if (!ids) return cli_no_memory(&COMMAND);
  for (const char *word = strtok_r(line, blanks, &rest); word && code < 0; word = strtok_r(NULL, blanks, &rest))
    code = find(d, &ids[count++], word);
  if (code < 0) {
    tarn_status status = tarn_vocab_decode(d->vocab, &d->text, ids, count);
    if (status != TARN_STATUS_OK) code = cli_report(&COMMAND, status);
  }
  if (code < 0 && d->json) {
    int printed = print_json(d);
    if (printed != CLI_OK) code = printed;
  } else if (code < 0) {
    text_output_line(to, d->text.data, d->text.length);
    putc('\n', to->file);
  }
  if (code < 0) {
    if (ferror(to->file)) code = CLI_OK;  // main() reports the write error on standard output, and fails
  }
  free(ids);
  return code;
}

static int decode_all(decoder *d) {
  text_output to;
  char *line = NULL;
  size_t capacity = 0;
  int code = text_output_open(&COMMAND, &to, NULL);
  if (code != CLI_OK) return code;
  progress_own work = {.what = "decoding", .unit = "lines"};
  code = -1;
  errno = 0;
  for (ssize_t length; code < 0 && (length = getline(&line, &capacity, stdin)) >= 0;) {
    progress_own_at(&work, (double)d->line++);
    if (memchr(line, 0, (size_t)length)) {
      fprintf(stderr, "tarn decode: standard input:%" PRId64 ": a zero byte, which no text in UTF-8 has\n", d->line);
      code = CLI_FAILURE;
    } else {
      code = decode_line(d, line, &to);
    }
  }
  progress_own_end(&work);
  if (code < 0 && !feof(stdin)) {
    fprintf(stderr, "tarn decode: standard input: cannot read: %s\n", strerror(errno));
    code = CLI_FAILURE;
  }
  free(line);
  return code < 0 ? CLI_OK : code;
}

static int decode(const char *path, bool ids, bool json) {
  decoder d = {.json = json};
  tarn_status status = tarn_vocab_open(&d.vocab, path);
  if (status != TARN_STATUS_OK) return cli_report(&COMMAND, status);
  d.size = tarn_vocab_size(d.vocab);
  int code = ids ? -1 : list_pieces(&d);
  if (code < 0) code = decode_all(&d);
  free(d.pieces);
  tarn_vocab_text_close(&d.text);
  tarn_vocab_close(&d.vocab);
  return code;
}

int cmd_decode(int argc, char **argv) {
  const char *path = NULL;
  bool ids = false;
  bool json = false;
  cli_list none = {0};
  const cli_option options[] = {{"vocab", CLI_TEXT, &path, "FILE", "the vocabulary; needed", 0, 0},
                                {"ids", CLI_FLAG, &ids, NULL, "read numbers in place of pieces", 0, 0},
                                {"json", CLI_FLAG, &json, NULL, "print JSON, one object a line", 0, 0},
                                PROGRESS_OPTIONS,
                                {0}};
  int code = cli_parse(&COMMAND, options, argc, argv, &none, 0, 0);
  cli_list_free(&none);
  if (code >= 0) return code;
  if (!path) return cli_usage(&COMMAND, "--vocab is missing");
  return decode(path, ids, json);
}
