// tarn test: scores a run on a test set.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "commands.h"
#include "json_memory.h"
#include "json_output.h"
#include "lm_output.h"
#include "model_options.h"
#include "progress_show.h"
#include "shared_ranks.h"
#include "tarn/lab/sweep.h"
#include "tarn/measure.h"

static const cli_command COMMAND = {
    "test", "RUN", "Score a run's checkpoint on a test set.",
    "Writes RUN/test.hyp, one detokenized translation a line, and RUN/test.json with BLEU and chrF. Case and "
    "tokenizer\n"
    "of BLEU are those of valid.lowercase and valid.tokenize. Of a language model, --blimp DIR scores minimal pairs\n"
    "(see tarn blimp) and writes its answers into RUN/test.pairs and their accuracy into RUN/test.json. Of a "
    "classifier,\n"
    "--labelled PREFIX takes a shard with labels (see tarn prepare) and writes its measures into RUN/test.json. Of a\n"
    "language model, --text FILE scores a text as tarn score does, line by line, or as one stream with --stride, and\n"
    "writes bits a character and a byte into RUN/test.json."};

static void print_labels(const tarn_testset_result *r) {
  const tarn_classify_test *test = &r->labels;
  for (int i = 0; i < test->measure_count; i++) {
    const tarn_classify_measure *m = &test->measures[i];
    printf("%s %.4f (95 %%: %.4f .. %.4f)\n", m->measure->name, m->value, m->low, m->high);
  }
  printf("%s", CLI_COUNT(test->rows, "row"));
  if (test->words) printf(", %s", CLI_COUNT(test->words, "word"));
  printf(" in %.1f s, loss %.4f\n", r->seconds, test->loss);
  if (test->left_out) printf("%s left out: longer than model.max_length\n", CLI_COUNT(test->left_out, "row"));
}

static void print_translation(const tarn_testset_result *r) {
  printf("BLEU %.2f (%s)\nchrF %.2f (%s)\n%s in %.1f s, ", r->bleu, r->bleu_signature, r->chrf, r->chrf_signature,
         CLI_COUNT(r->sentences, "sentence"), r->seconds);
  if (r->beam > 0)
    printf("beam %lld\n", (long long)r->beam);
  else if (r->length_beam > 0)
    printf("%s, length beam %lld\n", CLI_COUNT(r->iterations, "iteration"), (long long)r->length_beam);
  else
    printf("at most %s\n", CLI_COUNT(r->iterations, "iteration"));
}

static void print_text(const tarn_lm_total *t, double seconds) {
  printf("%.4f bits a character, %.4f bits a byte, perplexity %.4f\n%s, %s in %.1f s\n", tarn_lm_bits_per_character(t),
         tarn_lm_bits_per_byte(t), tarn_lm_perplexity(t), CLI_COUNT(t->lines, "line"), CLI_COUNT(t->tokens, "token"),
         seconds);
  lm_print_changes(t->unknown, t->truncated, "line", t->replaced);
}

static void print_result(const tarn_testset_result *r, const tarn_testset_options *o) {
  if (o->labelled) {
    print_labels(r);
    return;
  }
  if (o->text) {
    print_text(&r->text, r->seconds);
    return;
  }
  if (o->blimp)
    printf("BLiMP %.2f %% (95 %%: %.2f .. %.2f)\n%s in %.1f s\n", r->blimp, r->blimp_low, r->blimp_high,
           CLI_COUNT(r->pairs, "pair"), r->seconds);
  else
    print_translation(r);
  lm_print_changes(r->unknown, r->truncated, "sentence", r->replaced);
  lm_print_equal(r->equal);
}

// Prints RUN/test.json, which was just written.
static int print_json(const char *run) {
  char path[4096];
  json_error_t error;
  bool ended = false;
  snprintf(path, sizeof path, "%s/test.json", run);
  errno = 0;
  FILE *file = fopen(path, "r");
  json_t *object = file ? json_memory_read_file(file, 0, &error, &ended) : NULL;
  const int code = errno;
  if (file) fclose(file);
  if (ended) return cli_no_memory(&COMMAND);
  if (!object) {
    fprintf(stderr, "tarn test: %s: cannot read what was written: %s\n", path, file ? error.text : strerror(code));
    return CLI_FAILURE;
  }
  return json_output_print(&COMMAND, stdout, object, JSON_COMPACT);
}

