#include "text/repair.h"

#include "text/utf8.h"

tarn_status tarn__repair(tarn__repaired *room, const char **line, size_t *length, bool strict, bool *changed) {
  const size_t valid = tarn__utf8_valid(*line, *length);
  if (changed) *changed = valid != *length;
  if (valid == *length) return TARN_STATUS_OK;
  TARN_REQUIRE(!strict, DATA, "invalid UTF-8 at byte %zu of the line", valid + 1);
  size_t need;
  TARN_TRY(tarn__mul_size(&need, *length, 3));
  TARN_TRY(tarn__grow(&room->data, &room->capacity, need, 1));
  *length = tarn__utf8_repair(room->data, *line, *length);
  *line = room->data;
  return TARN_STATUS_OK;
}

tarn_status tarn__repair_copy(tarn__arena *arena, char **out, size_t *out_length, const char *text, size_t length) {
  size_t need;
  void *memory;
  TARN_TRY(tarn__mul_size(&need, length + 1, 3));
  TARN_TRY(tarn__arena_alloc(arena, &memory, need, 1));
  *out = memory;
  *out_length = tarn__utf8_repair(memory, text, length);
  (*out)[*out_length] = '\0';
  return TARN_STATUS_OK;
}
