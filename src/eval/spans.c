#include "eval/spans.h"

#include <stdbool.h>
#include <string.h>

// The type of a label behind its place; NULL: it is none of those with places.
static const char *type_of(const char *name) {
  return name[0] && name[1] == '-' && strchr("BIESLU", name[0]) ? name + 2 : NULL;
}

static char place_of(const char *name) {
  if (strcmp(name, "O") == 0) return 'O';
  if (!type_of(name)) return 'S';
  return name[0] == 'L' ? 'E' : name[0] == 'U' ? 'S' : name[0];
}

static bool same_type(const char *a, const char *b) {
  const char *x = type_of(a), *y = type_of(b);
  return x && y ? strcmp(x, y) == 0 : !x && !y && strcmp(a, b) == 0;
}

void tarn__span_labels(tarn__span_label *labels, const char *const *names, int32_t count) {
  for (int32_t i = 0; i < count; i++) {
    labels[i] = (tarn__span_label){place_of(names[i]), i};
    for (int32_t k = 0; k < i && labels[i].type == i; k++)
      if (same_type(names[i], names[k])) labels[i].type = k;
  }
}

// An entity of the words first .. end-1; none is left where `first` is the number of words.
typedef struct span {
  int64_t first, end;
  int32_t type;
} span;

// Whether a word goes on with the entity of the word before it.
static bool goes_on(tarn__span_label before, tarn__span_label label) {
  return (label.place == 'I' || label.place == 'E') && (before.place == 'B' || before.place == 'I') &&
         before.type == label.type;
}

// The first entity from word `at` on, which does not go on with an earlier one.
static span next_span(const tarn__span_label *labels, const int32_t *of, int64_t at, int64_t words) {
  while (at < words && labels[of[at]].place == 'O') at++;
  span found = {at, at, at < words ? labels[of[at]].type : -1};
  if (at == words) return found;
  for (found.end = at + 1; found.end < words && goes_on(labels[of[found.end - 1]], labels[of[found.end]]);) found.end++;
  return found;
}

tarn__span_counts tarn__spans_count(const tarn__span_label *labels, const int32_t *right, const int32_t *found,
                                    int64_t words) {
  tarn__span_counts counts = {.words = words};
  for (int64_t i = 0; i < words; i++) counts.right_words += right[i] == found[i];
  span a = next_span(labels, right, 0, words), b = next_span(labels, found, 0, words);
  while (a.first < words || b.first < words) {
    const int64_t first = a.first < b.first ? a.first : b.first;
    const bool ours = a.first == first, theirs = b.first == first;
    counts.hits += ours && theirs && a.end == b.end && a.type == b.type;
    counts.right += ours;
    counts.found += theirs;
    if (ours) a = next_span(labels, right, a.end, words);
    if (theirs) b = next_span(labels, found, b.end, words);
  }
  return counts;
}
