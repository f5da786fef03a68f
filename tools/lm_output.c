#include "lm_output.h"

#include <inttypes.h>
#include <stdio.h>

void lm_print_changes(int64_t unknown, int64_t truncated, const char *units, int64_t replaced) {
  if (unknown)
    fprintf(stderr,
            "unknown to the vocabulary: %" PRId64
            " tokens; what they stand for is not predicted, so the figures are too good\n",
            unknown);
  if (truncated) fprintf(stderr, "truncated to the model's longest sentence: %" PRId64 " %s\n", truncated, units);
  if (replaced) fprintf(stderr, "invalid UTF-8 replaced in: %" PRId64 " lines\n", replaced);
}

void lm_print_equal(int64_t equal) {
  if (equal) fprintf(stderr, "pairs of two equal sentences, which count as wrong: %" PRId64 "\n", equal);
}
