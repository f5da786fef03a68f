// The common base of all headers: marks of public functions, status codes with error messages, and build information.
#ifndef TARN_STATUS_H
#define TARN_STATUS_H

// Marks the functions exported by the libraries: all functions of these headers. libtarn.so exports more to
// libtarn-lab.so, under the version TARN_PRIVATE_..., which is not a public interface.
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
// Every function that can fail returns a tarn_status. The library never exits, aborts or prints: a failure is a code
// plus a one-line message, kept per thread until the next failure on that thread.

// One line per code: name and general meaning. tarn_error_message() gives the details.
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

// Returns the general meaning of a code, a static string; never NULL.
TARN_API const char *tarn_status_text(tarn_status status);

// Returns the message of the last failure on this thread, without a newline; "" if there was none. The string is owned
// by the library and valid until the next failure on this thread.
TARN_API const char *tarn_error_message(void);

// Information about this build of the library and its environment.

// The version as "MAJOR.MINOR.PATCH".
TARN_API const char *tarn_version(void);

// Several lines for users and bug reports, each "name: value" and the last without a newline: version, build type,
// compiler, instruction set in use and those compiled, threads, and the libraries with the versions loaded (for
// SentencePiece the version compiled against; LAPACK and ARPACK report no version). The string is owned by the library
// and overwritten by the next call on the same thread.
TARN_API const char *tarn_version_text(void);

#ifdef __cplusplus
}
#endif
#endif
