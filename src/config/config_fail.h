// Errors in a description that are found after reading, when data, device or ranks are known.
#ifndef TARN_CONFIG_CONFIG_FAIL_H
#define TARN_CONFIG_CONFIG_FAIL_H

#include "base/status.h"
#include "description/description.h"

// Fails with `status` and the line "FILE:LINE: KEY: TEXT" for a key such as "valid.metric". If the key is not in the
// file, LINE is that of the nearest map above it; if an override set it, the override replaces FILE:LINE.
tarn_status tarn__config_fail(const tarn_config *config, tarn_status status, const char *key, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
