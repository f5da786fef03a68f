// Command-line parsing, shared by the commands: one table of options per command, from which parsing, --help and error
// messages are generated.
#ifndef TARN_TOOLS_CLI_H
#define TARN_TOOLS_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/status.h"

enum { CLI_OK = 0, CLI_FAILURE = 1, CLI_USAGE = 2 };  // exit codes of the program

#define CLI_NO_INT INT64_MIN  // a CLI_INT not given

typedef enum cli_type {
  CLI_FLAG,   // bool *; takes no argument
  CLI_INT,    // int64_t *
  CLI_REAL,   // double *
  CLI_TEXT,   // const char **
  CLI_LIST,   // cli_list *; may be given several times
  CLI_DEVICE  // no value: selects the device for this process and those that it starts
} cli_type;

typedef struct cli_list {
  const char **items;  // allocated; freed by cli_list_free()
  size_t count, capacity;
} cli_list;
void cli_list_free(cli_list *list);

// The last entry of a table has name NULL.
typedef struct cli_option {
  const char *name;  // without the dashes: "beam" for --beam 5 or --beam=5
  cli_type type;
  void *value;              // holds the default before parsing
  const char *argument;     // placeholder for --help, for example "N" or "FILE"; NULL for flags
  const char *help;         // one sentence; --help appends defaults (not NULL, not NAN, not CLI_NO_INT)
  double minimum, maximum;  // for CLI_INT and CLI_REAL; both 0: no limit
} cli_option;

// The option of commands that use a device.
#define CLI_DEVICE_OPTION \
  { "device", CLI_DEVICE, NULL, "NAME", "what to compute on", 0, 0 }

typedef struct cli_command {
  const char *name;       // "translate"
  const char *arguments;  // "RUN", "[FILE...]" or ""
  const char *summary;    // one line for `tarn --help`
  const char *text;       // more text for `tarn translate --help`; may be NULL
} cli_command;

// Parses argv by getopt_long() (argv[0] is the command's name). Positional arguments go to `positional`; there must be
// at least `minimum` and at most `maximum`. Returns -1 to continue, or an exit code that the command must return at
// once (--help prints to standard output and gives 0; a usage error prints one line to standard error and gives 2).
// Call it first, with the defaults in the options' values: with a visitor it only calls that.
int cli_parse(const cli_command *command, const cli_option *options, int argc, char **argv, cli_list *positional,
              size_t minimum, size_t maximum);

// While a visitor is set, cli_parse() passes it the command and its table of options, valid during the call, and
// returns 0 without reading argv: --help, the manual pages and the shell completion come from the same tables.
typedef void (*cli_visitor)(void *user, const cli_command *command, const cli_option *options);
void cli_visit(cli_visitor visitor, void *user);  // NULL: none

// The letter of an option, 'o' of "output": -o; '\0' for most.
char cli_letter(const char *name);

// The help of an option with its default: "hypotheses kept, 1 for greedy (default 5)".
enum { CLI_HELP_TEXT = 512 };
void cli_option_help(char text[CLI_HELP_TEXT], const cli_option *option);

// Whether writing to standard output failed because its reader has exited, as in `tarn score ... | head`: a normal end,
// without a message.
bool cli_reader_gone(void);
// Prints "tarn COMMAND: MESSAGE" for a failed status and returns the exit code (2 for TARN_STATUS_USAGE, else 1).
int cli_report(const cli_command *command, tarn_status status);

// Prints messages of the library to standard error from now on, as at the start of the program. In main.c.
void cli_show_messages(void);

// Makes usage errors of this command those of all processes started together with this one: it joins them to report the
// error (tarn_ranks_fail()), and one line is printed. `comm` is the option --comm, read at that time.
void cli_together(const char *const *comm);
// Does this for all failures of the command: `told` is called with the message before it is printed, and returns true
// if another process prints it. NULL: turns this off.
void cli_report_to(bool (*told)(tarn_status status, const char *line));

// The index of a word in a list. Returns -1, or the exit code of a usage error in `what` ("--overlong", "series"),
// which names the nearest word, or all of them.
int cli_word(const cli_command *command, int *place, const char *what, const char *word, const char *const *words,
             size_t count);

// A command of commands, as in "tarn series train": runs the step that argv[1] names, with argv moved on by one.
// Without one it returns the exit code of cli_parse() (--help) or of a usage error, which names the nearest step.
typedef struct cli_step {
  const char *name;
  int (*run)(int argc, char **argv);
} cli_step;
int cli_choose(const cli_command *command, const cli_step *steps, size_t count, int argc, char **argv);
enum { CLI_STEPS = 8 };  // most steps of a command

// Prints an out-of-memory error and returns CLI_FAILURE.
int cli_no_memory(const cli_command *command);

// A readable time: "50 s", "12 min", "3.4 h"; "?" if negative.
const char *cli_time(char text[32], double seconds);

// A count with its noun, "1 line" or "2 lines". CLI_COUNT() provides the memory, with the lifetime of the enclosing
// block.
const char *cli_count(char text[64], int64_t number, const char *thing);
#define CLI_COUNT(number, thing) cli_count((char[64]){0}, number, thing)

// Prints a usage error ("tarn COMMAND: ...") and returns CLI_USAGE.
int cli_usage(const cli_command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
