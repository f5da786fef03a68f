#include "text/json_text.h"

#include <string.h>

#include "base/memory.h"
#include "tarn/text.h"

json_t *tarn__json_text(const char *text) {
  void *copy;
  if (tarn__alloc(&copy, TARN__MEMORY_OTHER, 3 * strlen(text) + 1, 1) != TARN_STATUS_OK) return NULL;
  tarn_text_repair(copy, text);
  json_t *string = json_string(copy);
  tarn__free(copy);
  return string;
}
