#include "decode/forced.h"

#include <string.h>

// The longest beginning of a phrase that its first `progress` tokens and then `id` end with.
static int32_t advanced(const tarn__phrase *phrase, int32_t progress, int32_t id) {
  if (progress == phrase->length) return progress;
  for (int32_t length = progress + 1; length > 0; length--)
    if (phrase->ids[length - 1] == id &&
        memcmp(phrase->ids, phrase->ids + (progress + 1 - length), (size_t)(length - 1) * sizeof *phrase->ids) == 0)
      return length;
  return 0;
}

int64_t tarn__forced_advance(const tarn__forced *forced, int32_t *next, const int32_t *progress, int32_t id) {
  int64_t sum = 0;
  for (int64_t i = 0; i < forced->count; i++) sum += next[i] = advanced(&forced->phrases[i], progress[i], id);
  return sum;
}

int64_t tarn__forced_need(const tarn__forced *forced, const int32_t *progress) {
  int64_t tokens = 0, furthest = 0;
  for (int64_t i = 0; i < forced->count; i++) {
    if (progress[i] == forced->phrases[i].length) continue;
    tokens += forced->phrases[i].length;
    if (progress[i] > furthest) furthest = progress[i];
  }
  return tokens - furthest;
}

void tarn__forced_wanted(const tarn__forced *forced, int32_t *ids, const int32_t *progress) {
  int64_t count = 0;
  for (int64_t i = 0; i < forced->count; i++) {
    const tarn__phrase *phrase = &forced->phrases[i];
    bool listed = progress[i] == phrase->length;
    for (int64_t k = 0; k < count && !listed; k++) listed = ids[k] == phrase->ids[progress[i]];
    if (!listed) ids[count++] = phrase->ids[progress[i]];
  }
  while (count < forced->count) ids[count++] = -1;
}
