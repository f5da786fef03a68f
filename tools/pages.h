// Output generated from the tables of options besides --help: manual pages and shell completion (docs/install.md).
#ifndef TARN_TOOLS_PAGES_H
#define TARN_TOOLS_PAGES_H

#include <stdio.h>

#include "cli.h"

// Writes tarn.1 and a page for each command (tarn-translate.1), tarn.bash, _tarn (zsh) and tarn.fish into an existing
// folder. Returns the program's exit code.
int pages_write(const char *folder);

// The parts of a shell's completion file: the beginning, one command (commands_visit()), and the end.
typedef struct completion_shell {
  const char *file;  // its name
  void (*begin)(FILE *file);
  void (*command)(FILE *file, const cli_command *command, const cli_option *options);
  void (*end)(FILE *file);
} completion_shell;

enum { COMPLETION_SHELLS = 3 };
extern const completion_shell completion_shells[COMPLETION_SHELLS];

#endif
