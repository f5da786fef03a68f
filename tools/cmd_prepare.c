// tarn prepare: turns parallel text, monolingual text, labelled sentences, or images into a shard.
#include <stdio.h>

#include "cli.h"
#include "commands.h"
#include "images_output.h"
#include "json_output.h"
#include "labelled_output.h"
#include "limit_options.h"
#include "prepare_output.h"
#include "progress_show.h"
#include "table_options.h"
#include "tarn/data.h"

static const cli_command COMMAND = {
    "prepare", "", "Turn parallel text, one text, sentences with labels, or images into a shard.",
    "Writes PREFIX.tarn. Source and target are text files with one sentence a line and the same number of lines;\n"
    "a text has one sentence a line. Pairs with an empty side are left out and counted.\n"
    "--stream N makes windows of N tokens of a text, over its line ends, which are tokens too; nothing is left out.\n"
    "--pack N puts whole sentences of a document into rows of up to N tokens; an empty line ends a document.\n"
    "A table has one labelled sentence a line, its fields separated by tabs, and quotes are text; or by commas or\n"
    "semicolons, and a field with such a mark stands in quotes. --text, --pair and --labels name columns: by a word\n"
    "of its first line, or by a number from 1.\n"
    "--images names an IDX file, whose labels are in that of --labels, or a folder with a subfolder of PNG files for\n"
    "each class, or, of a table, the column of the paths of PNG files, from its own folder on."};

// Options that only some kinds of shards have.
typedef struct given {
  int64_t min_tokens, max_tokens, threads;     // CLI_NO_INT: not given
  const char *overlong, *memory, *shard_size;  // NULL: not given
  const char *delimiter, *decimal;             // of a table
} given;

static int take_given(tarn_prepare_options *o, const given *g) {
  static const char *const names[] = {"truncate", "drop", "refuse"};
  if (g->min_tokens != CLI_NO_INT) o->min_tokens = g->min_tokens;
  // A sentence that fits into a row is not too long.
  if (o->pack > o->max_tokens) o->max_tokens = o->pack;
  if (g->max_tokens != CLI_NO_INT) o->max_tokens = g->max_tokens;
  if (g->threads != CLI_NO_INT) o->threads = (int)g->threads;
  if (g->memory) {
    const int wrong = bytes_option_read(&COMMAND, &o->memory, "memory", g->memory, TARN_PREPARE_LEAST_MEMORY);
    if (wrong >= 0) return wrong;
  }
  if (g->shard_size) {
    const int wrong =
        bytes_option_read(&COMMAND, &o->shard_bytes, "shard-size", g->shard_size, TARN_PREPARE_LEAST_SHARD);
    if (wrong >= 0) return wrong;
  }
  if (!g->overlong) return -1;
  int place;
  const int code = cli_word(&COMMAND, &place, "--overlong", g->overlong, names, 3);
  o->overlong = (tarn_prepare_overlong)place;
  return code;
}

// Checks of a table's options before the table is read.
static int check_table(const tarn_prepare_options *o, const tarn_labelled_options *l, const given *g) {
  if (!l->table)
    return cli_usage(&COMMAND,
                     "--labels, --pair, --labels-from, --numbers, --per-word, --header, --delimiter and "
                     "--decimal need --table");
  const char *other = o->source                     ? "source"
                      : o->target                   ? "target"
                      : o->target_vocab             ? "target-vocab"
                      : g->min_tokens != CLI_NO_INT ? "min-tokens"
                      : g->threads != CLI_NO_INT    ? "threads"
                      : g->memory                   ? "memory"
                      : g->shard_size               ? "shard-size"
                      : o->stream                   ? "stream"
                      : o->pack                     ? "pack"
                                                    : NULL;
  if (other) return cli_usage(&COMMAND, "a table has no --%s", other);
  const char *missing = !o->vocab ? "vocab" : !l->label ? "labels" : !o->text ? "text" : !o->output ? "output" : NULL;
  return missing ? cli_usage(&COMMAND, "--%s is missing", missing) : -1;
}

