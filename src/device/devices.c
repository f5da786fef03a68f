#include "device/devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tarn/device.h"
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

static const tarn__device *used, *chosen;

void tarn__device_use(const tarn__device *device) { used = device; }

tarn_status tarn_device_set(const char *name) {
  chosen = NULL;
  return name ? tarn__device_find(&chosen, name) : TARN_STATUS_OK;
}

const char *tarn_device_name(size_t index) { return index < DEVICES ? devices[index]->name : NULL; }

// The device that was asked for; NULL: none was.
static tarn_status find_wanted(const tarn__device **device) {
  const char *wanted = getenv("TARN_DEVICE");
  *device = chosen;
  if (chosen || !wanted || !*wanted) return TARN_STATUS_OK;
  const tarn_status status = tarn__device_find(device, wanted);
  return status == TARN_STATUS_OK ? status : tarn__fail_prefix(status, "TARN_DEVICE: ");
}

// The first device but `other` that computes in a type; NULL: there is none.
static const tarn__device *first_in(tarn__dtype dtype, const tarn__device *other) {
  for (size_t i = 0; i < DEVICES; i++)
    if (devices[i] != other && devices[i]->kernels[dtype]) return devices[i];
  return NULL;
}

tarn_status tarn__device_default(const tarn__device **device, tarn__dtype dtype) {
  const tarn__device *wanted;
  *device = used;
  if (used && used->kernels[dtype]) return TARN_STATUS_OK;
  TARN_TRY(find_wanted(&wanted));
  const tarn__device *first = first_in(dtype, wanted);
  *device = wanted ? wanted : first;
  TARN_REQUIRE(*device, UNSUPPORTED, "no device of this program computes in %s", tarn__dtype_name(dtype));
  TARN_REQUIRE((*device)->kernels[dtype], UNSUPPORTED, "the device %s does not compute in %s%s%s%s", wanted->name,
               tarn__dtype_name(dtype), first ? ", as " : "", first ? first->name : "", first ? " does" : "");
  return TARN_STATUS_OK;
}
