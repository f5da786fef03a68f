// tarn: runs the command named by argv[1].
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli.h"
#include "colour.h"
#include "commands.h"
#include "fault_signal.h"
#include "json_memory.h"
#include "pages.h"
#include "progress_line.h"
#include "progress_show.h"
#include "shared_ranks.h"
#include "stop_signal.h"
#include "tarn/classify.h"
#include "tarn/process.h"
#include "tarn/status.h"
#include "tarn/text.h"

typedef struct known_command {
  const char *name;
  int (*run)(int argc, char **argv);
} known_command;

// In the order of use. The entry without a name stands for one command per verb of models that predict labels.
static const known_command table[] = {
    {"corpus", cmd_corpus},
    {"draw", cmd_draw},
    {"sentences", cmd_sentences},
    {"split", cmd_split},
    {"vocab", cmd_vocab},
    {"encode", cmd_encode},
    {"decode", cmd_decode},
    {"prepare", cmd_prepare},
    {"distill", cmd_distill},
    {"plan", cmd_plan},
    {"train", cmd_train},
    {"inspect", cmd_inspect},
    {"translate", cmd_translate},
    {"bleu", cmd_bleu},
    {"chrf", cmd_chrf},
    {"ter", cmd_ter},
    {"average", cmd_average},
    {"export", cmd_export},
    {"import-gpt2", cmd_import_gpt2},
    {"import-marian", cmd_import_marian},
    {"import", cmd_import},
    {"import-bert", cmd_import_bert},
    {"prune", cmd_prune},
    {"test", cmd_test},
    {"recipe", cmd_recipe},
    {"sweep", cmd_sweep},
    {"compare", cmd_compare},
    {"fit", cmd_fit},
    {"record", cmd_record},
    {"report", cmd_report},
    {NULL, cmd_label},
    {"score", cmd_score},
    {"blimp", cmd_blimp},
    {"choices", cmd_choices},
    {"generate", cmd_generate},
    {"serve", cmd_serve},
    {"states", cmd_states},
    {"dynamics", cmd_dynamics},
    {"series", cmd_series},
};
enum { COMMANDS = sizeof table / sizeof *table, VERBS = 32 };

// The entries of the table, including the verbs.
static known_command commands[COMMANDS + VERBS];
static size_t command_count;

static void list_commands(void) {
  for (size_t i = 0; i < COMMANDS; i++) {
    if (table[i].name) commands[command_count++] = table[i];
    const tarn_verb *verb;
    for (int v = 0; !table[i].name && v < VERBS && (verb = tarn_verb_at(v)) != NULL; v++)
      commands[command_count++] = (known_command){verb->word, table[i].run};
  }
}

static void print_message(void *user, tarn_log_level level, const char *text) {
  (void)user;
  const bool warning = level == TARN_LOG_WARNING;
  // Rank 0 prints warnings; the loss of a rank is reported by one rank, possibly this one.
  if (level != TARN_LOG_FAILURE && shared_ranks_silent()) return;
  progress_line_hold();
  if (level == TARN_LOG_FAILURE)
    fprintf(stderr, "%starn:%s %s\n", colour_on(stderr, COLOUR_RED), colour_on(stderr, COLOUR_NONE), text);
  else
    fprintf(stderr, "tarn: %s%s%s%s\n", warning ? colour_on(stderr, COLOUR_YELLOW) : "", warning ? "warning: " : "",
            warning ? colour_on(stderr, COLOUR_NONE) : "", text);
  progress_line_release();
}

void cli_show_messages(void) { tarn_log_set(print_message, NULL); }

typedef struct visiting {
  cli_visitor visitor;
  void *user;
  const char *arguments;  // of the last command visited
} visiting;

static void visit_command(void *user, const cli_command *command, const cli_option *options) {
  visiting *v = user;
  v->arguments = command->arguments;
  v->visitor(v->user, command, options);
}

void commands_visit(cli_visitor visitor, void *user) {
  visiting v = {visitor, user, ""};
  cli_visit(visit_command, &v);
  for (size_t i = 0; i < command_count; i++) {
    char name[32], words[128];
    char *argv[] = {name, NULL, NULL};
    snprintf(name, sizeof name, "%s", commands[i].name);
    commands[i].run(1, argv);
    // "generate|train|forecast ..." are subcommands.
    const char *end = strstr(v.arguments, " ...");
    if (!end || end[4] != '\0') continue;
    snprintf(words, sizeof words, "%.*s", (int)(end - v.arguments), v.arguments);
    for (char *rest = words, *word; (word = strtok_r(rest, "|", &rest));) {
      argv[1] = word;
      commands[i].run(2, argv);
    }
  }
  cli_visit(NULL, NULL);
}

static void print_summary(void *user, const cli_command *command, const cli_option *options) {
  (void)user, (void)options;
  if (!strchr(command->name, ' ')) printf("  %-11s %s\n", command->name, command->summary);
}

static int print_help(void) {
  printf("%s\n\nusage: tarn COMMAND [options] [arguments]\n\ncommands:\n", PROGRAM_SUMMARY);
  commands_visit(print_summary, NULL);
  printf(
      "\ntarn help COMMAND, tarn COMMAND -h   what a command does, its options and their defaults\n"
      "tarn version, tarn -v                build, instruction set, threads and libraries\n");
  return CLI_OK;
}

