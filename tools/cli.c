#include "cli.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "colour.h"
#include "progress_line.h"
#include "tarn/process.h"
#include "tarn/text.h"

enum { MOST_OPTIONS = 64 };  // per command

void cli_list_free(cli_list *list) {
  free(list->items);
  *list = (cli_list){0};
}

static bool list_add(cli_list *list, const char *item) {
  if (list->count == list->capacity) {
    size_t larger = list->capacity ? 2 * list->capacity : 8;
    const char **items = realloc(list->items, larger * sizeof *items);
    if (!items) return false;
    list->items = items;
    list->capacity = larger;
  }
  list->items[list->count++] = item;
  return true;
}

// Prints the prefix of an error message.
static void print_name(const cli_command *command) {
  fprintf(stderr, "%starn %s:%s ", colour_on(stderr, COLOUR_RED), command->name, colour_on(stderr, COLOUR_NONE));
}

static const char *const *together;  // the communicator's name

void cli_together(const char *const *comm) { together = comm; }

static bool (*report_to)(tarn_status status, const char *line);

void cli_report_to(bool (*told)(tarn_status status, const char *line)) { report_to = told; }

enum { LINE = 1024 };

// Whether another process prints the line, which may be changed to that of all.
static bool another_prints(tarn_status status, char line[LINE]) {
  if (report_to) return report_to(status, line);
  if (!together) return false;
  if (tarn_ranks_fail(*together, status, line)) return true;
  snprintf(line, LINE, "%s", tarn_error_message());
  return false;
}

int cli_usage(const cli_command *command, const char *format, ...) {
  char text[LINE];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (another_prints(TARN_STATUS_USAGE, text)) return CLI_USAGE;
  print_name(command);
  fprintf(stderr, "%s (see tarn %s --help)\n", text, command->name);
  return CLI_USAGE;
}

bool cli_reader_gone(void) {
  struct pollfd out = {.fd = STDOUT_FILENO};
  return ferror(stdout) && poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP)) != 0;
}

int cli_report(const cli_command *command, tarn_status status) {
  // If the program itself runs out of memory, the library has no message for it.
  const char *message = *tarn_error_message() ? tarn_error_message() : tarn_status_text(status);
  const int code = status == TARN_STATUS_USAGE ? CLI_USAGE : CLI_FAILURE;
  fflush(stdout);
  if (report_to && report_to(status, message)) return code;
  if (status == TARN_STATUS_IO && cli_reader_gone()) return code;
  progress_line_clear();
  print_name(command);
  fprintf(stderr, "%s\n", message);
  return code;
}

static cli_visitor visit;
static void *visitors;

void cli_visit(cli_visitor visitor, void *user) {
  visit = visitor;
  visitors = user;
}

static void append(char text[CLI_HELP_TEXT], const char *format, ...) __attribute__((format(printf, 2, 3)));
static void append(char text[CLI_HELP_TEXT], const char *format, ...) {
  size_t used = strlen(text);
  va_list args;
  va_start(args, format);
  vsnprintf(text + used, CLI_HELP_TEXT - used, format, args);
  va_end(args);
}

static void append_devices(char text[CLI_HELP_TEXT]) {
  for (size_t i = 0; tarn_device_name(i); i++)
    append(text, "%s%s", i == 0 ? ": " : tarn_device_name(i + 1) ? ", " : " or ", tarn_device_name(i));
  append(text, " (default TARN_DEVICE of the environment, or the first that computes in the precision)");
}

void cli_option_help(char text[CLI_HELP_TEXT], const cli_option *option) {
  text[0] = '\0';
  append(text, "%s", option->help);
  switch (option->type) {
    case CLI_INT:
      if (*(int64_t *)option->value != CLI_NO_INT) append(text, " (default %" PRId64 ")", *(int64_t *)option->value);
      break;
    case CLI_REAL:
      if (!isnan(*(double *)option->value)) append(text, " (default %g)", *(double *)option->value);
      break;
    case CLI_TEXT:
      if (*(const char **)option->value) append(text, " (default %s)", *(const char **)option->value);
      break;
    case CLI_DEVICE:
      append_devices(text);
      break;
    case CLI_FLAG:
    case CLI_LIST:
      break;
  }
}

