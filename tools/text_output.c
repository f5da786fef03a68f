#include "text_output.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "progress_show.h"

static const int signals[] = {SIGHUP, SIGINT, SIGTERM};
enum { SIGNALS = sizeof signals / sizeof *signals };

static char unfinished[PATH_MAX + 32];  // the file that a signal handler removes

static void remove_unfinished(int number) {
  unlink(unfinished);
  signal(number, SIG_DFL);
  raise(number);
}

// Signals inherited as ignored, as under nohup, stay ignored.
static void set_signals(void (*from)(int), void (*to)(int)) {
  for (size_t i = 0; i < SIGNALS; i++) {
    struct sigaction now;
    if (sigaction(signals[i], NULL, &now) != 0 || now.sa_handler != from) continue;
    struct sigaction action = {.sa_handler = to};
    sigemptyset(&action.sa_mask);
    sigaction(signals[i], &action, NULL);
  }
}

int text_output_open(const cli_command *command, text_output *output, const char *path) {
  *output = (text_output){.file = stdout};
  if (!path || strcmp(path, "-") == 0) return CLI_OK;
  tarn_status status = tarn_output_file_open(&output->replaces, path);
  if (status != TARN_STATUS_OK) return cli_report(command, status);
  output->file = tarn_output_file_stream(output->replaces);
  const char *temporary = tarn_output_file_temporary(output->replaces);
  if (!temporary) return CLI_OK;
  snprintf(unfinished, sizeof unfinished, "%s", temporary);
  set_signals(SIG_DFL, remove_unfinished);
  return CLI_OK;
}

static int close_stdout(const cli_command *command) {
  int error = errno;
  bool unwritten = ferror(stdout) != 0;
  if (fflush(stdout) != 0 && !unwritten) {
    error = errno;
    unwritten = true;
  }
  if (!unwritten) return CLI_OK;
  if (cli_reader_gone()) return CLI_FAILURE;
  fprintf(stderr, "tarn %s: standard output: cannot write: %s\n", command->name, strerror(error));
  return CLI_FAILURE;
}

int text_output_close(const cli_command *command, text_output *output, bool keep) {
  if (!output->replaces) return close_stdout(command);
  tarn_status status = TARN_STATUS_OK;
  if (keep || ferror(output->file))
    status = tarn_output_file_commit(&output->replaces);
  else
    tarn_output_file_abort(&output->replaces);
  set_signals(remove_unfinished, SIG_DFL);
  return status == TARN_STATUS_OK ? CLI_OK : cli_report(command, status);
}

void text_output_line(text_output *output, const char *text, size_t length) {
  for (size_t i = 0; i < length; i++) {
    const char c = text[i];
    putc(c == '\n' || c == '\r' ? ' ' : c, output->file);
  }
}

bool text_output_lines_end(const cli_command *command, int *code, tarn_status status, bool none, const char *input) {
  // Its error has been printed, or main() reports that standard output cannot be written, and fails.
  if (*code != CLI_OK || fflush(stdout) != 0 || ferror(stdout)) return false;
  if (status != TARN_STATUS_OK) {
    *code = cli_report(command, status);
    return false;
  }
  if (!none) return true;
  fprintf(stderr, "tarn %s: %s: there is no line to %s\n", command->name,
          strcmp(input, "-") == 0 ? "standard input" : input, command->name);
  *code = CLI_FAILURE;
  return false;
}

bool text_output_answers(const cli_command *command, const char *input) {
  struct stat info;
  const bool standard = !input || strcmp(input, "-") == 0;
  if ((standard ? fstat(STDIN_FILENO, &info) : stat(input, &info)) != 0) return false;
  if (standard && isatty(STDIN_FILENO) && isatty(STDERR_FILENO) && !progress_wanted.quiet)
    fprintf(stderr, "tarn %s: a line is answered when it is typed; Ctrl-D ends\n", command->name);
  return !S_ISREG(info.st_mode);
}
