// What the library gives to other programs: TARN_API stands before every function of these headers, and libtarn.so
// exports nothing else.
#ifndef TARN_EXPORT_H
#define TARN_EXPORT_H

#if defined(__GNUC__)
#define TARN_API __attribute__((visibility("default")))
#else
#define TARN_API
#endif

#endif
