// Energy: counters of a made-up /sys that go round or cannot be read, a battery, GPUs of a made-up NVML, the estimate.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
// cmocka needs the headers above.
#include <cmocka.h>
#include <errno.h>

#include "base/clock.h"
#include "base/energy.h"
#include "base/file.h"
#include "sandbox.h"
#include "tarn/process.h"

// A line of a file of the tree, whose folders are made.
static void put(const char *root, const char *folder, const char *name, const char *text) {
  char path[512];
  snprintf(path, sizeof path, "%s/class/%s", root, folder);
  for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    assert_int_equal(tarn__mkdir(path), TARN_STATUS_OK);
    *slash = '/';
  }
  assert_int_equal(tarn__mkdir(path), TARN_STATUS_OK);
  strcat(strcat(path, "/"), name);
  // In place: the counter stays open.
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_true(fprintf(file, "%s\n", text) > 0);
  assert_int_equal(fclose(file), 0);
}

static void put_domain(const char *root, const char *folder, const char *name, const char *range, const char *energy) {
  char path[256];
  snprintf(path, sizeof path, "powercap/%s", folder);
  put(root, path, "name", name);
  put(root, path, "max_energy_range_uj", range);
  put(root, path, "energy_uj", energy);
}

static void open_energy(tarn__energy *energy, const char *root, double watts) {
  const tarn__energy_options options = {.root = root, .nvml = "/nonexistent/nvml.so", .watts = watts};
  assert_int_equal(tarn__energy_open(energy, &options), TARN_STATUS_OK);
}

static void assert_joules(tarn__energy *energy, double joules, int sources) {
  int by;
  const double got = tarn__energy_end(energy, &by);
  assert_int_equal(by, sources);
  assert_true(fabs(got - joules) <= 1e-9 * fmax(1, joules));
}

#define RANGE "262143328850"

static void sums_packages_and_their_memory(void **state) {
  (void)state;
  tarn__energy energy;
  put_domain("sys", "intel-rapl:0", "package-0", RANGE, "1000000");
  put_domain("sys", "intel-rapl:1", "package-1", RANGE, "2000000");
  put_domain("sys", "intel-rapl:0:0", "dram", RANGE, "5000000");
  put_domain("sys", "intel-rapl:0:1", "core", RANGE, "7000000");
  put_domain("sys", "intel-rapl:2", "psys", RANGE, "8000000");
  put_domain("sys", "intel-rapl-mmio:0", "package-0", RANGE, "9000000");
  open_energy(&energy, "sys", 0);
  tarn__energy_begin(&energy);
  put("sys", "powercap/intel-rapl:0", "energy_uj", "4000000");
  put("sys", "powercap/intel-rapl:1", "energy_uj", "2500000");
  put("sys", "powercap/intel-rapl:0:0", "energy_uj", "5250000");
  put("sys", "powercap/intel-rapl:0:1", "energy_uj", "70000000");
  put("sys", "powercap/intel-rapl:2", "energy_uj", "80000000");
  put("sys", "powercap/intel-rapl-mmio:0", "energy_uj", "90000000");
  assert_joules(&energy, 3.75, TARN__ENERGY_RAPL);
  // What came between the end and the next beginning does not count.
  put("sys", "powercap/intel-rapl:0", "energy_uj", "44000000");
  tarn__energy_begin(&energy);
  put("sys", "powercap/intel-rapl:0", "energy_uj", "44000001");
  assert_joules(&energy, 1e-6, TARN__ENERGY_RAPL);
  tarn__energy_close(&energy);
}

static void counts_on_where_a_counter_goes_round(void **state) {
  (void)state;
  tarn__energy energy;
  put_domain("round", "intel-rapl:0", "package-0", RANGE, "262143000000");
  open_energy(&energy, "round", 0);
  tarn__energy_begin(&energy);
  put("round", "powercap/intel-rapl:0", "energy_uj", "671150");
  assert_joules(&energy, 1.0, TARN__ENERGY_RAPL);
  // In between it was read at a place that the end alone would not tell of.
  tarn__energy_begin(&energy);
  put("round", "powercap/intel-rapl:0", "energy_uj", "262143328850");
  tarn__rapl_read(&energy.rapl);
  put("round", "powercap/intel-rapl:0", "energy_uj", "1000000");
  assert_joules(&energy, 262143.328850 - 0.671150 + 1.0, TARN__ENERGY_RAPL);
  tarn__energy_close(&energy);
}

