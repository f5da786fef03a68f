// What the commands share: one table of options a command, from which parsing, --help and error messages come.
#ifndef TARN_TOOLS_CLI_H
#define TARN_TOOLS_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/status.h"

enum { CLI_OK = 0, CLI_FAILURE = 1, CLI_USAGE = 2 };  // exit codes of the program

#define CLI_NO_INT INT64_MIN  // a CLI_INT that was not given

typedef enum cli_type {
  CLI_FLAG,   // bool *; takes no argument
  CLI_INT,    // int64_t *
  CLI_REAL,   // double *
  CLI_TEXT,   // const char **
  CLI_LIST,   // cli_list *; may be given several times
  CLI_DEVICE  // no value: what is computed on from now on, here and in the processes that this one starts
} cli_type;

typedef struct cli_list {
  const char **items;  // allocated; freed by cli_list_free()
  size_t count, capacity;
} cli_list;
void cli_list_free(cli_list *list);

// The last entry of a table has name NULL.
typedef struct cli_option {
  const char *name;  // without the dashes: "beam" is given as --beam 5 or --beam=5
  cli_type type;
  void *value;              // holds the default before parsing
  const char *argument;     // word for --help, for example "N" or "FILE"; NULL for flags
  const char *help;         // one sentence; defaults are appended by --help (not NULL, not NAN, not CLI_NO_INT)
  double minimum, maximum;  // for CLI_INT and CLI_REAL; both 0: no limit
} cli_option;

// The option of commands that compute.
#define CLI_DEVICE_OPTION \
  { "device", CLI_DEVICE, NULL, "NAME", "what to compute on", 0, 0 }

typedef struct cli_command {
  const char *name;       // "translate"
  const char *arguments;  // "RUN", "[FILE...]" or ""
  const char *summary;    // one line for `tarn --help`
  const char *text;       // more for `tarn translate --help`; may be NULL
} cli_command;

// Parses argv by getopt_long() (argv[0] is the command's name). Positional arguments are collected in `positional`,
// which must hold at least `minimum` and at most `maximum` of them. Returns -1 to go on, or the exit code the command
// must return at once
// (--help prints to standard output and gives 0; a mistake prints one line to standard error and gives 2). Call it
// before anything else, with the defaults in the options' values: with a visitor it does nothing but call that.
int cli_parse(const cli_command *command, const cli_option *options, int argc, char **argv, cli_list *positional,
              size_t minimum, size_t maximum);

// While there is a visitor, cli_parse() shows it the command and its table of options, which live during the call, and
// gives 0 without looking at argv: so --help, the manual pages and the completion of shells come from the same tables.
typedef void (*cli_visitor)(void *user, const cli_command *command, const cli_option *options);
void cli_visit(cli_visitor visitor, void *user);  // NULL: none

// The letter of an option, 'o' of "output": -o; '\0' for most.
char cli_letter(const char *name);

// The help of an option with its default: "hypotheses kept, 1 for greedy (default 5)".
enum { CLI_HELP_TEXT = 512 };
void cli_option_help(char text[CLI_HELP_TEXT], const cli_option *option);

// Whether standard output could not be written because whoever read it has gone away, as in `tarn score ... | head`:
// the end of the work, of which nothing is said.
bool cli_reader_gone(void);
// Prints "tarn COMMAND: MESSAGE" for a failed status and returns the exit code (2 for TARN_STATUS_USAGE, else 1).
int cli_report(const cli_command *command, tarn_status status);

// From now on messages of the library are printed to standard error, as from the start of the program on. main.c.
void cli_show_messages(void);

// From now on mistakes in the use of this command are those of all processes that were started together with this one:
// it joins them to say so (tarn_ranks_fail()), and one line is printed. `comm` is the option --comm, looked at then.
void cli_together(const char *const *comm);
// From now on all failures of the command are: `told` is asked with the line before it is printed, and returns true
// where another process prints it. NULL: nobody is.
void cli_report_to(bool (*told)(tarn_status status, const char *line));

// The place of a word in a list. Returns -1, or the exit code of a usage mistake in `what` ("--overlong", "series"),
// which names the nearest word, or all of them.
int cli_word(const cli_command *command, int *place, const char *what, const char *word, const char *const *words,
             size_t count);

// Prints that memory is out, and returns CLI_FAILURE.
int cli_no_memory(const cli_command *command);

// A time for people: "50 s", "12 min", "3.4 h"; "?" where it is negative.
const char *cli_time(char text[32], double seconds);

// A number of things, "1 line" or "2 lines". CLI_COUNT() gives it the memory, which lives as long as the block around
// it.
const char *cli_count(char text[64], int64_t number, const char *thing);
#define CLI_COUNT(number, thing) cli_count((char[64]){0}, number, thing)

// Prints a usage mistake ("tarn COMMAND: ...") and returns CLI_USAGE.
int cli_usage(const cli_command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
