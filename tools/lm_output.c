#include "lm_output.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli.h"

void lm_print_changes(int64_t unknown, int64_t truncated, const char *unit, int64_t replaced) {
  if (unknown)
    fprintf(stderr,
            "unknown to the vocabulary: %s; what they stand for is not predicted, so the figures are too good\n",
            CLI_COUNT(unknown, "token"));
  if (truncated) fprintf(stderr, "truncated to the model's longest sentence: %s\n", CLI_COUNT(truncated, unit));
  if (replaced) fprintf(stderr, "invalid UTF-8 replaced in: %s\n", CLI_COUNT(replaced, "line"));
}

void lm_print_equal(int64_t equal) {
  if (equal) fprintf(stderr, "pairs of two equal sentences, which count as wrong: %" PRId64 "\n", equal);
}
