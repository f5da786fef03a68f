#include "device/devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tarn/process.h"
#include "tarn/text.h"

#define ADDRESS(name) &tarn__##name##_type,
static const tarn__device_type *const types[] = {TARN__DEVICE_TYPES(ADDRESS)};
#undef ADDRESS
enum { TYPES = sizeof types / sizeof *types };

// Parses the number after the colon, from 0; -1 if it is not a number.
static int ordinal_of(const char *text) {
  char *end;
  if (*text < '0' || *text > '9') return -1;
  const long number = strtol(text, &end, 10);
  return *end || number > 9999 ? -1 : (int)number;
}

tarn_status tarn__device_find(const tarn__device **device, const char *name) {
  const char *names[TYPES], *colon = strchr(name, ':');
  const size_t length = colon ? (size_t)(colon - name) : strlen(name);
  const tarn__device_type *type = NULL;
  char all[256] = "";
  *device = NULL;
  for (size_t i = 0; i < TYPES; i++) {
    if (strlen(types[i]->name) == length && memcmp(types[i]->name, name, length) == 0) type = types[i];
    names[i] = types[i]->name;
    snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? ", " : "", names[i]);
  }
  const char *nearest = type ? NULL : tarn_text_nearest(name, names, TYPES);
  TARN_REQUIRE(type, USAGE, "there is no device \"%s\" in this program; %s%s%sthere are %s", name,
               nearest ? "did you mean \"" : "", nearest ? nearest : "", nearest ? "\"? " : "", all);
  const int ordinal = colon ? ordinal_of(colon + 1) : -1;
  TARN_REQUIRE(!colon || ordinal >= 0, USAGE,
               "the device \"%s\" has no number behind the colon (expected %s:0 or the like)", name, type->name);
  return type->open(device, ordinal);
}

static const tarn__device *used, *chosen;

void tarn__device_use(const tarn__device *device) { used = device; }

tarn_status tarn_device_set(const char *name) {
  chosen = NULL;
  return name ? tarn__device_find(&chosen, name) : TARN_STATUS_OK;
}

const char *tarn_device_name(size_t index) { return index < TYPES ? types[index]->name : NULL; }

size_t tarn__device_available(const tarn__device *device) {
  size_t available, total;
  return device->type->memory(device, &available, &total) == TARN_STATUS_OK ? available : 0;
}

const char *tarn__device_fp32_lacks(const tarn__device *device, tarn__fp32 fp32) {
  if (fp32 == TARN__FP32_EXACT) return NULL;
  return device->type->fp32_lacks ? device->type->fp32_lacks(device, fp32) : "another device";
}

// The device that the user selected; NULL: none.
static tarn_status find_wanted(const tarn__device **device) {
  const char *wanted = getenv("TARN_DEVICE");
  *device = chosen;
  if (chosen || !wanted || !*wanted) return TARN_STATUS_OK;
  const tarn_status status = tarn__device_find(device, wanted);
  return status == TARN_STATUS_OK ? status : tarn__fail_prefix(status, "TARN_DEVICE: ");
}

// The first device type, other than that of `other`, that computes in an element type; NULL: none.
static const tarn__device_type *first_in(tarn__dtype dtype, const tarn__device *other) {
  for (size_t i = 0; i < TYPES; i++)
    if ((!other || types[i] != other->type) && types[i]->kernels[dtype]) return types[i];
  return NULL;
}

tarn_status tarn__device_default(const tarn__device **device, tarn__dtype dtype) {
  const tarn__device *wanted;
  *device = used;
  if (used && used->type->kernels[dtype]) return TARN_STATUS_OK;
  TARN_TRY(find_wanted(&wanted));
  const tarn__device_type *first = first_in(dtype, wanted);
  TARN_REQUIRE(wanted || first, UNSUPPORTED, "no device of this program computes in %s", tarn__dtype_name(dtype));
  if (!wanted) return first->open(device, 0);
  TARN_REQUIRE(wanted->type->kernels[dtype], UNSUPPORTED, "the device %s does not compute in %s%s%s%s", wanted->name,
               tarn__dtype_name(dtype), first ? ", as " : "", first ? first->name : "", first ? " does" : "");
  *device = wanted;
  return TARN_STATUS_OK;
}
