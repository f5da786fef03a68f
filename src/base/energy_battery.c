// The power drawn from a battery: Documentation/ABI/testing/sysfs-class-power of the kernel.
#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/energy_sources.h"
#include "base/memory.h"

// Seconds for which a reading is reused. Firmware does not measure more often, and is slow to answer.
static const double SERVES = 2.0;

static bool path_of(char path[PATH_MAX], const tarn__battery *battery, const char *entry, const char *file) {
  return snprintf(path, PATH_MAX, "%s/%s/%s", battery->folder, entry, file) < PATH_MAX;
}

static bool says(const tarn__battery *battery, const char *entry, const char *file, const char *word) {
  char path[PATH_MAX], text[64];
  return path_of(path, battery, entry, file) && tarn__energy_line(path, text, sizeof text) && strcmp(text, word) == 0;
}

static bool number_of(const tarn__battery *battery, const char *entry, const char *file, uint64_t *value) {
  char path[PATH_MAX];
  return path_of(path, battery, entry, file) && tarn__energy_number(path, value);
}

// A mouse has a battery too, marked as that of a device.
static bool is_of_machine(const tarn__battery *battery, const char *entry) {
  return *entry != '.' && says(battery, entry, "type", "Battery") && !says(battery, entry, "scope", "Device");
}

// Power of a battery in watts; 0 while it does not discharge, NAN if unknown.
static double power_of(const tarn__battery *battery, const char *entry) {
  uint64_t microwatts, microamperes, microvolts;
  if (!says(battery, entry, "status", "Discharging")) return 0;
  if (number_of(battery, entry, "power_now", &microwatts)) return (double)microwatts * 1e-6;
  if (number_of(battery, entry, "current_now", &microamperes) && number_of(battery, entry, "voltage_now", &microvolts))
    return (double)microamperes * 1e-6 * (double)microvolts * 1e-6;
  return NAN;
}

// Of all batteries; NAN if none discharges. *count: their number.
static double power_now(const tarn__battery *battery, size_t *count) {
  double watts = 0;
  *count = 0;
  DIR *listing = opendir(battery->folder);
  if (!listing) return NAN;
  for (const struct dirent *entry; (entry = readdir(listing));) {
    if (!is_of_machine(battery, entry->d_name)) continue;
    watts += power_of(battery, entry->d_name);
    ++*count;
  }
  closedir(listing);
  return watts > 0 ? watts : NAN;
}

static void measure(tarn__battery *battery, double now) {
  size_t count;
  battery->watts = power_now(battery, &count);
  battery->read = now;
}

tarn_status tarn__battery_open(tarn__battery *battery, bool *found, const char *root) {
  char folder[PATH_MAX];
  size_t count = 0;
  *battery = (tarn__battery){0};
  *found = false;
  TARN_REQUIRE(snprintf(folder, sizeof folder, "%s/class/power_supply", root) < (int)sizeof folder, IO,
               "%s: the path is too long", root);
  TARN_TRY(tarn__strdup(&battery->folder, folder));
  power_now(battery, &count);
  *found = count > 0;
  if (!*found) tarn__battery_close(battery);
  return TARN_STATUS_OK;
}

void tarn__battery_close(tarn__battery *battery) {
  tarn__free(battery->folder);
  *battery = (tarn__battery){0};
}

void tarn__battery_begin(tarn__battery *battery) {
  const double now = tarn__seconds();
  if (battery->read == 0 || now - battery->read > SERVES) measure(battery, now);
  battery->counted = now;
  battery->joules = 0;
  battery->lost = isnan(battery->watts);
}

// The mean of the previous and the present power, over the time in between.
void tarn__battery_read(tarn__battery *battery) {
  const double now = tarn__seconds(), before = battery->watts;
  if (now - battery->read > SERVES) measure(battery, now);
  battery->lost = battery->lost || isnan(battery->watts);
  if (!battery->lost) battery->joules += (before + battery->watts) / 2 * (now - battery->counted);
  battery->counted = now;
}
