#include "parts/table/part_table.h"

#include <string.h>

#define PART(name) &name.part,
static const tarn__part *const mixers[] = {TARN__MIXERS(PART) NULL};
static const tarn__part *const channels[] = {TARN__CHANNELS(PART) NULL};
static const tarn__part *const norms[] = {TARN__NORMS(PART) NULL};
static const tarn__part *const positions[] = {TARN__POSITIONS(PART) NULL};
#define PLAIN(name, word, ...) &tarn__activation_##word.part,
static const tarn__part *const activations[] = {TARN__ACTIVATION_WORDS(PLAIN) TARN__OWN_ACTIVATIONS(PART) NULL};

static const struct {
  const char *noun;
  const tarn__part *const *entries;  // ends with NULL
} tables[TARN__TABLE_COUNT] = {
    [TARN__TABLE_MIXER] = {"mixer", mixers},
    [TARN__TABLE_CHANNEL] = {"channel mixer", channels},
    [TARN__TABLE_NORM] = {"norm", norms},
    [TARN__TABLE_POSITION] = {"position scheme", positions},
    [TARN__TABLE_ACTIVATION] = {"activation", activations},
};

const tarn__part *tarn__part_at(tarn__part_table table, int index) {
  const tarn__part *const *entries = tables[table].entries;
  int at = 0;
  while (at < index && entries[at]) at++;
  return entries[at];
}

const tarn__part *tarn__part_find(tarn__part_table table, const char *word) {
  const tarn__part *part;
  for (int i = 0; (part = tarn__part_at(table, i)) != NULL; i++)
    if (strcmp(part->word, word) == 0) return part;
  return NULL;
}

const char *tarn__part_noun(tarn__part_table table) { return tables[table].noun; }
