// The devices that are built in, one line each.
#ifndef TARN_DEVICE_DEVICES_H
#define TARN_DEVICE_DEVICES_H

#include "device/device.h"

// Every type, tarn__NAME_type. The first that computes in a type of numbers is the default for it.
#define TARN__DEVICE_TYPES(TYPE) \
  TYPE(cpu)                      \
  TYPE(reference)

#define TARN__DEVICE_TYPE(name) extern const tarn__device_type tarn__##name##_type;
TARN__DEVICE_TYPES(TARN__DEVICE_TYPE)
#undef TARN__DEVICE_TYPE

extern const tarn__device tarn__device_cpu;        // the processor, with the best of its instruction sets
extern const tarn__device tarn__device_reference;  // plain C, in float and in double: what others are compared with

// The device of a name, which is that of a type, or that with a colon and a number, from 0 ("cuda:1"). Fails with
// USAGE: one line that names the nearest word and all there are; and as the opening of the type does.
tarn_status tarn__device_find(const tarn__device **device, const char *name) TARN_CHECKED;

// The device that models of a type live on where nobody asks for another: that of tarn_device_set() (tarn/process.h),
// of the environment variable TARN_DEVICE, or the first one that computes in the type. Fails with USAGE as above, or
// with UNSUPPORTED where the device that was asked for does not compute in the type.
tarn_status tarn__device_default(const tarn__device **device, tarn__dtype dtype) TARN_CHECKED;

// For tests: tarn__device_default() gives this device, which need not be built in; NULL ends that.
void tarn__device_use(const tarn__device *device);

#endif
