#include "shared_ranks.h"

#include <stdio.h>

#include "progress_show.h"
#include "tarn/log.h"

static tarn_ranks *ranks;

static bool tell(tarn_status status, const char *line) { return tarn_ranks_leave(ranks, status, line); }

// Rank 0 gives the warnings; that a rank is lost is said by one rank, which may be this one.
static void print_loss(void *user, tarn_log_level level, const char *text) {
  (void)user;
  if (level == TARN_LOG_FAILURE) fprintf(stderr, "tarn: %s\n", text);
}

int shared_ranks_open(const cli_command *command, const char *comm) {
  const tarn_status status = tarn_ranks_open(&ranks, comm);
  if (status != TARN_STATUS_OK) return cli_report(command, status);
  cli_report_to(tell);
  if (!shared_ranks_help()) return -1;
  progress_wanted.quiet = true;
  tarn_log_set(print_loss, NULL);
  return -1;
}

tarn_ranks *shared_ranks(void) { return ranks; }
bool shared_ranks_help(void) { return tarn_ranks_rank(ranks) > 0; }

int shared_ranks_end(const cli_command *command, int code) {
  if (tarn_ranks_count(ranks) > 1) {
    // main() says of standard output that it cannot be written.
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
