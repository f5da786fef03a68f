// How the library raises and forwards failures. The only control-flow macros of the project are here.
#ifndef TARN_BASE_STATUS_H
#define TARN_BASE_STATUS_H

#include "tarn/status.h"

// Records the message for this thread and returns `status`, so that `return tarn__fail(...)` reads as one step.
tarn_status tarn__fail(tarn_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Prefixes the recorded message ("train.yaml: " + line) and returns `status`.
tarn_status tarn__fail_prefix(tarn_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Fails with TARN_STATUS_<code> and a formatted line unless `cond` holds.
#define TARN_REQUIRE(cond, code, ...)                                \
  do {                                                               \
    if (!(cond)) return tarn__fail(TARN_STATUS_##code, __VA_ARGS__); \
  } while (0)

// Forwards a failure of `call` unchanged.
#define TARN_TRY(call)                                     \
  do {                                                     \
    tarn_status try_status_ = (call);                      \
    if (try_status_ != TARN_STATUS_OK) return try_status_; \
  } while (0)

#endif