static void does_not_guess_what_went_round_unseen(void **state) {
  (void)state;
  tarn__energy energy;
  const struct timespec pause = {.tv_nsec = 5000000};
  put_domain("short", "intel-rapl:0", "package-0", "1000000", "5");  // a joule: a millisecond of 1000 W
  open_energy(&energy, "short", 0);
  tarn__energy_begin(&energy);
  nanosleep(&pause, NULL);
  assert_joules(&energy, 0, TARN__ENERGY_UNKNOWN);
  tarn__energy_begin(&energy);
  put("short", "powercap/intel-rapl:0", "energy_uj", "no number");
  assert_joules(&energy, 0, TARN__ENERGY_UNKNOWN);
  tarn__energy_close(&energy);
}

static void says_why_a_counter_is_refused(void **state) {
  (void)state;
  tarn__rapl rapl;
  char refused[256];
  bool found;
  put_domain("zero", "intel-rapl:0", "package-0", "0", "5");
  errno = 0;
  assert_int_equal(tarn__rapl_open(&rapl, &found, refused, sizeof refused, "zero"), TARN_STATUS_OK);
  assert_int_equal(errno, EINVAL);
  assert_false(found);
  assert_string_equal(refused, "zero/class/powercap/intel-rapl:0/max_energy_range_uj");
}

static int messages;
static char last_message[512];

static void on_message(void *user, tarn_log_level level, const char *text) {
  (void)user;
  (void)level;
  messages++;
  snprintf(last_message, sizeof last_message, "%s", text);
}

// Root may read all, so a folder stands where the counter should be.
static void tells_once_of_a_counter_that_cannot_be_read(void **state) {
  (void)state;
  tarn__energy energy;
  put_domain("closed", "intel-rapl:0", "package-0", RANGE, "1");
  put("closed", "powercap/intel-rapl:1", "name", "package-1");
  put("closed", "powercap/intel-rapl:1", "max_energy_range_uj", RANGE);
  assert_int_equal(tarn__mkdir("closed/class/powercap/intel-rapl:1/energy_uj"), TARN_STATUS_OK);
  tarn_log_set(on_message, NULL);
  for (int i = 0; i < 2; i++) {
    open_energy(&energy, "closed", 0);
    tarn__energy_begin(&energy);
    assert_joules(&energy, 0, TARN__ENERGY_UNKNOWN);
    tarn__energy_close(&energy);
  }
  tarn_log_set(NULL, NULL);
  assert_int_equal(messages, 1);
  assert_non_null(strstr(last_message, "closed/class/powercap/intel-rapl:1/energy_uj"));
}

static void estimates_by_processor_seconds(void **state) {
  (void)state;
  tarn__energy energy;
  int by;
  open_energy(&energy, "/nonexistent", 10.0);
  tarn__energy_begin(&energy);
  const double begin = tarn__cpu_seconds();
  while (tarn__cpu_seconds() - begin < 0.01) continue;
  const double joules = tarn__energy_end(&energy, &by), most = (tarn__cpu_seconds() - begin) * 10.0;
  assert_int_equal(by, TARN__ENERGY_ESTIMATE);
  assert_true(joules >= 0.1 && joules <= most + 0.01);
  tarn__energy_close(&energy);
  open_energy(&energy, "/nonexistent", 0);
  tarn__energy_begin(&energy);
  assert_joules(&energy, 0, TARN__ENERGY_UNKNOWN);
  tarn__energy_close(&energy);
  // Closed it knows nothing.
  tarn__energy_begin(&energy);
  assert_joules(&energy, 0, TARN__ENERGY_UNKNOWN);
}

static void put_battery(const char *name, const char *type, const char *status) {
  char folder[64];
  snprintf(folder, sizeof folder, "power_supply/%s", name);
  put("laptop", folder, "type", type);
  put("laptop", folder, "status", status);
}

