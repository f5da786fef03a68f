// Shows the progress of long work, as the library reports it (tarn/process.h), on one line of a terminal.
#ifndef TARN_TOOLS_PROGRESS_SHOW_H
#define TARN_TOOLS_PROGRESS_SHOW_H

#include <stdbool.h>

#include "cli.h"

typedef struct progress_settings {
  bool quiet;  // nothing is shown
  bool asked;  // at once, and also where standard error is no terminal: a line of its own every ten seconds
} progress_settings;
extern progress_settings progress_wanted;  // set by the options below

// Lines of a table of options; a command with a --quiet of its own sets the field from it.
#define PROGRESS_OPTION                                                                                            \
  {                                                                                                                \
    "progress", CLI_FLAG, &progress_wanted.asked, NULL,                                                            \
        "show how far it is at once, and also where standard error is no terminal: a line every ten seconds", 0, 0 \
  }
#define PROGRESS_OPTIONS \
  PROGRESS_OPTION, { "quiet", CLI_FLAG, &progress_wanted.quiet, NULL, "do not show how far it is", 0, 0 }

// To be called once, at the start.
void progress_start(void);

// Work of the command itself, whose end is not known. Zero-initialise but for the texts; end it in any case.
typedef struct progress_own {
  const char *what, *unit;
  double begun, due;  // seconds of the clock
  double done;
} progress_own;
void progress_own_at(progress_own *work, double done);
void progress_own_end(progress_own *work);

#endif
