// The text of a training's progress in a checkpoint's metadata.
#ifndef TARN_STORE_PROGRESS_H
#define TARN_STORE_PROGRESS_H

#include "base/status.h"
#include "store/checkpoint.h"

// JSON, with enough digits to restore every double exactly. Free *text with free().
tarn_status tarn__progress_write(char **text, const tarn__progress *progress) TARN_CHECKED;
// `file` is for messages. Fails with DATA if a number is missing or out of range.
tarn_status tarn__progress_read(tarn__progress *progress, const char *text, const char *file) TARN_CHECKED;

#endif