// A letter stands for the same option in every command that has it.
char cli_letter(const char *name) {
  static const struct {
    char letter;
    const char *name;
  } letters[] = {{'h', "help"}, {'o', "output"}, {'q', "quiet"}, {'s', "set"}, {'t', "threads"}};
  for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
    if (strcmp(letters[i].name, name) == 0) return letters[i].letter;
  return '\0';
}

static void print_option(const char *name, const char *argument, const char *help) {
  char left[64], letter = cli_letter(name);
  snprintf(left, sizeof left, "%c%c%s--%s%s%s", letter ? '-' : ' ', letter ? letter : ' ', letter ? ", " : "  ", name,
           argument ? " " : "", argument ? argument : "");
  printf("  %-30s %s\n", left, help);
}

static void print_help(const cli_command *command, const cli_option *options) {
  const char *bold = colour_on(stdout, COLOUR_BOLD), *end = colour_on(stdout, COLOUR_NONE);
  printf("%susage:%s tarn %s [options]%s%s\n\n%s\n", bold, end, command->name, *command->arguments ? " " : "",
         command->arguments, command->summary);
  if (command->text) printf("\n%s\n", command->text);
  printf("\n%soptions:%s\n", bold, end);
  for (const cli_option *option = options; option->name; option++) {
    char help[CLI_HELP_TEXT];
    cli_option_help(help, option);
    print_option(option->name, option->argument, help);
  }
  print_option("help", NULL, "print this text");
}

// `word` includes its dashes.
static int unknown_option(const cli_command *command, const cli_option *options, const char *word) {
  const char *names[MOST_OPTIONS + 1];
  size_t count = 0;
  char name[128];
  snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
  for (const cli_option *option = options; option->name; option++) names[count++] = option->name;
  names[count++] = "help";
  const bool letter = name[1] != '-' && tarn_text_columns(name, strlen(name), SIZE_MAX, NULL) == 2;
  const char *nearest = letter ? NULL : tarn_text_nearest(name + strspn(name, "-"), names, count);
  if (nearest) return cli_usage(command, "unknown option %s; did you mean --%s?", name, nearest);
  return cli_usage(command, "unknown option %s", name);
}

static bool in_range(const cli_option *option, double value) {
  return (option->minimum == 0 && option->maximum == 0) || (value >= option->minimum && value <= option->maximum);
}

static int take_number(const cli_command *command, const cli_option *option, const char *text) {
  char *end = NULL;
  errno = 0;
  bool whole = option->type == CLI_INT;
  int64_t integer = 0;
  double real = whole ? 0 : strtod(text, &end);
  // Integers out of range are clamped by the reader.
  bool valid = whole ? tarn_text_integer(&integer, text) && integer != INT64_MAX && integer != INT64_MIN
                     : !errno && end != text && !*end && isfinite(real);
  if (whole) real = (double)integer;
  if (!valid)
    return cli_usage(command, "--%s takes %s, not \"%s\"", option->name, whole ? "a whole number" : "a number", text);
  if (!in_range(option, real))
    return cli_usage(command, "--%s takes a number from %.15g to %.15g, not %s", option->name, option->minimum,
                     option->maximum, text);
  if (whole)
    *(int64_t *)option->value = integer;
  else
    *(double *)option->value = real;
  return -1;
}

// A device that is named right and cannot be used here is a failure, not a usage error.
static int take_device(const cli_command *command, const char *name) {
  const tarn_status status = tarn_device_set(name);
  if (status == TARN_STATUS_USAGE) return cli_usage(command, "--device: %s", tarn_error_message());
  if (status != TARN_STATUS_OK) {
    char line[LINE];
    snprintf(line, sizeof line, "%s", tarn_error_message());
    if (another_prints(status, line)) return CLI_FAILURE;
    print_name(command);
    fprintf(stderr, "%s\n", line);
    return CLI_FAILURE;
  }
  return setenv("TARN_DEVICE", name, 1) == 0 ? -1 : cli_no_memory(command);
}

