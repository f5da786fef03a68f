// Notes under a table of results.
#include <stdarg.h>
#include <stdio.h>

#include "report/table_build.h"

tarn_status tarn__table_note(struct tarn__results_table_memory *t, const char *format, ...) {
  void *memory;
  va_list args;
  va_start(args, format);
  const int length = vsnprintf(NULL, 0, format, args);
  va_end(args);
  TARN_REQUIRE(length >= 0, INTERNAL, "a note cannot be made of \"%s\"", format);
  TARN_TRY(tarn__arena_alloc(&t->arena, &memory, (size_t)length + 1, 1));
  va_start(args, format);
  vsnprintf(memory, (size_t)length + 1, format, args);
  va_end(args);
  TARN_TRY(tarn__grow(&t->notes, &t->note_capacity, t->public.note_count + 1, sizeof *t->notes));
  t->notes[t->public.note_count++] = memory;
  return TARN_STATUS_OK;
}
