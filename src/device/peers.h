// Devices of other processes that this one exchanges arrays with, without a copy in host memory: one device a process.
// A device type that has peers implements the four functions of tarn__device_type.
#ifndef TARN_DEVICE_PEERS_H
#define TARN_DEVICE_PEERS_H

#include "device/device.h"

enum { TARN__PEERS_ID = 128 };

typedef struct tarn__peers tarn__peers;

// Consecutive floats in the memory of the device.
typedef struct tarn__peers_span {
  float *values;
  int64_t count;
} tarn__peers_span;

// A sum over processes: first the numbers[0] spans of the part of process 0, then those of process 1, and so on. Each
// process adds up its part, in the order of the processes; with `gathers` all then get all parts. With `bf16` values
// are rounded to bf16 when they are sent, added in fp32, and the sums are rounded again.
typedef struct tarn__peers_sum {
  const tarn__peers_span *spans;
  const int64_t *numbers;  // [size]
  bool bf16, gathers;
  // Asked again and again while the host waits: whether another process is lost, so that the sum is abandoned.
  bool (*given_up)(void *user);
  void *user;
} tarn__peers_sum;

#endif
