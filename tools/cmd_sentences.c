// tarn sentences: splits text into sentences, one per line.
#include <inttypes.h>
#include <stdio.h>

#include "cli.h"
#include "commands.h"
#include "json_output.h"
#include "progress_show.h"
#include "tarn/text.h"

static const cli_command COMMAND = {
    "sentences", "FILE...", "Split text into sentences, one a line.",
    "By rules, with lists of abbreviations of the language. No sentence goes over the end of a line, except with\n"
    "--wrapped. tarn prepare --text takes the output, and drops sentences that are too short or too long; with --pack\n"
    "it takes an empty line as the end of a document; --documents writes those."};

// On standard output a summary would be mistaken for a sentence.
static int print_result(FILE *file, const tarn_sentences_result *r, bool json) {
  if (json)
    return json_output_print(
        &COMMAND, file,
        json_pack("{s:I, s:I, s:I, s:I}", "lines", (json_int_t)r->lines, "paragraphs", (json_int_t)r->paragraphs,
                  "sentences", (json_int_t)r->sentences, "replaced", (json_int_t)r->replaced),
        JSON_COMPACT);
  fprintf(file,
          "lines      %10" PRId64 "\nparagraphs %10" PRId64 "\nsentences  %10" PRId64
          "\ninvalid UTF-8 replaced in: %" PRId64 " lines\n",
          r->lines, r->paragraphs, r->sentences, r->replaced);
  return CLI_OK;
}

int cmd_sentences(int argc, char **argv) {
  tarn_sentences_options options;
  tarn_sentences_default(&options);
  const char *output = NULL;
  bool json = false;
  cli_list files = {0};
  const cli_option table[] = {
      {"output", CLI_TEXT, &output, "FILE", "where to write the sentences instead of standard output", 0, 0},
      {"language", CLI_TEXT, &options.language, "LANGUAGE", "en or de", 0, 0},
      {"wrapped", CLI_FLAG, &options.wrapped, NULL, "lines are parts of a paragraph, which ends at an empty line", 0,
       0},
      {"documents", CLI_FLAG, &options.documents, NULL,
       "write an empty line where a document ends: at each empty line of the text and between files", 0, 0},
      {"strict", CLI_FLAG, &options.strict, NULL, "refuse invalid UTF-8 instead of replacing it by U+FFFD", 0, 0},
      {"json", CLI_FLAG, &json, NULL, "print the summary as JSON", 0, 0},
      PROGRESS_OPTIONS,
      {0}};
  int code = cli_parse(&COMMAND, table, argc, argv, &files, 1, SIZE_MAX);
  if (code < 0 && options.documents && options.wrapped)
    code = cli_usage(&COMMAND, "with --wrapped an empty line ends a paragraph, so --documents cannot find documents");
  if (code < 0) {
    tarn_sentences_result result;
    tarn_status status =
        tarn_sentences_write(&result, output ? output : "/dev/stdout", files.items, files.count, &options);
    code = status == TARN_STATUS_OK ? CLI_OK : cli_report(&COMMAND, status);
    if (code == CLI_OK) code = print_result(output ? stdout : stderr, &result, json);
  }
  cli_list_free(&files);
  return code;
}
