// The verbs of models that predict labels, such as tarn classify: labels of sentences, or of their words.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "json_output.h"
#include "model_options.h"
#include "progress_line.h"
#include "progress_show.h"
#include "shared_ranks.h"
#include "tarn/images.h"
#include "text_output.h"

// The verb run by this process.
static cli_command command;
static char command_text[1024];

// Help text of a verb in addition to its summary.
static void name_command(const tarn_verb *verb) {
  if (verb->images) {
    snprintf(
        command_text, sizeof command_text,
        "RUN is a run directory or a checkpoint of %s; PATH is an image in PNG, a folder of such images, or an IDX\n"
        "file. A line of the output has the likeliest label of an image and its probability, with --top K those of\n"
        "the K likeliest, separated by tabs; in front of them the file, if it is in PNG.",
        verb->models);
    command = (cli_command){verb->word, "RUN PATH", verb->summary, command_text};
    return;
  }
  snprintf(command_text, sizeof command_text, "RUN is a run directory or a checkpoint of %s; FILE has %s", verb->models,
           verb->words
               ? "one sentence\n"
                 "a line, whose words white space divides (default: standard input). A line of the output has a\n"
                 "word, a tab and its label, and an empty line ends a sentence; with --labels a line has the labels\n"
                 "of a sentence. A word behind what the model takes has the label _."
               : "one sentence\n"
                 "a line, or two that a tab separates (default: standard input). A line of the output has the\n"
                 "likeliest label and its probability, with --top K those of the K likeliest, separated by tabs; of\n"
                 "regression a number.");
  command = (cli_command){verb->word, "RUN [FILE]", verb->summary, command_text};
}

typedef struct output {
  const tarn_classifier *classifier;
  int64_t top, window, lines, truncated, replaced;
  bool labels;   // for words: print the labels only
  bool answers;  // flush each line
  bool json;
  json_t *words, *found, *probabilities;  // of the current line
  int code;                               // of a line that could not be created
} output;

// --- labels of words

static const char *label_of(const output *out, const tarn_classify_result *result) {
  return result->order ? tarn_classifier_label(out->classifier, result->order[0]) : "_";
}

static void note_word(output *out, const tarn_classify_result *result) {
  if (result->word == 0) {
    out->words = json_array();
    out->found = json_array();
    out->probabilities = json_array();
  }
  const bool known = result->probabilities != NULL;
  json_array_append_new(out->words, json_stringn(result->text, result->length));
  json_array_append_new(out->found, known ? json_output_text(label_of(out, result)) : json_null());
  json_array_append_new(out->probabilities,
                        known ? json_output_real(result->probabilities[result->order[0]]) : json_null());
}

// Prints the line with the words collected so far.
static int print_words_json(output *out, int64_t number, const tarn_classify_result *result) {
  const size_t words = (size_t)result->words;
  const bool whole = json_array_size(out->words) == words && json_array_size(out->found) == words &&
                     json_array_size(out->probabilities) == words;
  json_t *object = json_pack("{s:I, s:b, s:b, s:o, s:o, s:o}", "line", (json_int_t)number, "truncated",
                             (int)result->truncated, "replaced", (int)result->replaced, "words", out->words, "labels",
                             out->found, "probabilities", out->probabilities);
  if (!whole) json_decref(object);
  return json_output_print(&command, stdout, whole ? object : NULL, JSON_COMPACT);
}

static void print_word(output *out, int64_t number, const tarn_classify_result *result) {
  const bool last = result->word + 1 == result->words;
  if (out->json) {
    note_word(out, result);
    if (last) out->code = print_words_json(out, number, result);
  } else if (out->labels) {
    printf("%s%c", label_of(out, result), last ? '\n' : ' ');
  } else {
    printf("%.*s\t%s\n%s", (int)result->length, result->text, label_of(out, result), last ? "\n" : "");
  }
}

// --- labels of lines

static int print_json(const output *out, int64_t number, const tarn_classify_result *result) {
  json_t *object = json_pack("{s:I, s:b, s:b}", "line", (json_int_t)number, "truncated", (int)result->truncated,
                             "replaced", (int)result->replaced);
  bool failed = !object;
  if (!failed && result->text)
    failed = json_object_set_new(object, "file", json_stringn(result->text, result->length)) != 0;
  if (!failed && !result->probabilities)
    failed = json_object_set_new(object, "number", json_output_real(result->number)) != 0;
  if (!failed && result->probabilities) {
    json_t *labels = json_object();
    for (int64_t k = 0; k < out->top; k++) {
      const int32_t label = result->order[k];
      failed |= json_object_set_new(labels, tarn_classifier_label(out->classifier, label),
                                    json_output_real(result->probabilities[label])) != 0;
    }
    failed |= json_object_set_new(object, "label",
                                  json_output_text(tarn_classifier_label(out->classifier, result->order[0]))) != 0;
    failed |= json_object_set_new(object, "probabilities", labels) != 0;
  }
  if (failed) json_decref(object);
  return json_output_print(&command, stdout, failed ? NULL : object, JSON_COMPACT);
}

static void print_text(const output *out, const tarn_classify_result *result) {
  if (!result->probabilities) {
    printf("%.6g\n", result->number);
    return;
  }
  if (result->text) printf("%.*s\t", (int)result->length, result->text);
  for (int64_t k = 0; k < out->top; k++) {
    const int32_t label = result->order[k];
    printf("%s%s\t%.6f", k ? "\t" : "", tarn_classifier_label(out->classifier, label), result->probabilities[label]);
  }
  putchar('\n');
}

