// Counters of NVIDIA's GPUs (NVML API Reference, nvmlDeviceGetTotalEnergyConsumption: millijoules since the driver was
// loaded).
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "base/energy_sources.h"

// A function of the library. ISO C has no cast from an object pointer to a function pointer.
static bool find(void *function, void *library, const char *name) {
  void *symbol = dlsym(library, name);
  memcpy(function, &symbol, sizeof symbol);
  return symbol != NULL;
}

static bool sum(const tarn__nvml *nvml, unsigned long long *millijoules) {
  *millijoules = 0;
  for (unsigned i = 0; i < nvml->count; i++) {
    void *device;
    unsigned long long one;
    if (nvml->device(i, &device) != 0 || nvml->energy(device, &one) != 0) return false;
    *millijoules += one;
  }
  return true;
}

static bool load(tarn__nvml *nvml) {
  int (*begin)(void), (*count)(unsigned *);
  unsigned long long millijoules;
  if (!find(&begin, nvml->library, "nvmlInit_v2") || !find(&count, nvml->library, "nvmlDeviceGetCount_v2") ||
      !find(&nvml->device, nvml->library, "nvmlDeviceGetHandleByIndex_v2") ||
      !find(&nvml->energy, nvml->library, "nvmlDeviceGetTotalEnergyConsumption") ||
      !find(&nvml->shutdown, nvml->library, "nvmlShutdown") || begin() != 0)
    return false;
  if (count(&nvml->count) == 0 && nvml->count > 0 && sum(nvml, &millijoules)) return true;
  nvml->shutdown();
  return false;
}

bool tarn__nvml_open(tarn__nvml *nvml, const char *library) {
  *nvml = (tarn__nvml){.library = dlopen(library ? library : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)};
  if (nvml->library && load(nvml)) return true;
  if (nvml->library) dlclose(nvml->library);
  *nvml = (tarn__nvml){0};
  return false;
}

void tarn__nvml_close(tarn__nvml *nvml) {
  if (nvml->library) {
    nvml->shutdown();
    dlclose(nvml->library);
  }
  *nvml = (tarn__nvml){0};
}

void tarn__nvml_begin(tarn__nvml *nvml) { nvml->lost = !sum(nvml, &nvml->at_begin); }

double tarn__nvml_joules(tarn__nvml *nvml) {
  unsigned long long now;
  if (!sum(nvml, &now) || now < nvml->at_begin) nvml->lost = true;
  return nvml->lost ? 0 : (double)(now - nvml->at_begin) * 1e-3;
}
