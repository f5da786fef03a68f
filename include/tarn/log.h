// Messages that the library wants a person to see: progress, warnings. Nothing is printed unless the caller prints it.
#ifndef TARN_LOG_H
#define TARN_LOG_H

#include "tarn/export.h"

#ifdef __cplusplus
extern "C" {
#endif

// FAILURE: a rank is lost (docs/ranks.md). One rank reports it at once; on all ranks the functions that wait for the
// lost one then fail.
typedef enum tarn_log_level { TARN_LOG_INFO, TARN_LOG_WARNING, TARN_LOG_FAILURE } tarn_log_level;

// Receives one message without a newline. The text is valid during the call only. Called from the thread that
// called into the library and, where several ranks work together, also from the one that watches the other ranks.
typedef void (*tarn_log_fn)(void *user, tarn_log_level level, const char *text);

// Sets the receiver for the whole process (default: none, messages are dropped). Not thread-safe; call it first.
TARN_API void tarn_log_set(tarn_log_fn fn, void *user);

#ifdef __cplusplus
}
#endif
#endif
