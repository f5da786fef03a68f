// The ranks that share a command's work (tarn/process.h): rank 0 reads, writes and speaks, the others compute.
#ifndef TARN_TOOLS_SHARED_RANKS_H
#define TARN_TOOLS_SHARED_RANKS_H

#include "cli.h"
#include "tarn/process.h"

// Entry of a table of options; `word`: const char *, NULL to begin with.
#define RANKS_OPTION(word)                                                                                            \
  {                                                                                                                   \
    "comm", CLI_TEXT, &(word), "NAME",                                                                                \
        "how ranks that share the work communicate: self (one rank) or mpi (default: as the program was started)", 0, \
        0                                                                                                             \
  }

// Opens the ranks of this process, in a command that has called cli_together(). From then on a failure is printed by
// rank 0 alone where that hears of it, and other ranks than 0 show neither progress nor warnings. -1, or the exit code
// of a failure whose line is printed.
int shared_ranks_open(const cli_command *command, const char *comm);
// The ranks; NULL before they are opened. And whether this one only helps rank 0.
tarn_ranks *shared_ranks(void);
bool shared_ranks_help(void);
// Whether this process gives no warnings. For any thread.
bool shared_ranks_silent(void);
// The end of the command, to be called with its exit code in any case. Returns that of this process: where one rank
// fails all do.
int shared_ranks_end(const cli_command *command, int code);

#endif