// Images have pixels, so that only the options of labels are left.
static int check_images(const tarn_prepare_options *o, const tarn_labelled_options *l, const given *g) {
  const char *other = o->vocab                      ? "vocab"
                      : o->source                   ? "source"
                      : o->target                   ? "target"
                      : o->target_vocab             ? "target-vocab"
                      : o->text                     ? "text"
                      : l->pair                     ? "pair"
                      : l->numbers                  ? "numbers"
                      : l->per_word                 ? "per-word"
                      : g->min_tokens != CLI_NO_INT ? "min-tokens"
                      : g->max_tokens != CLI_NO_INT ? "max-tokens"
                      : g->threads != CLI_NO_INT    ? "threads"
                      : g->overlong                 ? "overlong"
                      : g->memory                   ? "memory"
                      : g->shard_size               ? "shard-size"
                      : g->decimal                  ? "decimal"
                      : o->stream                   ? "stream"
                      : o->pack                     ? "pack"
                      : o->strict                   ? "strict"
                                                    : NULL;
  if (other) return cli_usage(&COMMAND, "images have no --%s", other);
  if (!l->table && (l->header || g->delimiter)) return cli_usage(&COMMAND, "--header and --delimiter need --table");
  if (!o->output) return cli_usage(&COMMAND, "--output is missing");
  return -1;
}

static int run_images(const tarn_prepare_options *o, const tarn_labelled_options *l, tarn_images_options *images,
                      const given *g, bool json) {
  int code = check_images(o, l, g);
  if (code < 0) code = table_options_delimiter(&COMMAND, &images->delimiter, g->delimiter);
  if (code >= 0) return code;
  images->labels = l->label;
  images->table = l->table;
  images->labels_from = l->labels_from;
  images->header = l->header;
  images->output = o->output;
  return prepare_images(&COMMAND, images, json);
}

static bool is_labelled(const tarn_labelled_options *l, const given *g) {
  return l->table || l->label || l->pair || l->labels_from || l->numbers || l->per_word || l->header || g->delimiter ||
         g->decimal;
}

static int run_table(const tarn_prepare_options *o, tarn_labelled_options *l, const given *g, bool json) {
  int code = table_options_delimiter(&COMMAND, &l->delimiter, g->delimiter);
  if (code < 0) code = table_options_decimal(&COMMAND, &l->decimal, g->decimal);
  if (code >= 0) return code;
  l->vocab = o->vocab;
  l->text = o->text;
  l->output = o->output;
  l->strict = o->strict;
  l->max_tokens = o->max_tokens;
  l->overlong = o->overlong;
  return prepare_labels(&COMMAND, l, json);
}

// The windows of a stream drop nothing and truncate nothing.
static int check_stream(const given *g) {
  const char *other = g->min_tokens != CLI_NO_INT   ? "min-tokens"
                      : g->max_tokens != CLI_NO_INT ? "max-tokens"
                      : g->overlong                 ? "overlong"
                                                    : NULL;
  return other ? cli_usage(&COMMAND, "a stream has no --%s: its windows leave nothing out", other) : -1;
}

static int check(const tarn_prepare_options *o, const given *g) {
  if (o->text && (o->source || o->target)) return cli_usage(&COMMAND, "give either --text, or --source and --target");
  if ((o->stream || o->pack) && !o->text)
    return cli_usage(&COMMAND, "--%s is for a text (--text)", o->stream ? "stream" : "pack");
  if (o->stream && o->pack) return cli_usage(&COMMAND, "give either --stream or --pack");
  const char *missing = !o->vocab                ? "vocab"
                        : !o->source && !o->text ? "source (or --text)"
                        : !o->target && !o->text ? "target"
                        : !o->output             ? "output"
                                                 : NULL;
  if (missing) return cli_usage(&COMMAND, "--%s is missing", missing);
  return o->stream ? check_stream(g) : -1;
}

