// Only the number: the build information is with the kernels (device/cpu/isa/version.c).
#include "tarn/version.h"

const char *tarn_version(void) { return TARN_VERSION; }
