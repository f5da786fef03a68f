#include "pages.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "tarn/status.h"
#include "tarn/text.h"

// --- manual pages, in the language of man(7)

// Escapes a line of text: no requests, and dashes as typed in a shell.
static void print_line(FILE *file, const char *text, size_t length) {
  if (length && (*text == '.' || *text == '\'')) fputs("\\&", file);
  for (size_t i = 0; i < length; i++) {
    if (text[i] == '\\')
      fputs("\\e", file);
    else if (text[i] == '-')
      fputs("\\-", file);
    else
      fputc(text[i], file);
  }
}

// The name of a command's page: "tarn-series-train".
static void page_name(char name[64], const cli_command *command) {
  snprintf(name, 64, "tarn-%s", command->name);
  for (char *c = name; *c; c++)
    if (*c == ' ') *c = '-';
}

static void print_head(FILE *file, const char *name, const char *summary) {
  fprintf(file, ".TH \"%s\" 1 \"\" \"tarn %s\" \"User Commands\"\n.nh\n.SH NAME\n", name, tarn_version());
  print_line(file, name, strlen(name));
  fputs(" \\- ", file);
  size_t length = strlen(summary);
  print_line(file, summary, length && summary[length - 1] == '.' ? length - 1 : length);
  fputc('\n', file);
}

// Paragraphs are separated by empty lines. A paragraph with columns is printed verbatim.
static void print_text(FILE *file, const char *text) {
  bool first = true;  // man(7) starts a paragraph at the beginning of a section
  while (*text) {
    const char *end = strstr(text, "\n\n");
    size_t length = end ? (size_t)(end - text) : strlen(text);
    const char *gap = strstr(text, "   ");
    bool columns = gap && gap < text + length;
    if (!first) fputs(".PP\n", file);
    if (columns) fputs(".nf\n", file);
    first = false;
    for (size_t at = 0; at < length;) {
      const char *line_end = memchr(text + at, '\n', length - at);
      size_t line = line_end ? (size_t)(line_end - text) - at : length - at;
      print_line(file, text + at, line);
      fputc('\n', file);
      at += line + 1;
    }
    if (columns) fputs(".fi\n", file);
    text += length;
    while (*text == '\n') text++;
  }
}

static void print_option(FILE *file, const char *name, const char *argument, const char *help) {
  fputs(".TP\n\\fB", file);
  if (cli_letter(name)) fprintf(file, "\\-%c\\fR, \\fB", cli_letter(name));
  print_line(file, "--", 2);
  print_line(file, name, strlen(name));
  fputs("\\fR", file);
  if (argument) {
    fputs(" \\fI", file);
    print_line(file, argument, strlen(argument));
    fputs("\\fR", file);
  }
  fputc('\n', file);
  print_line(file, help, strlen(help));
  fputc('\n', file);
}

static void print_exit_status(FILE *file) {
  fputs(".SH EXIT STATUS\n0 for success, 1 for a failure, 2 for a mistake in the command.\n", file);
}

static void print_command(FILE *file, const cli_command *command, const cli_option *options) {
  char name[64];
  page_name(name, command);
  print_head(file, name, command->summary);
  fprintf(file, ".SH SYNOPSIS\n\\fBtarn %s\\fR [options] ", command->name);
  print_line(file, command->arguments, strlen(command->arguments));
  fputs("\n.SH DESCRIPTION\n", file);
  print_text(file, command->summary);
  if (command->text) {
    fputs(".PP\n", file);
    print_text(file, command->text);
  }
  fputs(".SH OPTIONS\n", file);
  for (const cli_option *option = options; option->name; option++) {
    char help[CLI_HELP_TEXT];
    cli_option_help(help, option);
    print_option(file, option->name, option->argument, help);
  }
  print_option(file, "help", NULL, "print the help of the command");
  print_exit_status(file);
  fputs(".SH SEE ALSO\n.BR tarn (1)\n", file);
}

static void print_program(FILE *file) {
  print_head(file, "tarn", "translation and language models with random, frozen and shared layers");
  fputs(".SH SYNOPSIS\n\\fBtarn\\fR \\fICOMMAND\\fR [options] [arguments]\n.SH DESCRIPTION\n", file);
  print_text(file, PROGRAM_SUMMARY);
  fputs(".SH COMMANDS\n", file);
}

static void print_entry(FILE *file, const cli_command *command) {
  char name[64];
  page_name(name, command);
  fputs(".TP\n.BR ", file);
  print_line(file, name, strlen(name));
  fputs(" (1)\n", file);
  print_line(file, command->summary, strlen(command->summary));
  fputc('\n', file);
}

// --- the files

typedef struct pages {
  const char *folder;
  tarn_output_file *program, *shells[COMPLETION_SHELLS];
  tarn_status status;  // the first failure; nothing is written after it
} pages;

static void open_page(pages *p, tarn_output_file **output, const char *name, const char *ending) {
  char path[4096];
  *output = NULL;
  if (p->status != TARN_STATUS_OK) return;
  snprintf(path, sizeof path, "%s/%s%s", p->folder, name, ending);
  p->status = tarn_output_file_open(output, path);
}

static void close_page(pages *p, tarn_output_file **output) {
  if (p->status == TARN_STATUS_OK) p->status = tarn_output_file_commit(output);
  tarn_output_file_abort(output);
}

static void write_command(void *user, const cli_command *command, const cli_option *options) {
  pages *p = user;
  char name[64];
  tarn_output_file *page;
  page_name(name, command);
  open_page(p, &page, name, ".1");
  if (p->status == TARN_STATUS_OK) {
    print_command(tarn_output_file_stream(page), command, options);
    print_entry(tarn_output_file_stream(p->program), command);
    for (int i = 0; i < COMPLETION_SHELLS; i++)
      completion_shells[i].command(tarn_output_file_stream(p->shells[i]), command, options);
  }
  close_page(p, &page);
}

int pages_write(const char *folder) {
  pages p = {.folder = folder};
  open_page(&p, &p.program, "tarn", ".1");
  for (int i = 0; i < COMPLETION_SHELLS; i++) open_page(&p, &p.shells[i], completion_shells[i].file, "");
  if (p.status == TARN_STATUS_OK) {
    print_program(tarn_output_file_stream(p.program));
    for (int i = 0; i < COMPLETION_SHELLS; i++) completion_shells[i].begin(tarn_output_file_stream(p.shells[i]));
    commands_visit(write_command, &p);
    print_exit_status(tarn_output_file_stream(p.program));
    for (int i = 0; i < COMPLETION_SHELLS; i++) completion_shells[i].end(tarn_output_file_stream(p.shells[i]));
  }
  close_page(&p, &p.program);
  for (int i = 0; i < COMPLETION_SHELLS; i++) close_page(&p, &p.shells[i]);
  if (p.status != TARN_STATUS_OK) fprintf(stderr, "tarn: %s\n", tarn_error_message());
  return p.status == TARN_STATUS_OK ? CLI_OK : CLI_FAILURE;
}
