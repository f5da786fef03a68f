#include "eval/score_references.h"

#include <stdio.h>

tarn_status tarn__references_check(int64_t *number, const tarn__references *references, const char *const *hypotheses,
                                   size_t sentences) {
  TARN_REQUIRE(sentences > 0, DATA, "there is no sentence to score");
  for (size_t s = 0; s < sentences; s++) {
    TARN_REQUIRE(hypotheses[s], DATA, "sentence %zu has no hypothesis", s + 1);
    int64_t present = 0;
    for (size_t r = 0; r < references->count; r++) present += tarn__reference(references, r, s) != NULL;
    TARN_REQUIRE(present > 0, DATA, "sentence %zu has no reference", s + 1);
    if (s == 0)
      *number = present;
    else if (*number != present)
      *number = -1;
  }
  return TARN_STATUS_OK;
}

void tarn__references_text(char text[TARN__NREFS_TEXT], int64_t number) {
  if (number < 0)
    snprintf(text, TARN__NREFS_TEXT, "var");
  else
    snprintf(text, TARN__NREFS_TEXT, "%lld", (long long)number);
}
