#include <string.h>

#include "tarn/text.h"

enum { LONGEST = 63 };

static int least(int a, int b) { return a < b ? a : b; }

static int distance(const char *a, const char *b) {
  int la = (int)strnlen(a, LONGEST + 1);
  int lb = (int)strnlen(b, LONGEST + 1);
  if (la > LONGEST || lb > LONGEST) return LONGEST;
  int d[LONGEST + 1][LONGEST + 1];
  for (int i = 0; i <= la; i++) d[i][0] = i;
  for (int j = 0; j <= lb; j++) d[0][j] = j;
  for (int i = 1; i <= la; i++) {
    for (int j = 1; j <= lb; j++) {
      int same = a[i - 1] == b[j - 1];
      int best = least(least(d[i - 1][j], d[i][j - 1]) + 1, d[i - 1][j - 1] + !same);
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) best = least(best, d[i - 2][j - 2] + 1);
      d[i][j] = best;
    }
  }
  return d[la][lb];
}

const char *tarn_text_nearest(const char *word, const char *const *candidates, size_t count) {
  const char *nearest = NULL;
  int smallest = LONGEST;
  for (size_t i = 0; i < count; i++) {
    int d = distance(word, candidates[i]);
    if (d >= smallest) continue;
    size_t lw = strlen(word);
    size_t lc = strlen(candidates[i]);
    int longer = (int)(lw > lc ? lw : lc);
    int allowed = longer / 3 > 1 ? longer / 3 : 1;
    if (d > allowed) continue;
    smallest = d;
    nearest = candidates[i];
  }
  return nearest;
}
