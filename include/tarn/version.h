// What this build of the library is and what it runs with.
#ifndef TARN_VERSION_H
#define TARN_VERSION_H

#include "tarn/export.h"

#ifdef __cplusplus
extern "C" {
#endif

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
