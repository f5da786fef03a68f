#include "shared_ranks.h"

#include <stdatomic.h>
#include <stdio.h>

#include "progress_show.h"

static tarn_ranks *ranks;

static bool tell(tarn_status status, const char *line) { return tarn_ranks_leave(ranks, status, line); }

// Also read by the thread that monitors the other ranks.
static atomic_bool silent;

bool shared_ranks_silent(void) { return atomic_load(&silent); }

int shared_ranks_open(const cli_command *command, const char *comm) {
  const tarn_status status = tarn_ranks_open(&ranks, comm);
  if (status != TARN_STATUS_OK) return cli_report(command, status);
  cli_report_to(tell);
  if (!shared_ranks_help()) return -1;
  progress_wanted.quiet = true;
  atomic_store(&silent, true);
  return -1;
}

tarn_ranks *shared_ranks(void) { return ranks; }
bool shared_ranks_help(void) { return tarn_ranks_rank(ranks) > 0; }

int shared_ranks_end(const cli_command *command, int code) {
  if (tarn_ranks_count(ranks) > 1) {
    // main() reports that standard output cannot be written.
    const bool unwritten = code == CLI_OK && (fflush(stdout) != 0 || ferror(stdout));
    if (code != CLI_OK || unwritten) {
      tarn_ranks_leave(ranks, unwritten ? TARN_STATUS_IO : TARN_STATUS_INTERNAL, NULL);
    } else {
      const tarn_status status = tarn_ranks_meet(ranks);
      if (status != TARN_STATUS_OK) code = cli_report(command, status);
    }
  }
  cli_report_to(NULL);
  tarn_ranks_close(&ranks);
  return code;
}
