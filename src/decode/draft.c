#include "decode/draft.h"

#include <string.h>

#include "base/memory.h"

tarn_status tarn__draft_begin(tarn__draft *d, int32_t first, int32_t last) {
  TARN_TRY(tarn__grow(&d->ids, &d->ids_room, 2, sizeof *d->ids));
  TARN_TRY(tarn__grow(&d->values, &d->values_room, 2, sizeof *d->values));
  d->ids[0] = first;
  d->ids[1] = last;
  d->values[0] = d->values[1] = 0;
  d->length = 2;
  d->holes = d->iterations = d->before_length = 0;
  d->done = false;
  return TARN_STATUS_OK;
}

void tarn__draft_close(tarn__draft *d) {
  tarn__free(d->ids);
  tarn__free(d->values);
  tarn__free(d->before);
  tarn__free(d->spare_ids);
  tarn__free(d->spare_values);
  *d = (tarn__draft){0};
}

tarn_status tarn__draft_iterate(tarn__draft *d) {
  TARN_TRY(tarn__grow(&d->before, &d->before_room, (size_t)d->length, sizeof *d->before));
  memcpy(d->before, d->ids, (size_t)d->length * sizeof *d->ids);
  d->before_length = d->length;
  return TARN_STATUS_OK;
}

void tarn__draft_delete(tarn__draft *d, const int32_t *deleted) {
  int64_t left = 1;
  for (int64_t i = 1; i < d->length; i++) {
    if (i < d->length - 1 && deleted[i - 1]) continue;
    d->ids[left] = d->ids[i];
    d->values[left++] = d->values[i];
  }
  d->length = left;
}

static void exchange(tarn__draft *d) {
  const tarn__draft old = *d;
  d->ids = old.spare_ids;
  d->values = old.spare_values;
  d->ids_room = old.spare_ids_room;
  d->values_room = old.spare_values_room;
  d->spare_ids = old.ids;
  d->spare_values = old.values;
  d->spare_ids_room = old.ids_room;
  d->spare_values_room = old.values_room;
}

tarn_status tarn__draft_insert(tarn__draft *d, const int32_t *gaps, int32_t placeholder, int64_t longest) {
  int64_t holes = 0, left = longest > d->length ? longest - d->length : 0, at = 0;
  for (int64_t i = 0; i + 1 < d->length && holes < left; i++) holes += gaps[i];
  if (holes > left) holes = left;
  left = holes;
  d->holes = holes;
  if (holes == 0) return TARN_STATUS_OK;
  TARN_TRY(tarn__grow(&d->spare_ids, &d->spare_ids_room, (size_t)(d->length + holes), sizeof *d->spare_ids));
  TARN_TRY(tarn__grow(&d->spare_values, &d->spare_values_room, (size_t)(d->length + holes), sizeof *d->spare_values));
  for (int64_t i = 0; i < d->length; i++) {
    d->spare_ids[at] = d->ids[i];
    d->spare_values[at++] = d->values[i];
    for (int32_t k = 0; i + 1 < d->length && k < gaps[i] && left > 0; k++, left--) {
      d->spare_ids[at] = placeholder;
      d->spare_values[at++] = 0;
    }
  }
  exchange(d);
  d->length = at;
  return TARN_STATUS_OK;
}

void tarn__draft_fill(tarn__draft *d, int32_t placeholder, const int32_t *words, const float *values) {
  int64_t hole = 0;
  for (int64_t i = 1; i + 1 < d->length && hole < d->holes; i++) {
    if (d->ids[i] != placeholder) continue;
    d->ids[i] = words[hole];
    d->values[i] = values[hole++];
  }
  d->holes = 0;
}

void tarn__draft_judge(tarn__draft *d, int64_t most) {
  d->iterations++;
  d->done = d->iterations >= most ||
            (d->length == d->before_length && memcmp(d->ids, d->before, (size_t)d->length * sizeof *d->ids) == 0);
}
