// What every other header needs: the marks of public functions, status codes with error messages, and what this build
// of the library is.
#ifndef TARN_STATUS_H
#define TARN_STATUS_H

// What the libraries export: every function of these headers is marked TARN_API. libtarn.so shows libtarn-lab.so more,
// under the version TARN_PRIVATE_..., which is no interface.
#if defined(__GNUC__)
#define TARN_API __attribute__((visibility("default")))
#else
#define TARN_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

// Status codes and error messages of the library.
//
// Every function that can fail returns a tarn_status. The library never exits, aborts or prints: a failure is a
// code plus one line of text, kept per thread until the next failure on that thread.

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

// What this build of the library is and what it runs with.

// The version as "MAJOR.MINOR.PATCH".
TARN_API const char *tarn_version(void);

// Several lines for people and bug reports, each "name: value" and the last without a newline: version, build type,
// compiler, instruction set in use and those compiled, threads, and the libraries with the versions that are loaded
// (SentencePiece: that was compiled against; LAPACK and ARPACK tell no version).
// The string belongs to the library and is rewritten by each call on the same thread.
TARN_API const char *tarn_version_text(void);

#ifdef __cplusplus
}
#endif
#endif