static int take_value(const cli_command *command, const cli_option *option, const char *text) {
  switch (option->type) {
    case CLI_INT:
    case CLI_REAL:
      return take_number(command, option, text);
    case CLI_TEXT:
      *(const char **)option->value = text;
      return -1;
    case CLI_LIST:
      if (!list_add(option->value, text)) return cli_no_memory(command);
      return -1;
    case CLI_DEVICE:
      return take_device(command, text);
    case CLI_FLAG:
      break;
  }
  return -1;
}

// The arguments of getopt_long(): every long option returns the index of its entry, and short ones their letter.
typedef struct getopt_tables {
  struct option longs[MOST_OPTIONS + 2];
  char shorts[2 * MOST_OPTIONS + 4];
  int count;  // number of options; "help" comes after them
} getopt_tables;
enum { FIRST_LONG = 256 };

static void fill_tables(getopt_tables *tables, const cli_option *options) {
  // Other words are returned in order, as values of option 1; a missing value returns a colon.
  strcpy(tables->shorts, "-:h");
  char *shorts = tables->shorts + strlen(tables->shorts);
  int i = 0;
  for (; options[i].name && i < MOST_OPTIONS; i++) {
    int takes = options[i].type == CLI_FLAG ? no_argument : required_argument;
    tables->longs[i] = (struct option){options[i].name, takes, NULL, FIRST_LONG + i};
    char letter = cli_letter(options[i].name);
    if (letter) *shorts++ = letter;
    if (letter && takes == required_argument) *shorts++ = ':';
  }
  *shorts = '\0';
  tables->count = i;
  tables->longs[i] = (struct option){"help", no_argument, NULL, FIRST_LONG + i};
  tables->longs[i + 1] = (struct option){0};
}

// The entry for a result of getopt_long(), an index or a letter; tables->count is "help", -1 is none.
static int entry_of(const getopt_tables *tables, int given) {
  if (given >= FIRST_LONG) return given - FIRST_LONG;
  for (int i = 0; i <= tables->count; i++)
    if (given && cli_letter(tables->longs[i].name) == given) return i;
  return -1;
}

// getopt_long() accepts abbreviated names too. Then a new option could break scripts.
static bool is_whole(const char *word, const char *name) {
  size_t length = strlen(name);
  return word[1] != '-' || (strncmp(word + 2, name, length) == 0 && (!word[2 + length] || word[2 + length] == '='));
}

// Whether "-output" lacks a dash; it would be -o with the value "utput".
static bool lacks_dash(const getopt_tables *tables, const char *word) {
  for (int i = 0; i <= tables->count; i++) {
    size_t length = strlen(tables->longs[i].name);
    if (word[1] != '-' && strncmp(word + 1, tables->longs[i].name, length) == 0 &&
        (!word[1 + length] || word[1 + length] == '='))
      return true;
  }
  return false;
}

// "-x" for the letter at which getopt_long() stopped, which is only its first byte: the whole character of `word`.
enum { LETTER_TEXT = 16 };
static void print_letter(char text[LETTER_TEXT], const char *word, char byte) {
  char character[5] = {byte, '\0'};
  const char *at = byte ? strchr(word, byte) : NULL;
  for (size_t i = 1; at && ((unsigned char)byte & 0x80) && i < 4 && ((unsigned char)at[i] & 0xC0) == 0x80; i++)
    character[i] = at[i];
  text[0] = '-';
  tarn_text_repair(text + 1, character);
}

// Handles a result of getopt_long(). `word` is the option as it is in argv.
static int take_option(const cli_command *command, const cli_option *options, const getopt_tables *tables, int given,
                       const char *word) {
  int entry = entry_of(tables, given == '?' || given == ':' ? optopt : given);
  const char *name = entry >= 0 ? tables->longs[entry].name : NULL;
  char letter[LETTER_TEXT];
  print_letter(letter, word, (char)optopt);
  if (lacks_dash(tables, word)) return unknown_option(command, options, word);
  if (!name) return unknown_option(command, options, optopt && word[1] != '-' ? letter : word);
  if (!is_whole(word, name)) return unknown_option(command, options, word);
  if (given == '?') return cli_usage(command, "--%s takes no value", name);
  if (given == ':') return cli_usage(command, "--%s needs a value (%s)", name, options[entry].argument);
  if (entry == tables->count) {
    print_help(command, options);
    return CLI_OK;
  }
  if (options[entry].type != CLI_FLAG) return take_value(command, &options[entry], optarg);
  *(bool *)options[entry].value = true;
  return -1;
}

