// The machine and the time of a computation, for readers of its results.
#ifndef TARN_BASE_MACHINE_H
#define TARN_BASE_MACHINE_H

#include <stdio.h>

enum { TARN__PROCESSOR_TEXT = 128, TARN__DATE_TEXT = 24 };

// The name of the processor as the kernel gives it, "Intel(R) Xeon(R) Gold 6448Y", with single spaces; on 64-bit ARM,
// where it gives numbers, "Neoverse-V2", or those if they are not known: "ARM processor 0x41 0xd99"; if there is
// nothing of the kind, the name of the architecture, "aarch64".
void tarn__processor(char name[TARN__PROCESSOR_TEXT]);
// The name from a list as /proc/cpuinfo is one, NULL: none; "": there is none in it.
void tarn__processor_in(char name[TARN__PROCESSOR_TEXT], FILE *list);

// The time of day as "2026-11-23T07:40:12Z" (ISO 8601, in UTC).
void tarn__date(char text[TARN__DATE_TEXT]);

#endif
