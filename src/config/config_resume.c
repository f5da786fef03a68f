#include "config/config_resume.h"

#include <stdbool.h>
#include <string.h>

// Keys that may change when a run is resumed, each as the override that resets its default.
static const char *const free_keys[] = {
    "train.max_updates=",
    "train.max_epochs=",
    "train.max_minutes=",
    "train.log_every=",
    "train.tensorboard=",
    "train.save_every=",
    "train.keep_last=",
    "train.average=",
    "train.patience=",
    "train.recompute=",
    "train.threads=",
    "train.shard_optimiser=",
    "train.cache_frozen=",
    "train.core_watts=",
    "train.co2_per_kwh=",
    "valid.every=",
    "data.vocab=",
    "data.target_vocab=",
    "data.train=",
    "data.valid=",
    "data.valid_reference=",
    "dynamics.every=",
    "translate.beam=",
    "translate.length_penalty=",
    "translate.max_len_a=",
    "translate.max_len_b=",
    "translate.max_tokens=",
    "translate.min_length=",
    "translate.early_stopping=",
    "translate.allow_unk=",
    "translate.iterations=",
    "translate.length_beam=",
    "translate.placeholder_penalty=",
};
enum { FREE_KEYS = sizeof free_keys / sizeof *free_keys };

// The same for every set, after its name.
static const char *const free_set_keys[] = {".data=", ".reference=", ".every="};
enum { FREE_SET_KEYS = sizeof free_set_keys / sizeof *free_set_keys };

// May change, but has no default: it says whether there are exponents at all.
static const char free_input[] = "dynamics.input=";

// `key` is the key of an override, including its "=".
static bool is_free(const char *key, size_t length) {
  static const char sets[] = "sets.";
  for (size_t k = 0; k < FREE_KEYS; k++)
    if (strlen(free_keys[k]) == length && strncmp(free_keys[k], key, length) == 0) return true;
  if (strlen(free_input) == length && strncmp(free_input, key, length) == 0) return true;
  if (strncmp(key, sets, strlen(sets)) != 0) return false;
  const size_t name = strlen(sets) + strcspn(key + strlen(sets), ".=");
  for (size_t k = 0; k < FREE_SET_KEYS; k++)
    if (name + strlen(free_set_keys[k]) == length && strncmp(free_set_keys[k], key + name, length - name) == 0)
      return true;
  return false;
}

tarn_status tarn__resume_check_overrides(const char *const *overrides, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const char *equals = strchr(overrides[i], '=');
    size_t length = equals ? (size_t)(equals - overrides[i]) + 1 : strlen(overrides[i]);
    TARN_REQUIRE(
        !equals || is_free(overrides[i], length), USAGE,
        "%.*s cannot change when a run goes on; limits (train.max_updates, ...), train.log_every, "
        "train.save_every, train.keep_last, train.average, train.patience, train.recompute, train.shard_optimiser, "
        "train.threads, train.tensorboard, train.cache_frozen, train.core_watts, train.co2_per_kwh, "
        "valid.every, data.*, sets.NAME.data, sets.NAME.reference, sets.NAME.every, dynamics.input, dynamics.every and "
        "translate.* can",
        (int)length - 1, overrides[i]);
  }
  return TARN_STATUS_OK;
}

// The text of a configuration with defaults for everything that may change; *dynamics: it asks for exponents.
static tarn_status neutral(char **text, bool *dynamics, const char *name, const char *yaml) {
  tarn_config *config;
  TARN_TRY(tarn_config_parse(&config, name, yaml, strlen(yaml), free_keys, FREE_KEYS));
  for (int32_t i = 0; i < config->set_count; i++) {
    config->sets[i].data = config->sets[i].reference = NULL;
    config->sets[i].every = config->valid.every;
  }
  *dynamics = config->dynamics.input != NULL;
  if (*dynamics) config->dynamics.input = "";
  tarn_status status = tarn_config_write(config, text);
  tarn_config_close(&config);
  return status;
}

// A curve of exponents has a beginning and an end.
static tarn_status check_dynamics(bool now, bool then, const char *path) {
  TARN_REQUIRE(now == then, USAGE,
               "%s was trained %s dynamics.input, and exponents can neither be added nor removed when a run goes on; "
               "%s",
               path, then ? "with" : "without", then ? "put it back" : "leave it out");
  return TARN_STATUS_OK;
}

// Compares both texts line by line, to show the first difference.
static tarn_status compare(const char *now, const char *then, const char *path) {
  while (*now && *then) {
    now += strspn(now, " ");
    then += strspn(then, " ");
    size_t now_length = strcspn(now, "\n");
    size_t then_length = strcspn(then, "\n");
    TARN_REQUIRE(now_length == then_length && strncmp(now, then, now_length) == 0, USAGE,
                 "%s was trained with \"%.*s\", but the run's configuration now says \"%.*s\"; put it back to go on",
                 path, (int)then_length, then, (int)now_length, now);
    now += now_length + (now[now_length] == '\n');
    then += then_length + (then[then_length] == '\n');
  }
  TARN_REQUIRE(*now == *then, USAGE, "%s was trained with another configuration than the run's", path);
  return TARN_STATUS_OK;
}

tarn_status tarn__resume_check_config(const tarn_config *config, const char *stored, const char *path) {
  char *written = NULL;
  char *now = NULL;
  char *then = NULL;
  bool dynamics = false, had = false;
  tarn_status status = tarn_config_write(config, &written);
  if (status == TARN_STATUS_OK) status = neutral(&now, &dynamics, config->name, written);
  if (status == TARN_STATUS_OK) status = neutral(&then, &had, path, stored);
  if (status == TARN_STATUS_OK) status = check_dynamics(dynamics, had, path);
  if (status == TARN_STATUS_OK) status = compare(now, then, path);
  tarn_config_text_close(&written);
  tarn_config_text_close(&now);
  tarn_config_text_close(&then);
  return status;
}
