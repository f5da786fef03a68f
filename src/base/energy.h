// Energy used by the machine while it computes, in joules, from the best available source.
//
// - rapl: counters of the processors' packages and of their memory (Intel and AMD; the kernel's powercap interface,
//   /sys/class/powercap/intel-rapl:*, whose files only root may read since Linux 5.10);
// - nvml: counters of NVIDIA's GPUs (nvmlDeviceGetTotalEnergyConsumption), added where an accelerator computes;
// - battery: the power drawn from a battery (/sys/class/power_supply) while it discharges;
// - estimate: processor seconds of this process, times a stated wattage of one core.
//
// All but the last cover the whole machine, including other users.
#ifndef TARN_BASE_ENERGY_H
#define TARN_BASE_ENERGY_H

#include <stdbool.h>

#include "base/energy_sources.h"
#include "base/status.h"

// Bits, because several sources may measure a piece of work, in turn or together.
enum {
  TARN__ENERGY_RAPL = 1,
  TARN__ENERGY_BATTERY = 2,
  TARN__ENERGY_NVML = 4,
  TARN__ENERGY_ESTIMATE = 8,
  TARN__ENERGY_UNKNOWN = 16  // no source measured a part
};

typedef struct tarn__energy_options {
  const char *root;  // in place of /sys; NULL: TARN_SYSFS of the environment, or /sys
  const char *nvml;  // the library; NULL: the system's libnvidia-ml.so.1
  double watts;      // of one core, for an estimate; 0: none is made
  bool accelerator;  // a device other than the processors computes, so their counters do not cover everything
} tarn__energy_options;

// Zero-initialise or open.
typedef struct tarn__energy {
  tarn__rapl rapl;
  tarn__battery battery;
  tarn__nvml nvml;
  bool open, has_rapl, has_battery, has_nvml, accelerator;
  double watts;
  double cpu;  // processor seconds at the beginning
} tarn__energy;

// Finds the source. A counter without read permission is reported once per process and ignored. Fails with MEMORY or IO
// (a path that is too long).
tarn_status tarn__energy_open(tarn__energy *energy, const tarn__energy_options *options) TARN_CHECKED;
void tarn__energy_close(tarn__energy *energy);

// Marks the beginning and the end of work. In between call tarn__energy_watch() every few seconds (it mostly just reads
// the clock), because counters wrap around: after an unobserved wrap a counter is useless.
void tarn__energy_begin(tarn__energy *energy);
void tarn__energy_watch(tarn__energy *energy);
// The joules since the beginning, and their sources; 0 and UNKNOWN if there was none, or `energy` is not open.
double tarn__energy_end(tarn__energy *energy, int *sources);

// "rapl", "battery+estimate": the sources in words; "" if a part is unknown, or there is none.
enum { TARN__ENERGY_TEXT = 40 };
void tarn__energy_words(char text[TARN__ENERGY_TEXT], int sources);

#endif
