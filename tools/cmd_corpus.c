// tarn corpus: writes the embedded German-English corpus.
#include "cli.h"
#include "commands.h"
#include "json_output.h"
#include "progress_show.h"
#include "tarn/lab/corpus.h"

static const cli_command COMMAND = {"corpus", "", "Write a small German-English corpus that a grammar generates.",
                                    "Writes train.de, train.en, valid.de, valid.en, test.de and test.en. All sentences "
                                    "are distinct, so that the three\n"
                                    "do not overlap. Equal options give equal files."};

int cmd_corpus(int argc, char **argv) {
  tarn_corpus_options options;
  tarn_corpus_default(&options);
  int64_t seed = (int64_t)options.seed;
  bool json = false;
  cli_list none = {0};
  const cli_option table[] = {
      {"output", CLI_TEXT, &options.output, "DIR", "folder for the files; needed", 0, 0},
      {"seed", CLI_INT, &seed, "N", "seed of the generator", 0, 0},
      {"sentences", CLI_INT, &options.sentences, "N", "pairs for training", 1, 1000000},
      {"held-out", CLI_INT, &options.held_out, "N", "pairs each for validation and test", 0, 100000},
      {"json", CLI_FLAG, &json, NULL, "print what was made as JSON", 0, 0},
      PROGRESS_OPTIONS,
      {0}};
  int code = cli_parse(&COMMAND, table, argc, argv, &none, 0, 0);
  cli_list_free(&none);
  if (code < 0 && !options.output) code = cli_usage(&COMMAND, "--output is missing");
  if (code >= 0) return code;
  options.seed = (uint64_t)seed;
  tarn_status status = tarn_corpus_write(&options);
  if (status != TARN_STATUS_OK) return cli_report(&COMMAND, status);
  return json ? json_output_made(&COMMAND, options.output, NULL, NULL) : CLI_OK;
}