static int unknown(const char *word) {
  const char *names[COMMANDS + VERBS + 2] = {"help", "version"};
  for (size_t i = 0; i < command_count; i++) names[i + 2] = commands[i].name;
  const char *nearest = tarn_text_nearest(word, names, command_count + 2);
  fprintf(stderr, "tarn: unknown command \"%s\"", word);
  if (nearest) fprintf(stderr, "; did you mean %s?", nearest);
  fprintf(stderr, " (see tarn --help)\n");
  return CLI_USAGE;
}

static int run_command(int argc, char **argv) {
  for (size_t i = 0; i < command_count; i++) {
    if (strcmp(argv[0], commands[i].name) == 0) return commands[i].run(argc, argv);
  }
  return unknown(argv[0]);
}

// tarn help [COMMAND [WORD]]: like --help, for all commands or for one.
static int run_help(int argc, char **argv) {
  char help[] = "--help";
  char *words[] = {NULL, NULL, NULL, NULL};
  // Those with subcommands.
  const int most = argc > 1 && (strcmp(argv[1], "series") == 0 || strcmp(argv[1], "recipe") == 0) ? 3 : 2;
  if (argc > most) {
    fprintf(stderr, "tarn: unexpected argument \"%s\" (see tarn --help)\n", argv[most]);
    return CLI_USAGE;
  }
  for (int i = 1; i < argc; i++) words[i - 1] = argv[i];
  words[argc - 1] = help;
  return argc == 1 ? print_help() : run_command(argc, words);
}

static bool is_one_of(const char *word, const char *name, const char *option, const char *letter) {
  return strcmp(word, name) == 0 || strcmp(word, option) == 0 || strcmp(word, letter) == 0;
}

static int run(int argc, char **argv) {
  if (argc < 2) {  // prints the help but fails: nothing was done, perhaps because a script's variable is empty
    print_help();
    return CLI_USAGE;
  }
  if (is_one_of(argv[1], "help", "--help", "-h")) return run_help(argc - 1, argv + 1);
  if (is_one_of(argv[1], "version", "--version", "-v")) {
    printf("%s\n", tarn_version_text());
    return CLI_OK;
  }
  if (strcmp(argv[1], "--write-pages") == 0 && argc == 3) return pages_write(argv[2]);  // for cmake/pages.cmake
  return run_command(argc - 1, argv + 1);
}

// GCC's OpenMP makes waiting threads spin for milliseconds. A shorter spin costs nothing on an idle machine, and less
// on a busy one, until base/spinning.h has detected other users of the processors. The thread pool reads its settings
// when the program is loaded, so the program sets them and executes itself again, under its own name. A user's own
// settings are kept, also for base/spinning.h, which assumes that a spin of exactly this length is the program's.
static void limit_spinning(char **argv) {
  if (getenv("GOMP_SPINCOUNT") || getenv("OMP_WAIT_POLICY")) return;
  char program[4096];
  ssize_t length = readlink("/proc/self/exe", program, sizeof program);
  if (length < 0 || (size_t)length >= sizeof program || setenv("GOMP_SPINCOUNT", "20000", 1) != 0) return;
  program[length] = '\0';
  execv(program, argv);  // if this fails, everything still works, only slower
}

// The files of a training do not depend on a reader of its output; the training continues when the reader exits.
static bool works_for_files(int argc, char **argv) {
  static const char *const names[] = {"train", "sweep", "serve"};
  const char *command = argc > 1 ? argv[1] : NULL;
  if (command && argc > 2 && strcmp(command, "recipe") == 0) return strcmp(argv[2], "run") == 0;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (command && strcmp(command, names[i]) == 0) return true;
  return false;
}

// When the reader of the output has exited, ends like any filter: without a message, by SIGPIPE.
static int end_with_reader(int code, int argc, char **argv, void (*at_pipe)(int)) {
  if (works_for_files(argc, argv) || code == CLI_USAGE) return code;
  signal(SIGPIPE, at_pipe);
  raise(SIGPIPE);
  return CLI_FAILURE;  // if SIGPIPE was inherited as ignored
}

// Where the address space is limited, addresses that the C library would reserve for each thread, 64 MB, are left for
// the work.
static void share_addresses(void) {
#ifdef M_ARENA_MAX
  struct rlimit addresses;
  if (getrlimit(RLIMIT_AS, &addresses) == 0 && addresses.rlim_cur != RLIM_INFINITY) mallopt(M_ARENA_MAX, 2);
#endif
}

int main(int argc, char **argv) {
  share_addresses();
  ignore_save_signal();  // before the second exec, which preserves it
  limit_spinning(argv);
  // A reader that exits (tarn train ... | head) must not kill a training; writes fail with EPIPE instead.
  void (*at_pipe)(int) = signal(SIGPIPE, SIG_IGN);
  catch_fault_signal();
  cli_show_messages();
  list_commands();
  json_memory_start();
  progress_start();
  int code = run(argc, argv);
  bool failed = ferror(stdout) != 0;
  errno = 0;
  failed = fflush(stdout) != 0 || failed;
  const bool gone = cli_reader_gone();
  if (failed && !gone) {
    if (code == CLI_OK)  // a failed command has printed its error
      fprintf(stderr, "tarn: cannot write to standard output%s%s\n", errno ? ": " : "", errno ? strerror(errno) : "");
    if (code == CLI_OK) code = CLI_FAILURE;
  }
  tarn_ranks_abandon();  // the others must not wait for a process that could not join them
  return gone ? end_with_reader(code, argc, argv, at_pipe) : code;
}
