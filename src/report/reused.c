#include "report/reused.h"

#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json_io.h"
#include "run/names.h"
#include "text/json_text.h"

tarn_status tarn__reused_write(const char *folder, const char *from) {
  char path[PATH_MAX];
  TARN_TRY(tarn__path_join(path, folder, TARN__RUN_REUSED));
  json_t *object = json_pack("{s:o}", "from", tarn__json_text(from));
  char *text = tarn__json_dump(object, JSON_INDENT(2));
  json_decref(object);
  TARN_REQUIRE(text, MEMORY, "out of memory: %s", path);
  const tarn_status status = tarn__file_write(path, text, strlen(text));
  free(text);
  return status;
}
