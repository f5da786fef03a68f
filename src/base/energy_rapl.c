// Counters of the processors (powercap, "Running Average Power Limit"): Documentation/power/powercap/powercap.rst of
// the kernel.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/energy_sources.h"
#include "base/memory.h"

// No package uses more, which bounds the time in which a counter cannot have wrapped around.
static const double MOST_WATTS = 1000.0;

bool tarn__energy_line(const char *path, char *text, size_t size) {
  FILE *file = fopen(path, "re");
  if (!file) return false;
  const bool got = fgets(text, (int)size, file) != NULL;
  const int error = errno;
  fclose(file);
  errno = got ? errno : error;
  if (got) text[strcspn(text, "\n")] = '\0';
  return got;
}

static bool to_number(uint64_t *value, const char *text) {
  char *end;
  errno = 0;
  const unsigned long long number = strtoull(text, &end, 10);
  if (end == text || *text == '-' || (*end && *end != '\n')) errno = EINVAL;
  *value = number;
  return errno == 0;
}

bool tarn__energy_number(const char *path, uint64_t *value) {
  char text[64];
  errno = 0;
  if (!tarn__energy_line(path, text, sizeof text)) {
    if (errno == 0) errno = EINVAL;
    return false;
  }
  return to_number(value, text);
}

static bool read_counter(const tarn__rapl_domain *domain, uint64_t *value) {
  char text[64];
  const ssize_t got = pread(domain->fd, text, sizeof text - 1, 0);
  if (got <= 0) return false;
  text[got] = '\0';
  return to_number(value, text);
}

// Whether the domain of that folder is counted: a package, or its memory, which is not part of the package. Packages
// already include their parts (core, uncore), and the whole platform (psys) includes the packages. intel-rapl-mmio:0 is
// the same package through another interface.
static bool is_counted(const char *folder, const char *entry) {
  static const char prefix[] = "intel-rapl:";
  char path[PATH_MAX], name[64];
  if (strncmp(entry, prefix, sizeof prefix - 1) != 0) return false;
  if (snprintf(path, sizeof path, "%s/%s/name", folder, entry) >= (int)sizeof path) return false;
  if (!tarn__energy_line(path, name, sizeof name)) return false;
  return strncmp(name, "package", 7) == 0 || strcmp(name, "dram") == 0;
}

// *refused: the counter that cannot be read, with errno.
static tarn_status add_domain(tarn__rapl *rapl, char *refused, size_t size, const char *folder, const char *entry) {
  char path[PATH_MAX];
  tarn__rapl_domain domain = {.fd = -1};
  TARN_REQUIRE(snprintf(path, sizeof path, "%s/%s/max_energy_range_uj", folder, entry) < (int)sizeof path, IO,
               "%s: the path is too long", folder);
  bool good = tarn__energy_number(path, &domain.range);
  if (good && domain.range == 0) {
    good = false;
    errno = EINVAL;
  }
  if (good) {
    TARN_REQUIRE(snprintf(path, sizeof path, "%s/%s/energy_uj", folder, entry) < (int)sizeof path, IO,
                 "%s: the path is too long", folder);
    domain.fd = open(path, O_RDONLY | O_CLOEXEC);
    good = domain.fd >= 0 && read_counter(&domain, &domain.last);
  }
  if (!good) {
    const int error = errno;
    snprintf(refused, size, "%s", path);
    if (domain.fd >= 0) close(domain.fd);
    errno = error;
    return TARN_STATUS_OK;
  }
  const tarn_status status = tarn__grow(&rapl->domains, &rapl->capacity, rapl->count + 1, sizeof *rapl->domains);
  if (status == TARN_STATUS_OK) rapl->domains[rapl->count++] = domain;
  if (status != TARN_STATUS_OK) close(domain.fd);
  return status;
}

static tarn_status add_all(tarn__rapl *rapl, char *refused, size_t size, const char *folder, DIR *listing) {
  for (const struct dirent *entry; !*refused && (entry = readdir(listing));)
    if (is_counted(folder, entry->d_name)) TARN_TRY(add_domain(rapl, refused, size, folder, entry->d_name));
  return TARN_STATUS_OK;
}

tarn_status tarn__rapl_open(tarn__rapl *rapl, bool *found, char *refused, size_t size, const char *root) {
  char folder[PATH_MAX];
  *rapl = (tarn__rapl){0};
  *found = false;
  *refused = '\0';
  TARN_REQUIRE(snprintf(folder, sizeof folder, "%s/class/powercap", root) < (int)sizeof folder, IO,
               "%s: the path is too long", root);
  DIR *listing = opendir(folder);
  if (!listing) return TARN_STATUS_OK;
  tarn_status status = add_all(rapl, refused, size, folder, listing);
  const int error = errno;
  closedir(listing);
  errno = error;
  *found = status == TARN_STATUS_OK && rapl->count > 0 && !*refused;
  if (!*found) tarn__rapl_close(rapl);
  errno = error;
  return status;
}

void tarn__rapl_close(tarn__rapl *rapl) {
  for (size_t i = 0; i < rapl->count; i++) close(rapl->domains[i].fd);
  tarn__free(rapl->domains);
  *rapl = (tarn__rapl){0};
}

void tarn__rapl_read(tarn__rapl *rapl) {
  const double now = tarn__seconds(), passed = now - rapl->seconds;
  rapl->seconds = now;
  for (size_t i = 0; i < rapl->count; i++) {
    tarn__rapl_domain *domain = &rapl->domains[i];
    uint64_t value;
    if (!read_counter(domain, &value) || value > domain->range || passed * MOST_WATTS * 1e6 > (double)domain->range) {
      rapl->lost = true;
      continue;
    }
    const uint64_t taken = value >= domain->last ? value - domain->last : domain->range - domain->last + value;
    rapl->joules += (double)taken * 1e-6;
    domain->last = value;
  }
}

void tarn__rapl_begin(tarn__rapl *rapl) {
  rapl->joules = 0;
  rapl->lost = false;
  rapl->seconds = tarn__seconds();
  for (size_t i = 0; i < rapl->count; i++)
    if (!read_counter(&rapl->domains[i], &rapl->domains[i].last)) rapl->lost = true;
}
