// A description. Lines "#set KEY=VALUE" at its beginning are overrides, as --set gives them. What is read is written,
// read again and has to be the same.
#include <stdlib.h>
#include <string.h>

#include "config/config_write.h"
#include "fuzz/fuzz.h"
#include "tarn/plan.h"

enum { MOST_OVERRIDES = 4 };

void fuzz_prepare(void) {}

static size_t take_overrides(char *text, const char **overrides) {
  size_t count = 0;
  while (count < MOST_OVERRIDES && strncmp(text, "#set ", 5) == 0) {
    char *end = strchr(text, '\n');
    if (!end) return count;
    *end = '\0';
    overrides[count++] = text + 5;
    text = end + 1;
  }
  return count;
}

static void read_again(const tarn_config *config) {
  char *text, *again;
  tarn_config *second;
  fuzz_must(tarn_config_write(config, &text));
  fuzz_must(tarn_config_parse(&second, "again", text, strlen(text), NULL, 0));
  fuzz_must(tarn_config_write(second, &again));
  FUZZ_REQUIRE(strcmp(text, again) == 0);
  tarn_config_text_close(&text);
  tarn_config_text_close(&again);
  char hash[TARN_CONFIG_HASH], second_hash[TARN_CONFIG_HASH];
  fuzz_must(tarn__config_model_hash(config, hash));
  fuzz_must(tarn__config_model_hash(second, second_hash));
  FUZZ_REQUIRE(strcmp(hash, second_hash) == 0);
  fuzz_must(tarn__config_write_model(config, &text));
  tarn_config_text_close(&text);
  fuzz_must(tarn__config_pattern(config, &config->decoder, &text));
  tarn_config_text_close(&text);
  tarn_config_close(&second);
}

static void plan(tarn_config *config) {
  tarn_plan plan;
  const tarn_plan_options options = {.source_vocab = 50, .target_vocab = 50, .threads = 1};
  if (config->decoder.count + config->encoder.count > 8) return;
  if (fuzz_good(tarn_plan_make(&plan, config, &options))) tarn_plan_close(&plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const char *overrides[MOST_OVERRIDES];
  char *copy = calloc(size + 1, 1);
  tarn_config *config;
  if (!copy) return 0;
  memcpy(copy, data, size);
  size_t count = take_overrides(copy, overrides);
  if (fuzz_good(tarn_config_parse(&config, "fuzz.yaml", (const char *)data, size, overrides, count))) {
    read_again(config);
    (void)fuzz_good(tarn_config_check_training(config));
    if (fuzz_choice(data, size) % 16 == 0) plan(config);
    tarn_config_close(&config);
  }
  free(copy);
  return 0;
}
