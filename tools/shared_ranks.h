// Ranks that share a command's work (tarn/process.h): rank 0 reads, writes and prints, the others compute.
#ifndef TARN_TOOLS_SHARED_RANKS_H
#define TARN_TOOLS_SHARED_RANKS_H

#include "cli.h"
#include "tarn/process.h"

// Entry of a table of options; `word`: const char *, initially NULL.
#define RANKS_OPTION(word)                                                                                            \
  {                                                                                                                   \
    "comm", CLI_TEXT, &(word), "NAME",                                                                                \
        "how ranks that share the work communicate: self (one rank) or mpi (default: as the program was started)", 0, \
        0                                                                                                             \
  }

// Opens the ranks of this process, in a command that has called cli_together(). From then on only rank 0 prints a
// failure, if it receives it, and other ranks show neither progress nor warnings. -1, or the exit code of a failure
// that has been printed.
int shared_ranks_open(const cli_command *command, const char *comm);
// The ranks; NULL before they are opened. And whether this rank only assists rank 0.
tarn_ranks *shared_ranks(void);
bool shared_ranks_help(void);
// Whether this process prints no warnings. May be called from any thread.
bool shared_ranks_silent(void);
// Ends the command; to be called in any case, with its exit code. Returns that of this process: if one rank fails, all
// do.
int shared_ranks_end(const cli_command *command, int code);

#endif
