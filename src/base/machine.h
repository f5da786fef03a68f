// The machine and the time of a computation, for readers of its results.
#ifndef TARN_BASE_MACHINE_H
#define TARN_BASE_MACHINE_H

enum { TARN__PROCESSOR_TEXT = 128, TARN__DATE_TEXT = 24 };

// The name of the processor as the kernel gives it, "Intel(R) Xeon(R) Gold 6448Y", with single spaces; if there is
// none, that of the architecture, "aarch64".
void tarn__processor(char name[TARN__PROCESSOR_TEXT]);

// The time of day as "2026-11-23T07:40:12Z" (ISO 8601, in UTC).
void tarn__date(char text[TARN__DATE_TEXT]);

#endif
