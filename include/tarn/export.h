// What the library exports: every function of these headers is marked TARN_API, and libtarn.so exports nothing else.
#ifndef TARN_EXPORT_H
#define TARN_EXPORT_H

#if defined(__GNUC__)
#define TARN_API __attribute__((visibility("default")))
#else
#define TARN_API
#endif

#endif
