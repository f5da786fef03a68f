// The table of the measures in measure_list.h.
#include <string.h>

#include "task/measure_entry.h"

#define ENTRY(NAME, word, text) &tarn__measure_##word,
static const tarn__measure *const table[TARN__METRIC_COUNT] = {TARN__MEASURE_LIST(ENTRY)};
#undef ENTRY

_Static_assert((int)TARN__METRIC_COUNT <= (int)TARN_MEASURES,
               "the arrays of scores in include/tarn have a place for each");

const tarn__measure *tarn__measure_at(int metric) { return table[metric]; }

int tarn_measure_count(void) { return TARN__METRIC_COUNT; }

const tarn_measure *tarn_measure_of(int number) {
  return number >= 0 && number < TARN__METRIC_COUNT ? &table[number]->shown : NULL;
}

const tarn_measure *tarn_measure_find(const char *name) {
  // No measure's word contains a separator, and in a name with a slash _ belongs to the surrounding words.
  const char *slash = strrchr(name, '/'), *sign = slash ? slash : strrchr(name, '_');
  const char *word = sign ? sign + 1 : name;
  for (int m = 0; m < TARN__METRIC_COUNT; m++)
    if (strcmp(table[m]->shown.word, word) == 0) return &table[m]->shown;
  return NULL;
}

static char one_sign(char letter) { return letter == '/' ? '_' : letter; }

bool tarn_measure_same_name(const char *name, const char *written) {
  while (*name && one_sign(*name) == one_sign(*written)) {
    name++;
    written++;
  }
  return *name == *written;
}

bool tarn__metric_better(double value, double than, int metric) {
  return table[metric]->shown.less ? value < than : value > than;
}
