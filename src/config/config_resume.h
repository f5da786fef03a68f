// The configuration of a resumed run.
#ifndef TARN_CONFIG_CONFIG_RESUME_H
#define TARN_CONFIG_CONFIG_RESUME_H

#include <stddef.h>

#include "base/status.h"
#include "description/description.h"

// Fails with USAGE, naming the key, if an override changes the model or the course of training.
tarn_status tarn__resume_check_overrides(const char *const *overrides, size_t count) TARN_CHECKED;

// Fails with USAGE, showing the line, if `config` and the configuration `stored` in a checkpoint differ in anything
// that resuming must not change.
tarn_status tarn__resume_check_config(const tarn_config *config, const char *stored, const char *path) TARN_CHECKED;

#endif
