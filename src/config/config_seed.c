#include "config/config_seed.h"

#include <string.h>

static const char PLACE[] = "{seed}";

bool tarn__config_has_seed(const char *path) { return path && strstr(path, PLACE); }

void tarn__config_place_seed(tarn__buffer *out, const char *path, int64_t seed) {
  for (const char *at; (at = strstr(path, PLACE)) != NULL; path = at + strlen(PLACE)) {
    tarn__buffer_put(out, path, (size_t)(at - path));
    tarn__buffer_format(out, "%lld", (long long)seed);
  }
  tarn__buffer_add(out, path);
}

void tarn__config_init_from(tarn__buffer *out, const char *path) {
  tarn__buffer_add(out, "train.init_from=\"");
  for (; *path; path++) {
    if (*path == '"' || *path == '\\') tarn__buffer_add(out, "\\");
    tarn__buffer_put(out, path, 1);
  }
  tarn__buffer_add(out, "\"");
}