int cmd_test(int argc, char **argv) {
  tarn_testset_options options;
  tarn_testset_default(&options);
  int64_t beam = CLI_NO_INT;
  bool json = false;
  const char *comm = NULL;
  model_options model = {.precision = "fp32"};
  cli_list runs = {0};
  const cli_option table[] = {
      {"source", CLI_TEXT, &options.source, "FILE", "text to translate, one sentence a line", 0, 0},
      {"reference", CLI_TEXT, &options.reference, "FILE", "its translation, one sentence a line", 0, 0},
      {"blimp", CLI_TEXT, &options.blimp, "DIR", "minimal pairs, in place of a source and a reference", 0, 0},
      {"labelled", CLI_TEXT, &options.labelled, "PREFIX", "shard with labels, in place of a source and a reference", 0,
       0},
      {"text", CLI_TEXT, &options.text, "FILE", "text for a language model, in place of a source and a reference", 0,
       0},
      {"window", CLI_INT, &options.window, "N", "with --stride: tokens of a window; 0: model.max_length", 0, 10000000},
      {"stride", CLI_INT, &options.stride, "N", "tokens by which a window advances; 0: score line by line", 0,
       10000000},
      {"beam", CLI_INT, &beam, "N", "hypotheses kept, 1 for greedy; 0 (the default): the run's translate.beam", 0,
       1024},
      MODEL_PRECISION_OPTION(model),
      {"overlong", CLI_TEXT, &model.overlong, "WHAT",
       "with --blimp and --text: truncate or refuse (the default) lines that the model cannot take whole", 0, 0},
      MODEL_RUN_OPTIONS(model),
      RANKS_OPTION(comm),
      {"json", CLI_FLAG, &json, NULL, "print JSON, as it is written into RUN/test.json", 0, 0},
      PROGRESS_OPTION,
      {"quiet", CLI_FLAG, &progress_wanted.quiet, NULL, "print nothing but failures", 0, 0},
      LIMIT_OPTIONS(model.limits),
      {0}};
  cli_together(&comm);
  int code = cli_parse(&COMMAND, table, argc, argv, &runs, 1, 1);
  const int other = (options.blimp != NULL) + (options.labelled != NULL) + (options.text != NULL);
  if (code < 0 && (other > 1 || (other ? options.source || options.reference : !options.source || !options.reference)))
    code = cli_usage(&COMMAND,
                     "either --source FILE and --reference FILE are needed, or --blimp DIR, or --labelled PREFIX, or "
                     "--text FILE");
  if (code < 0 && (options.window || options.stride) && !options.text)
    code = cli_usage(&COMMAND, "--window and --stride are for --text");
  if (code < 0 && options.window && !options.stride) code = cli_usage(&COMMAND, "--window needs --stride");
  if (code < 0 && options.text && beam != CLI_NO_INT)
    code = cli_usage(&COMMAND, "--text scores a text without a search, so it takes no --beam");
  if (code < 0 && options.labelled && beam != CLI_NO_INT)
    code = cli_usage(&COMMAND, "--labelled predicts labels without a search, so it takes no --beam");
  if (code < 0 && options.blimp && beam != CLI_NO_INT)
    code = cli_usage(&COMMAND, "--blimp scores sentences without a search, so it takes no --beam");
  if (code < 0 && model.overlong && !options.blimp && !options.text)
    code = cli_usage(&COMMAND, "--overlong is for --blimp and --text; sources are always cut to what the model takes");
  if (code < 0 && model.overlong && options.stride)
    code = cli_usage(&COMMAND, "--stride leaves nothing out that --overlong could truncate");
  if (!model.overlong) model.overlong = "refuse";
  if (code < 0) code = model_options_set(&COMMAND, &model, &options.precision, &options.overlong, &options.threads);
  if (code < 0) code = shared_ranks_open(&COMMAND, comm);
  if (code < 0) code = model_options_find(&COMMAND, &model.found, runs.items[0], model.checkpoint);
  if (code < 0) {
    tarn_testset_result result;
    options.checkpoint = model.found.path;
    options.run = runs.items[0];
    options.ranks = shared_ranks();
    if (beam != CLI_NO_INT) options.beam = beam;
    tarn_status status = tarn_testset_run(&result, &options);
    code = status == TARN_STATUS_OK ? CLI_OK : cli_report(&COMMAND, status);
    if (code == CLI_OK && json && !shared_ranks_help()) code = print_json(options.run);
    if (code == CLI_OK && !json && !progress_wanted.quiet) print_result(&result, &options);
  }
  const bool helps = shared_ranks_help();
  code = shared_ranks_end(&COMMAND, code);
  model_options_done(&COMMAND, &model.found, code, helps || progress_wanted.quiet);
  cli_list_free(&runs);
  return code;
}
