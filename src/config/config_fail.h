// What is found wrong with a description after it was read, by those who know the data, the device or the ranks.
#ifndef TARN_CONFIG_CONFIG_FAIL_H
#define TARN_CONFIG_CONFIG_FAIL_H

#include "base/status.h"
#include "description/description.h"

// Fails with `status` and the line "FILE:LINE: KEY: TEXT" of a key such as "valid.metric", with the line of the nearest
// map above it where the key is not in the file, or the override that set it in place of file and line.
tarn_status tarn__config_fail(const tarn_config *config, tarn_status status, const char *key, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