static void measures_a_battery_while_it_discharges(void **state) {
  (void)state;
  tarn__energy energy;
  int by;
  put_battery("AC", "Mains", "Unknown");
  put_battery("BAT0", "Battery", "Discharging");
  put("laptop", "power_supply/BAT0", "power_now", "12000000");
  put_battery("BAT1", "Battery", "Discharging");
  put("laptop", "power_supply/BAT1", "current_now", "500000");
  put("laptop", "power_supply/BAT1", "voltage_now", "16000000");
  put_battery("mouse", "Battery", "Discharging");
  put("laptop", "power_supply/mouse", "scope", "Device");
  put("laptop", "power_supply/mouse", "power_now", "900000000");
  open_energy(&energy, "laptop", 3.0);
  const double begin = tarn__seconds();
  tarn__energy_begin(&energy);
  const double begun = tarn__seconds();
  const struct timespec pause = {.tv_nsec = 20000000};
  nanosleep(&pause, NULL);
  const double end = tarn__seconds();
  const double joules = tarn__energy_end(&energy, &by);
  assert_int_equal(by, TARN__ENERGY_BATTERY);
  assert_true(joules >= 20.0 * (end - begun) && joules <= 20.0 * (tarn__seconds() - begin));
  tarn__energy_close(&energy);
  // On the mains a battery says nothing, and the estimate stands in.
  put_battery("BAT0", "Battery", "Charging");
  put_battery("BAT1", "Battery", "Full");
  open_energy(&energy, "laptop", 3.0);
  tarn__energy_begin(&energy);
  tarn__energy_end(&energy, &by);
  assert_int_equal(by, TARN__ENERGY_ESTIMATE);
  tarn__energy_close(&energy);
}

// The library of tests/nvml/fake_nvml.c has two GPUs; each call finds 1.5 J more on each.
static void adds_gpus_where_an_accelerator_computes(void **state) {
  (void)state;
  tarn__energy energy;
  const tarn__energy_options gpus = {.root = "/nonexistent", .nvml = FAKE_NVML, .watts = 10.0, .accelerator = true};
  assert_int_equal(tarn__energy_open(&energy, &gpus), TARN_STATUS_OK);
  tarn__energy_begin(&energy);
  assert_joules(&energy, 3.0, TARN__ENERGY_NVML);
  tarn__energy_close(&energy);
  put_domain("both", "intel-rapl:0", "package-0", RANGE, "1000000");
  tarn__energy_options both = gpus;
  both.root = "both";
  assert_int_equal(tarn__energy_open(&energy, &both), TARN_STATUS_OK);
  tarn__energy_begin(&energy);
  put("both", "powercap/intel-rapl:0", "energy_uj", "2000000");
  assert_joules(&energy, 4.0, TARN__ENERGY_NVML | TARN__ENERGY_RAPL);
  tarn__energy_close(&energy);
  // Without its counters that of the processors, and their seconds, are no measure of what an accelerator takes.
  both.nvml = "/nonexistent/nvml.so";
  assert_int_equal(tarn__energy_open(&energy, &both), TARN_STATUS_OK);
  tarn__energy_begin(&energy);
  assert_joules(&energy, 0, TARN__ENERGY_UNKNOWN);
  tarn__energy_close(&energy);
}

static void names_its_sources(void **state) {
  (void)state;
  char text[TARN__ENERGY_TEXT];
  tarn__energy_words(text, TARN__ENERGY_RAPL);
  assert_string_equal(text, "rapl");
  tarn__energy_words(text, TARN__ENERGY_BATTERY | TARN__ENERGY_ESTIMATE);
  assert_string_equal(text, "battery+estimate");
  tarn__energy_words(text, TARN__ENERGY_RAPL | TARN__ENERGY_NVML | TARN__ENERGY_BATTERY | TARN__ENERGY_ESTIMATE);
  assert_string_equal(text, "rapl+nvml+battery+estimate");
  tarn__energy_words(text, TARN__ENERGY_RAPL | TARN__ENERGY_UNKNOWN);
  assert_string_equal(text, "");
  tarn__energy_words(text, 0);
  assert_string_equal(text, "");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sums_packages_and_their_memory),
                                     cmocka_unit_test(counts_on_where_a_counter_goes_round),
                                     cmocka_unit_test(does_not_guess_what_went_round_unseen),
                                     cmocka_unit_test(says_why_a_counter_is_refused),
                                     cmocka_unit_test(tells_once_of_a_counter_that_cannot_be_read),
                                     cmocka_unit_test(estimates_by_processor_seconds),
                                     cmocka_unit_test(measures_a_battery_while_it_discharges),
                                     cmocka_unit_test(adds_gpus_where_an_accelerator_computes),
                                     cmocka_unit_test(names_its_sources)};
  return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
