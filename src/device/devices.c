#include "device/devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tarn/text.h"

static const tarn__device *const devices[] = {&tarn__device_cpu, &tarn__device_reference};
enum { DEVICES = sizeof devices / sizeof *devices };

tarn_status tarn__device_find(const tarn__device **device, const char *name) {
  const char *names[DEVICES];
  char all[256] = "";
  *device = NULL;
  for (size_t i = 0; i < DEVICES; i++) {
    if (strcmp(devices[i]->name, name) == 0) *device = devices[i];
    names[i] = devices[i]->name;
    snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? ", " : "", names[i]);
  }
  const char *nearest = *device ? NULL : tarn_text_nearest(name, names, DEVICES);
  TARN_REQUIRE(*device, USAGE, "there is no device \"%s\" in this program; %s%s%sthere are %s", name,
               nearest ? "did you mean \"" : "", nearest ? nearest : "", nearest ? "\"? " : "", all);
  return TARN_STATUS_OK;
}

static const tarn__device *used;

void tarn__device_use(const tarn__device *device) { used = device; }

tarn_status tarn__device_default(const tarn__device **device, tarn__dtype dtype) {
  const char *wanted = getenv("TARN_DEVICE");
  *device = used;
  if (used && used->kernels[dtype]) return TARN_STATUS_OK;
  if (wanted && *wanted) {
    TARN_TRY(tarn__device_find(device, wanted));
    TARN_REQUIRE((*device)->kernels[dtype], UNSUPPORTED, "TARN_DEVICE: the device %s does not compute in %s", wanted,
                 tarn__dtype_name(dtype));
    return TARN_STATUS_OK;
  }
  for (size_t i = 0; i < DEVICES; i++) {
    *device = devices[i];
    if ((*device)->kernels[dtype]) return TARN_STATUS_OK;
  }
  return tarn__fail(TARN_STATUS_UNSUPPORTED, "no device of this program computes in %s", tarn__dtype_name(dtype));
}
