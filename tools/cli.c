#include "cli.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tarn/device.h"
#include "tarn/text.h"

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

int cli_usage(const cli_command *command, const char *format, ...) {
  va_list args;
  fprintf(stderr, "tarn %s: ", command->name);
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  fprintf(stderr, " (see tarn %s --help)\n", command->name);
  return CLI_USAGE;
}

int cli_report(const cli_command *command, tarn_status status) {
  const char *message = tarn_error_message();
  fflush(stdout);
  // Where the program itself found no memory, the library has no line for it.
  fprintf(stderr, "tarn %s: %s\n", command->name, *message ? message : tarn_status_text(status));
  return status == TARN_STATUS_USAGE ? CLI_USAGE : CLI_FAILURE;
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

static void print_option(const cli_option *option) {
  char left[64], help[CLI_HELP_TEXT];
  snprintf(left, sizeof left, "--%s%s%s", option->name, option->argument ? " " : "",
           option->argument ? option->argument : "");
  cli_option_help(help, option);
  printf("  %-26s %s\n", left, help);
}

static void print_help(const cli_command *command, const cli_option *options) {
  printf("usage: tarn %s [options]%s%s\n\n%s\n", command->name, *command->arguments ? " " : "", command->arguments,
         command->summary);
  if (command->text) printf("\n%s\n", command->text);
  printf("\noptions:\n");
  for (const cli_option *option = options; option->name; option++) print_option(option);
  printf("  %-26s print this text\n", "--help");
}

static int unknown_option(const cli_command *command, const cli_option *options, const char *word) {
  const char *names[64];
  size_t count = 0;
  for (const cli_option *option = options; option->name && count < 63; option++) names[count++] = option->name;
  names[count++] = "help";
  const char *nearest = tarn_text_nearest(word, names, count);
  if (nearest) return cli_usage(command, "unknown option --%s; did you mean --%s?", word, nearest);
  return cli_usage(command, "unknown option --%s", word);
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
  // A number that is too large comes back as the largest there is.
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

static int take_device(const cli_command *command, const char *name) {
  if (tarn_device_set(name) != TARN_STATUS_OK) return cli_usage(command, "--device: %s", tarn_error_message());
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

// Handles argv[*index], which begins with two dashes.
static int take_option(const cli_command *command, const cli_option *options, int argc, char **argv, int *index) {
  const char *word = argv[*index] + 2;
  const char *equals = strchr(word, '=');
  char name[128];
  snprintf(name, sizeof name, "%.*s", equals ? (int)(equals - word) : (int)strlen(word), word);
  if (strcmp(name, "help") == 0) {
    print_help(command, options);
    return CLI_OK;
  }
  const cli_option *option = options;
  while (option->name && strcmp(option->name, name) != 0) option++;
  if (!option->name) return unknown_option(command, options, name);
  if (option->type == CLI_FLAG) {
    if (equals) return cli_usage(command, "--%s takes no value", name);
    *(bool *)option->value = true;
    return -1;
  }
  if (equals) return take_value(command, option, equals + 1);
  if (*index + 1 >= argc) return cli_usage(command, "--%s needs a value (%s)", name, option->argument);
  return take_value(command, option, argv[++*index]);
}

int cli_parse(const cli_command *command, const cli_option *options, int argc, char **argv, cli_list *positional,
              size_t minimum, size_t maximum) {
  if (visit) {
    visit(visitors, command, options);
    return CLI_OK;
  }
  bool only_positional = false;
  for (int i = 1; i < argc; i++) {
    if (!only_positional && strcmp(argv[i], "--") == 0) {
      only_positional = true;
    } else if (!only_positional && strncmp(argv[i], "--", 2) == 0) {
      int code = take_option(command, options, argc, argv, &i);
      if (code >= 0) return code;
    } else if (!only_positional && argv[i][0] == '-' && argv[i][1] != '\0') {
      return cli_usage(command, "unknown option %s; options begin with two dashes", argv[i]);
    } else if (!list_add(positional, argv[i])) {
      return cli_no_memory(command);
    }
  }
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

int cli_no_memory(const cli_command *command) {
  fprintf(stderr, "tarn %s: out of memory\n", command->name);
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
