// Only the number: the build information is with the kernels (device/cpu/isa/version.c).
#include "tarn/status.h"

const char *tarn_version(void) { return TARN_VERSION; }
