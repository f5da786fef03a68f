#include "base/energy.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"

static const struct {
  int source;
  const char *word;
} words[] = {{TARN__ENERGY_RAPL, "rapl"},
             {TARN__ENERGY_NVML, "nvml"},
             {TARN__ENERGY_BATTERY, "battery"},
             {TARN__ENERGY_ESTIMATE, "estimate"}};

void tarn__energy_words(char text[TARN__ENERGY_TEXT], int sources) {
  *text = '\0';
  if (sources & TARN__ENERGY_UNKNOWN) return;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (!(sources & words[i].source)) continue;
    if (*text) strcat(text, "+");
    strcat(text, words[i].word);
  }
}

// Once per process: every training would say the same.
static void note_refusal(const char *path, int error) {
  static atomic_flag noted = ATOMIC_FLAG_INIT;
  if (atomic_flag_test_and_set(&noted)) return;
  tarn__log(TARN_LOG_INFO, "%s: %s; energy is not measured by it (docs/training.md, \"Energy\")", path,
            strerror(error));
}

static const char *root_of(const tarn__energy_options *options) {
  if (options->root) return options->root;
  const char *variable = getenv("TARN_SYSFS");
  return variable && *variable ? variable : "/sys";
}

static tarn_status find_sources(tarn__energy *energy, const tarn__energy_options *options) {
  char refused[PATH_MAX];
  const char *root = root_of(options);
  TARN_TRY(tarn__rapl_open(&energy->rapl, &energy->has_rapl, refused, sizeof refused, root));
  if (*refused) note_refusal(refused, errno);
  if (energy->accelerator) energy->has_nvml = tarn__nvml_open(&energy->nvml, options->nvml);
  // A battery feeds the whole machine, so nothing is added to it.
  if (!energy->has_rapl && !energy->has_nvml)
    TARN_TRY(tarn__battery_open(&energy->battery, &energy->has_battery, root));
  return TARN_STATUS_OK;
}

tarn_status tarn__energy_open(tarn__energy *energy, const tarn__energy_options *options) {
  *energy = (tarn__energy){.open = true, .accelerator = options->accelerator, .watts = options->watts};
  const tarn_status status = find_sources(energy, options);
  if (status != TARN_STATUS_OK) tarn__energy_close(energy);
  return status;
}

void tarn__energy_close(tarn__energy *energy) {
  tarn__rapl_close(&energy->rapl);
  tarn__battery_close(&energy->battery);
  tarn__nvml_close(&energy->nvml);
  *energy = (tarn__energy){0};
}

void tarn__energy_begin(tarn__energy *energy) {
  if (!energy->open) return;
  energy->cpu = tarn__cpu_seconds();
  if (energy->has_rapl) tarn__rapl_begin(&energy->rapl);
  if (energy->has_battery) tarn__battery_begin(&energy->battery);
  if (energy->has_nvml) tarn__nvml_begin(&energy->nvml);
}

void tarn__energy_watch(tarn__energy *energy) {
  const double often = 1.0;  // seconds
  if (energy->has_rapl && tarn__seconds() - energy->rapl.seconds > often) tarn__rapl_read(&energy->rapl);
  if (energy->has_battery && tarn__seconds() - energy->battery.counted > often) tarn__battery_read(&energy->battery);
}

// An accelerator's energy is measured by its own counters, or by a battery that feeds it too.
static double measured(tarn__energy *energy, int *sources) {
  double joules = 0;
  *sources = 0;
  if (energy->has_rapl) tarn__rapl_read(&energy->rapl);
  if (energy->has_battery) tarn__battery_read(&energy->battery);
  if (energy->has_nvml) {
    joules += tarn__nvml_joules(&energy->nvml);
    if (energy->nvml.lost) return 0;
    *sources |= TARN__ENERGY_NVML;
  }
  if (energy->has_battery && !energy->battery.lost) {
    *sources = TARN__ENERGY_BATTERY;
    return energy->battery.joules;
  }
  if (energy->accelerator && !energy->has_nvml) return 0;
  if (energy->has_rapl && energy->rapl.lost) {
    *sources = 0;
    return 0;
  }
  if (energy->has_rapl) *sources |= TARN__ENERGY_RAPL;
  return joules + energy->rapl.joules;
}

double tarn__energy_end(tarn__energy *energy, int *sources) {
  *sources = TARN__ENERGY_UNKNOWN;
  if (!energy->open) return 0;
  const double joules = measured(energy, sources);
  if (*sources) return joules;
  // Processor seconds say nothing about an accelerator.
  const bool estimates = energy->watts > 0 && !energy->accelerator;
  *sources = estimates ? TARN__ENERGY_ESTIMATE : TARN__ENERGY_UNKNOWN;
  return estimates ? (tarn__cpu_seconds() - energy->cpu) * energy->watts : 0;
}