int cli_parse(const cli_command *command, const cli_option *options, int argc, char **argv, cli_list *positional,
              size_t minimum, size_t maximum) {
  if (visit) {
    visit(visitors, command, options);
    return CLI_OK;
  }
  getopt_tables tables;
  fill_tables(&tables, options);
  opterr = 0;
  optind = 0;  // restarts the scan
  for (int given, at = 1; (given = getopt_long(argc, argv, tables.shorts, tables.longs, NULL)) != -1; at = optind) {
    if (given == 1) {
      if (!list_add(positional, optarg)) return cli_no_memory(command);
      continue;
    }
    int code = take_option(command, options, &tables, given, argv[at]);
    if (code >= 0) return code;
  }
  for (int i = optind; i < argc; i++)
    if (!list_add(positional, argv[i])) return cli_no_memory(command);
  if (positional->count < minimum)
    return cli_usage(command, "an argument is missing: tarn %s [options] %s", command->name, command->arguments);
  if (positional->count > maximum) return cli_usage(command, "unexpected argument \"%s\"", positional->items[maximum]);
  return -1;
}

int cli_word(const cli_command *command, int *place, const char *what, const char *word, const char *const *words,
             size_t count) {
  char all[256] = "";
  size_t used = 0;
  for (size_t i = 0; i < count; i++) {
    *place = (int)i;
    if (strcmp(word, words[i]) == 0) return -1;
    const char *between = i == 0 ? "" : i + 1 == count ? " or " : ", ";
    int written = snprintf(all + used, sizeof all - used, "%s%s", between, words[i]);
    if (written > 0 && (size_t)written < sizeof all - used) used += (size_t)written;
  }
  const char *nearest = tarn_text_nearest(word, words, count);
  if (nearest) return cli_usage(command, "%s cannot be \"%s\"; did you mean %s?", what, word, nearest);
  return cli_usage(command, "%s is %s, not \"%s\"", what, all, word);
}

int cli_choose(const cli_command *command, const cli_step *steps, size_t count, int argc, char **argv) {
  const char *word = argc > 1 ? argv[1] : "";
  const char *names[CLI_STEPS] = {0};
  for (size_t i = 0; i < count; i++) {
    if (strcmp(word, steps[i].name) == 0) return steps[i].run(argc - 1, argv + 1);
    names[i] = steps[i].name;
  }
  // An unknown word is an error even with --help, which would otherwise be that of all steps.
  int place;
  if (*word && *word != '-') return cli_word(command, &place, "the first word", word, names, count);
  cli_list words = {0};
  const cli_option none[] = {{0}};
  int code = cli_parse(command, none, argc, argv, &words, 0, 1000);
  if (code < 0) code = cli_usage(command, "%s is expected", command->arguments);
  cli_list_free(&words);
  return code;
}

int cli_no_memory(const cli_command *command) {
  print_name(command);
  fprintf(stderr, "out of memory\n");
  return CLI_FAILURE;
}

const char *cli_count(char text[64], int64_t number, const char *thing) {
  snprintf(text, 64, "%" PRId64 " %s%s", number, thing, number == 1 ? "" : "s");
  return text;
}

const char *cli_time(char text[32], double seconds) {
  if (seconds < 0)
    snprintf(text, 32, "?");
  else if (seconds < 120)
    snprintf(text, 32, "%.0f s", seconds);
  else if (seconds < 7200)
    snprintf(text, 32, "%.0f min", seconds / 60);
  else
    snprintf(text, 32, "%.1f h", seconds / 3600);
  return text;
}
