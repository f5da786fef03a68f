// Energy that the machine takes while it computes, in joules, from the best source that there is.
//
// - rapl: counters of the processors' packages and of their memory (Intel and AMD; the kernel's powercap interface,
//   /sys/class/powercap/intel-rapl:*, whose files only root may read since Linux 5.10);
// - nvml: counters of NVIDIA's GPUs (nvmlDeviceGetTotalEnergyConsumption), added where an accelerator computes;
// - battery: the power that a battery gives (/sys/class/power_supply), as long as it discharges;
// - estimate: processor seconds of this process, times a stated wattage of one core.
//
// All but the last are of the whole machine, whoever uses it.
#ifndef TARN_BASE_ENERGY_H
#define TARN_BASE_ENERGY_H

#include <stdbool.h>

#include "base/energy_sources.h"
#include "base/status.h"

// Bits, for work that several sources measured one after the other or together.
enum {
  TARN__ENERGY_RAPL = 1,
  TARN__ENERGY_BATTERY = 2,
  TARN__ENERGY_NVML = 4,
  TARN__ENERGY_ESTIMATE = 8,
  TARN__ENERGY_UNKNOWN = 16  // a part was measured by none
};

typedef struct tarn__energy_options {
  const char *root;  // in place of /sys; NULL: TARN_SYSFS of the environment, or /sys
  const char *nvml;  // the library; NULL: the system's libnvidia-ml.so.1
  double watts;      // of one core, for an estimate; 0: none is made
  bool accelerator;  // another device than the processors computes, so their counters do not tell everything
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

// Finds the source. A counter that is there and must not be read is told of in one message of the process, and counts
// as none. Fails with MEMORY or IO (a path that is too long).
tarn_status tarn__energy_open(tarn__energy *energy, const tarn__energy_options *options) TARN_CHECKED;
void tarn__energy_close(tarn__energy *energy);

// Work begins, and ends; in between tarn__energy_watch() wants to be called every few seconds (it looks at the clock,
// and rarely at more), because counters go round: one that may have done so unseen says nothing.
void tarn__energy_begin(tarn__energy *energy);
void tarn__energy_watch(tarn__energy *energy);
// The joules since the beginning, and what they were measured by; 0 and UNKNOWN where nothing did, or `energy` is not
// open.
double tarn__energy_end(tarn__energy *energy, int *sources);

// "rapl", "battery+estimate": the sources in words; "" where a part is unknown, or there is none.
enum { TARN__ENERGY_TEXT = 40 };
void tarn__energy_words(char text[TARN__ENERGY_TEXT], int sources);

#endif
