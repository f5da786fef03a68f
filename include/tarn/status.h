// Status codes and error messages of the library.
//
// Every function that can fail returns a tarn_status. The library never exits, aborts or prints: a failure is a
// code plus one line of text, kept per thread until the next failure on that thread.
#ifndef TARN_STATUS_H
#define TARN_STATUS_H

#include "tarn/export.h"

#ifdef __cplusplus
extern "C" {
#endif

// One line a code: name and general meaning. The line of text from tarn_error_message() says what happened.
#define TARN_STATUS_MAP(X)                                                 \
  X(OK, "success")                                                         \
  X(USAGE, "a command, an option or a configuration is not valid")         \
  X(DATA, "an input file is malformed, damaged or does not fit the model") \
  X(IO, "the operating system refused to read or write")                   \
  X(MEMORY, "there is not enough memory")                                  \
  X(NUMERIC, "a result is not a finite number")                            \
  X(BUSY, "another process uses the same run directory")                   \
  X(INTERRUPTED, "stopped by request, with its state saved")               \
  X(UNSUPPORTED, "this build or this machine cannot do it")                \
  X(INTERNAL, "a defect in tarn itself")

typedef enum tarn_status {
#define TARN_STATUS_ENUM(name, text) TARN_STATUS_##name,
  TARN_STATUS_MAP(TARN_STATUS_ENUM)
#undef TARN_STATUS_ENUM
      TARN_STATUS_COUNT
} tarn_status;

#if defined(__GNUC__)
#define TARN_CHECKED __attribute__((warn_unused_result))
#else
#define TARN_CHECKED
#endif

// Returns the general meaning of a code as a static string; never NULL.
TARN_API const char *tarn_status_text(tarn_status status);

// Returns the line of text that belongs to the last failure on this thread, without a newline; "" if there was none.
// The string belongs to the library and is valid until the next failure on this thread.
TARN_API const char *tarn_error_message(void);

#ifdef __cplusplus
}
#endif
#endif
