// The sources of energy measurements, for energy.c: counters of processors and GPUs, and the power of a battery.
#ifndef TARN_BASE_ENERGY_SOURCES_H
#define TARN_BASE_ENERGY_SOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// Reads a small file as a number. A failure sets errno, to EINVAL if there is no number.
bool tarn__energy_number(const char *path, uint64_t *value);
// Reads its first line, which is cut to the size.
bool tarn__energy_line(const char *path, char *text, size_t size);

// --- RAPL

typedef struct tarn__rapl_domain {
  int fd;                // of its energy_uj
  uint64_t range, last;  // microjoules: the value at which it wraps around; the last reading
} tarn__rapl_domain;

typedef struct tarn__rapl {
  tarn__rapl_domain *domains;
  size_t count, capacity;
  double seconds;  // time of the last reading
  double joules;   // since the start
  bool lost;       // a counter could not be read, or may have wrapped around unobserved
} tarn__rapl;

// Opens the packages, and their memory if it is counted separately. *found: there are some, and all are readable.
// *refused is the path of an unreadable counter, or "".
tarn_status tarn__rapl_open(tarn__rapl *rapl, bool *found, char *refused, size_t size, const char *root) TARN_CHECKED;
void tarn__rapl_close(tarn__rapl *rapl);
void tarn__rapl_begin(tarn__rapl *rapl);
void tarn__rapl_read(tarn__rapl *rapl);

// --- battery

typedef struct tarn__battery {
  char *folder;          // /sys/class/power_supply
  double watts;          // of the last reading; NAN: nothing discharges
  double read, counted;  // time of the reading, and the time up to which joules are counted
  double joules;
  bool lost;  // at some point nothing discharged
} tarn__battery;

// *found: the machine has a battery, discharging or not.
tarn_status tarn__battery_open(tarn__battery *battery, bool *found, const char *root) TARN_CHECKED;
void tarn__battery_close(tarn__battery *battery);
void tarn__battery_begin(tarn__battery *battery);
void tarn__battery_read(tarn__battery *battery);

// --- NVML

typedef struct tarn__nvml {
  void *library;
  int (*device)(unsigned index, void **device);
  int (*energy)(void *device, unsigned long long *millijoules);
  int (*shutdown)(void);
  unsigned count;               // GPUs
  unsigned long long at_begin;  // millijoules of all
  bool lost;
} tarn__nvml;

// Loads the library at run time: building needs nothing from NVIDIA. Returns whether there are GPUs with energy
// counters (from Volta on).
bool tarn__nvml_open(tarn__nvml *nvml, const char *library);
void tarn__nvml_close(tarn__nvml *nvml);
void tarn__nvml_begin(tarn__nvml *nvml);
double tarn__nvml_joules(tarn__nvml *nvml);

#endif