static tarn_status print_line(void *user, int64_t number, const tarn_classify_result *result) {
  output *out = user;
  progress_line_make_way();
  if (result->word == 0) {
    out->lines++;
    out->truncated += result->truncated;
    out->replaced += result->replaced;
  }
  if (result->words > 0)
    print_word(out, number, result);
  else if (out->json)
    out->code = print_json(out, number, result);
  else
    print_text(out, result);
  // A pipe gets every window as soon as it is done, and a reader that may be waiting every line.
  const bool ends = result->word + 1 >= result->words;
  if (ends && (out->answers || number % out->window == 0)) fflush(stdout);
  return out->code != CLI_OK || ferror(stdout) ? TARN_STATUS_IO : TARN_STATUS_OK;
}

static void print_notes(const output *out) {
  if (out->truncated)
    fprintf(stderr, "tarn %s: %s cut to what the model takes\n", command.name, CLI_COUNT(out->truncated, "line"));
  if (out->replaced)
    fprintf(stderr, "tarn %s: invalid UTF-8 replaced in %s\n", command.name, CLI_COUNT(out->replaced, "line"));
}

static int run(const char *path, const char *input, const tarn_classify_options *options, output *out) {
  tarn_classifier *classifier;
  tarn_status status = tarn_classifier_open(&classifier, path, options);
  if (status != TARN_STATUS_OK) return cli_report(&command, status);
  out->classifier = classifier;
  const tarn_verb *verb = tarn_classifier_verb(classifier);
  out->answers = !verb->images && text_output_answers(&command, input);
  if (out->top > tarn_classifier_classes(classifier)) out->top = tarn_classifier_classes(classifier);
  status = verb->images ? tarn_classifier_images(classifier, input, print_line, out)
                        : tarn_classifier_file(classifier, input, print_line, out);
  int code = out->code;
  const bool none = out->lines == 0 && !shared_ranks_help();
  if (text_output_lines_end(&command, &code, status, none, input)) print_notes(out);
  tarn_classifier_close(&classifier);
  return code;
}

static const tarn_verb *find_verb(const char *word) {
  const tarn_verb *verb;
  for (int i = 0; (verb = tarn_verb_at(i)) != NULL; i++)
    if (strcmp(verb->word, word) == 0) return verb;
  return tarn_verb_at(0);
}

int cmd_label(int argc, char **argv) {
  tarn_classify_options options;
  tarn_classify_default(&options);
  const tarn_verb *verb = find_verb(argv[0]);
  options.verb = verb->word;
  name_command(verb);
  model_options model = {.precision = "auto", .overlong = "truncate"};
  output out = {.top = 1};
  const char *comm = NULL;
  cli_list paths = {0};
  const cli_option top = {"top", CLI_INT, &out.top, "K", "labels that are printed; more than there are: all", 1, 10000};
  const cli_option labels = {"labels", CLI_FLAG, &out.labels, NULL, "print the labels alone, a line a sentence", 0, 0};
  const cli_option table[] = {
      verb->words ? labels : top,
      {"json", CLI_FLAG, &out.json, NULL, "print JSON, one object a line", 0, 0},
      MODEL_PRECISION_OPTION(model),
      MODEL_OVERLONG_OPTION(model, "lines"),
      {"max-tokens", CLI_INT, &options.max_tokens, "N", "tokens computed together", 1, 1 << 24},
      {"window", CLI_INT, &options.window, "N", "lines read at a time", 1, 1000000},
      {"strict", CLI_FLAG, &options.strict, NULL, "refuse invalid UTF-8 instead of replacing it by U+FFFD", 0, 0},
      MODEL_RUN_OPTIONS(model),
      RANKS_OPTION(comm),
      LIMIT_OPTIONS(model.limits),
      PROGRESS_OPTIONS,
      {0}};
  const cli_option of_images[] = {
      top,
      {"json", CLI_FLAG, &out.json, NULL, "print JSON, one object a line", 0, 0},
      MODEL_PRECISION_OPTION(model),
      {"max-tokens", CLI_INT, &options.max_tokens, "N", "patches and class tokens computed together", 1, 1 << 24},
      MODEL_RUN_OPTIONS(model),
      LIMIT_OPTIONS(model.limits),
      PROGRESS_OPTIONS,
      {0}};
  cli_together(&comm);
  int code = cli_parse(&command, verb->images ? of_images : table, argc, argv, &paths, verb->images ? 2 : 1, 2);
  if (code < 0) code = model_options_set(&command, &model, &options.precision, &options.overlong, &options.threads);
  if (code < 0) code = shared_ranks_open(&command, comm);
  if (code < 0) code = model_options_find(&command, &model.found, paths.items[0], model.checkpoint);
  if (code < 0) {
    out.window = options.window;
    options.ranks = shared_ranks();
    code = run(model.found.path, paths.count > 1 ? paths.items[1] : "-", &options, &out);
  }
  const bool helps = shared_ranks_help();
  code = shared_ranks_end(&command, code);
  model_options_done(&command, &model.found, code, helps);
  cli_list_free(&paths);
  return code;
}