int cmd_prepare(int argc, char **argv) {
  tarn_prepare_options options;
  tarn_prepare_default(&options);
  tarn_labelled_options labelled;
  tarn_labelled_default(&labelled);
  given g = {.min_tokens = CLI_NO_INT, .max_tokens = CLI_NO_INT, .threads = CLI_NO_INT};
  tarn_images_options images;
  tarn_images_default(&images);
  int64_t channels = CLI_NO_INT;
  bool json = false;
  cli_list none = {0};
  const cli_option table[] = {
      {"vocab", CLI_TEXT, &options.vocab, "FILE", "vocabulary of both sides, or of the source; needed", 0, 0},
      {"target-vocab", CLI_TEXT, &options.target_vocab, "FILE", "vocabulary of the target if it has its own", 0, 0},
      {"source", CLI_TEXT, &options.source, "FILE", "source text; needed without --text", 0, 0},
      {"target", CLI_TEXT, &options.target, "FILE", "target text; needed without --text", 0, 0},
      {"text", CLI_TEXT, &options.text, "FILE", "text for a language model, in place of the two; column of a table", 0,
       0},
      {"table", CLI_TEXT, &labelled.table, "FILE", "a table of sentences with labels, in place of texts", 0, 0},
      {"images", CLI_TEXT, &images.images, "PATH",
       "images, in place of texts; or the column of a table with their paths", 0, 0},
      {"channels", CLI_INT, &channels, "N", "make PNG files grey (1) or coloured (3) (default: as the first is)", 1, 3},
      {"labels", CLI_TEXT, &labelled.label, "COLUMN", "column of the table with the labels; or the IDX file of them", 0,
       0},
      {"pair", CLI_TEXT, &labelled.pair, "COLUMN", "column of the table with the second sentences", 0, 0},
      {"labels-from", CLI_TEXT, &labelled.labels_from, "PREFIX", "shard of the training set, for its classes", 0, 0},
      {"numbers", CLI_FLAG, &labelled.numbers, NULL, "the labels are numbers, for regression", 0, 0},
      {"per-word", CLI_FLAG, &labelled.per_word, NULL, "a label for each word of the text, divided as words are", 0, 0},
      {"header", CLI_FLAG, &labelled.header, NULL, "skip the first line although all columns are given as numbers", 0,
       0},
      TABLE_OPTIONS(g),
      {"output", CLI_TEXT, &options.output, "PREFIX", "writes PREFIX.tarn; needed", 0, 0},
      {"strict", CLI_FLAG, &options.strict, NULL, "refuse invalid UTF-8 instead of replacing it by U+FFFD", 0, 0},
      {"min-tokens", CLI_INT, &g.min_tokens, "N", "leave out shorter sentences; with the end of sentence (default 2)",
       2, 1 << 24},
      {"max-tokens", CLI_INT, &g.max_tokens, "N",
       "longest sentence with its end of sentence (default 1024, or N of --pack if that is greater)", 2, 1 << 24},
      {"overlong", CLI_TEXT, &g.overlong, "WHAT", "truncate (default), drop or refuse sentences that are longer", 0, 0},
      {"stream", CLI_INT, &options.stream, "N", "windows of N tokens of the text, over its line ends; 0: sentences", 0,
       1 << 24},
      {"pack", CLI_INT, &options.pack, "N", "whole sentences of a document in rows of up to N tokens; 0: one a row", 0,
       1 << 24},
      {"threads", CLI_INT, &g.threads, "N", "threads; 0 (default): all that the process may use", 0, 1024},
      {"memory", CLI_TEXT, &g.memory, "BYTES",
       "memory to be used, as 256M (default: a quarter of what is available, at most 256M)", 0, 0},
      {"shard-size", CLI_TEXT, &g.shard_size, "BYTES",
       "a larger set is written as several shards of this size, and PREFIX.tarn is their index (default 4G)", 0, 0},
      {"json", CLI_FLAG, &json, NULL, "print the summary as JSON", 0, 0},
      PROGRESS_OPTIONS,
      {0}};
  int code = cli_parse(&COMMAND, table, argc, argv, &none, 0, 0);
  cli_list_free(&none);
  if (code < 0 && channels != CLI_NO_INT && !images.images) code = cli_usage(&COMMAND, "--channels needs --images");
  if (channels != CLI_NO_INT) images.channels = (int)channels;
  if (code < 0 && images.images) return run_images(&options, &labelled, &images, &g, json);
  if (code < 0) code = is_labelled(&labelled, &g) ? check_table(&options, &labelled, &g) : check(&options, &g);
  if (code < 0) code = take_given(&options, &g);
  if (code >= 0) return code;
  if (labelled.table) return run_table(&options, &labelled, &g, json);
  tarn_prepare_result result;
  tarn_status status = tarn_prepare_run(&result, &options);
  if (status != TARN_STATUS_OK) return cli_report(&COMMAND, status);
  if (json) return json_output_print(&COMMAND, stdout, prepare_output_json(&result), JSON_COMPACT);
  prepare_output_print(&result);
  return CLI_OK;
}
