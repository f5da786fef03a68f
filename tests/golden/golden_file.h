// Files that the scripts of this folder made with other implementations: tensors in groups, "batch/NAME". Include it
// after cmocka.h.
#ifndef TARN_TESTS_GOLDEN_FILE_H
#define TARN_TESTS_GOLDEN_FILE_H

#include <stdio.h>
#include <string.h>

#include "model/model.h"
#include "store/safetensors.h"

static inline void must(tarn_status status) {
  if (status != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

// NULL: there is none.
static inline const tarn__stored *find(const tarn__safetensors *file, const char *group, const char *name) {
  char full[320];
  snprintf(full, sizeof full, "%s/%s", group, name);
  return tarn__safetensors_find(file, full);
}

static inline const tarn__stored *need(const tarn__safetensors *file, const char *group, const char *name) {
  const tarn__stored *tensor = find(file, group, name);
  if (!tensor) fail_msg("%s has no tensor %s/%s", file->path, group, name);
  return tensor;
}

#endif
