// Shows the library's progress reports of long work (tarn/process.h) on one line of a terminal.
#ifndef TARN_TOOLS_PROGRESS_SHOW_H
#define TARN_TOOLS_PROGRESS_SHOW_H

#include <stdbool.h>

#include "cli.h"

typedef struct progress_settings {
  bool quiet;  // show nothing
  bool asked;  // show at once, and even if standard error is not a terminal: a separate line every ten seconds
} progress_settings;
extern progress_settings progress_wanted;  // set by the options below

// Entries of a table of options; a command with its own --quiet sets the field from it.
#define PROGRESS_OPTION                                                                                            \
  {                                                                                                                \
    "progress", CLI_FLAG, &progress_wanted.asked, NULL,                                                            \
        "show how far it is at once, and also where standard error is no terminal: a line every ten seconds", 0, 0 \
  }
#define PROGRESS_OPTIONS \
  PROGRESS_OPTION, { "quiet", CLI_FLAG, &progress_wanted.quiet, NULL, "do not show how far it is", 0, 0 }

// To be called once, at the start.
void progress_start(void);

// Progress of the command's own work, of unknown length. Zero-initialise except the texts; always end it.
typedef struct progress_own {
  const char *what, *unit;
  double begun, due;  // seconds on the clock
  double done;
} progress_own;
void progress_own_at(progress_own *work, double done);
void progress_own_end(progress_own *work);

#endif
