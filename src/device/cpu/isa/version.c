#include "tarn/status.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <jansson.h>
#include <pcre2.h>
#include <stdio.h>
#include <string.h>
#include <unicode/uversion.h>
#include <xxhash.h>
#include <yaml.h>

#include "base/threads.h"
#include "build_info.h"
#include "device/cpu/isa/isa.h"

static void pcre2_version(char text[64]) {
  // "10.42 2022-12-11"; the date is not needed.
  if (pcre2_config(PCRE2_CONFIG_VERSION, NULL) > 64 || pcre2_config(PCRE2_CONFIG_VERSION, text) < 0) *text = '\0';
  text[strcspn(text, " ")] = '\0';
}

const char *tarn_version_text(void) {
  static _Thread_local char text[2048];
  UVersionInfo icu_numbers;
  char icu[U_MAX_VERSION_STRING_LENGTH];
  char pcre2[64];
  u_getVersion(icu_numbers);
  u_versionToString(icu_numbers, icu);
  pcre2_version(pcre2);
  const char *sanitizers = TARN_BUILD_SANITIZERS;
  unsigned xxhash = XXH_versionNumber();
  snprintf(text, sizeof text,
           "tarn: %s\n"
           "build: %s, %s%s%s\n"
           "instruction set: %s (compiled for %s)\n"
           "threads: %d (OpenMP %d)\n"
           "SentencePiece: %s\n"
           "libyaml: %s\n"
           "Jansson: %s\n"
           "PCRE2: %s\n"
           "ICU: %s\n"
           "xxHash: %u.%u.%u",
           TARN_VERSION, TARN_BUILD_TYPE, TARN_BUILD_COMPILER, *sanitizers ? ", sanitizers " : "", sanitizers,
           tarn__isa_name(), TARN_BUILD_KERNELS, tarn__threads(), _OPENMP, TARN_BUILD_SENTENCEPIECE,
           yaml_get_version_string(), jansson_version_str(), pcre2, icu, xxhash / 10000, xxhash / 100 % 100,
           xxhash % 100);
  return text;
}
