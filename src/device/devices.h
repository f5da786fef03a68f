// The built-in devices, one line each.
#ifndef TARN_DEVICE_DEVICES_H
#define TARN_DEVICE_DEVICES_H

#include "device/device.h"

// Every type, tarn__NAME_type. The first that computes in an element type is the default for it.
#define TARN__DEVICE_TYPES(TYPE) \
  TYPE(cpu)                      \
  TYPE(cuda)                     \
  TYPE(reference)

#define TARN__DEVICE_TYPE(name) extern const tarn__device_type tarn__##name##_type;
TARN__DEVICE_TYPES(TARN__DEVICE_TYPE)
#undef TARN__DEVICE_TYPE

extern const tarn__device tarn__device_cpu;        // the processor, with its best instruction set
extern const tarn__device tarn__device_reference;  // plain C, in float and in double: the reference for the others

// Finds a device by name: a type, optionally with a colon and a number from 0 ("cuda:1"). Fails with USAGE, in one line
// that suggests the nearest name and lists all; and as the type's `open` does.
tarn_status tarn__device_find(const tarn__device **device, const char *name) TARN_CHECKED;

// The default device for models of a type: that of tarn_device_set() (tarn/process.h), that of the environment variable
// TARN_DEVICE, or the first one that computes in the type. Fails with USAGE as above, or with UNSUPPORTED if the
// selected device does not compute in the type.
tarn_status tarn__device_default(const tarn__device **device, tarn__dtype dtype) TARN_CHECKED;

// For tests: makes tarn__device_default() return this device, which need not be built in; NULL resets it.
void tarn__device_use(const tarn__device *device);

#endif
