// The functions of descriptions: config.h and measure.h.
#include "api.h"
#include "base/memory.h"
#include "config_text.h"
#include "sandbox.h"
#include "tarn/config.h"
#include "tarn/measure.h"

static tarn_config *small;

static int open_all(void **state) {
  if (sandbox_open(state) != 0) return -1;
  sandbox_write("small.yaml", SMALL, strlen(SMALL));
  sandbox_write("sweep.yaml", "base: small.yaml\nvariants: { a: {} }\n", 37);
  works(tarn_config_read(&small, "small.yaml", NULL, 0));
  return 0;
}

static int close_all(void **state) {
  tarn_config_close(&small);
  return sandbox_close(state);
}

static void use_tarn_task_word(void) {
  assert_string_equal(tarn_task_word(0), "translation");
  assert_string_equal(tarn_task_word(tarn_config_task(small)), "translation");
  assert_null(tarn_task_word(-1));
  assert_null(tarn_task_word(1000));
}

static void use_tarn_config_has_use(void) {
  assert_true(tarn_config_has_use(small, "translate") && tarn_config_has_use(small, "attend"));
  assert_false(tarn_config_has_use(small, "score") || tarn_config_has_use(small, "classify"));
  assert_false(tarn_config_has_use(small, "") || tarn_config_has_use(small, "translat"));
}

static void use_tarn_fp32_name(void) {
  assert_string_equal(tarn_fp32_name(TARN_FP32_EXACT), "exact");
  assert_string_equal(tarn_fp32_name(TARN_FP32_SPLIT3), "split3");
  assert_string_equal(tarn_fp32_name(TARN_FP32_TF32), "tf32");
  assert_null(tarn_fp32_name(TARN_FP32_COUNT));
  assert_null(tarn_fp32_name((tarn_fp32)-1));
}

// The value of a key, as text.
static void has(const tarn_config *config, const char *key, const char *value) {
  char *text;
  works(tarn_config_get(config, key, &text));
  assert_string_equal(text, value);
  tarn_config_text_close(&text);
}

static void refuses_read(const char *path, const char *override, tarn_status status, const char *line) {
  tarn_config *config = small;
  refuses(tarn_config_read(&config, path, &override, override ? 1 : 0), status, line);
  assert_null(config);
}

static void use_tarn_config_read(void) {
  static const char *const overrides[] = {"train.lr=0.5", "train.seeds=[1,2]", "train.lr=0.25"};
  tarn_config *config;
  refuses(tarn_config_read(&config, NULL, NULL, 0), TARN_STATUS_USAGE, "a description is needed");
  assert_null(config);
  works(tarn_config_read(&config, "small.yaml", overrides, 3));
  has(config, "train.lr", "0.25");
  has(config, "train.seeds", "[1, 2]");
  has(config, "encoder.layers", "(R L)*2");
  tarn_config_close(&config);
  refuses_read("missing.yaml", NULL, TARN_STATUS_IO, "missing.yaml: cannot read");
  refuses_read("sweep.yaml", NULL, TARN_STATUS_USAGE, "sweep.yaml: this is");
  refuses_read(".", NULL, TARN_STATUS_IO, ".: this is a folder without a run");
  refuses_read("/dev/zero", NULL, TARN_STATUS_USAGE, "/dev/zero: a device, not a file");
  refuses_read("small.yaml", "train.lr", TARN_STATUS_USAGE, "expected key=value, such as train.lr=0.001");
  refuses_read("small.yaml", "train.lrr=1", TARN_STATUS_USAGE, "did you mean \"lr\"");
  refuses_read("small.yaml", "train.lr=fast", TARN_STATUS_USAGE, "fast");
  refuses_read("small.yaml", "model.dropout=1", TARN_STATUS_USAGE, "model.dropout");
  refuses_read("small.yaml", "", TARN_STATUS_USAGE, "expected key=value");
}

static void refuses_text(const char *text, const char *line) {
  tarn_config *config = small;
  refuses(tarn_config_parse(&config, "m.yaml", text, strlen(text), NULL, 0), TARN_STATUS_USAGE, line);
  assert_null(config);
}

static void use_tarn_config_parse(void) {
  tarn_config *config;
  works(tarn_config_parse(&config, "m.yaml", SMALL, strlen(SMALL), NULL, 0));
  has(config, "kinds.R.frozen", "yes");
  tarn_config_close(&config);
  refuses_text("", "m.yaml");
  refuses_text("decoder: { layers: L", "m.yaml:2: not valid YAML");
  refuses_text("decoder: { layers: L }\n", "L");
  refuses_text("decoder: { layers: L }\nkinds:\n  L: { freeze: yes }\n", "m.yaml:3: unknown key \"freeze\" in kinds.L");
  refuses_text("decoder: { layers: L }\nkinds:\n  L: {}\nmodel: { d_model: 7 }\n", "d_model");
  refuses_text("\xFF\xFE", "m.yaml");
  refuses(tarn_config_parse(&config, "m.yaml", SMALL, 10, NULL, 0), TARN_STATUS_USAGE, "m.yaml");
  refuses(tarn_config_parse(&config, "m.yaml", "a\0b", 3, NULL, 0), TARN_STATUS_USAGE, "m.yaml");
  char *large = calloc(1, (1 << 20) + 2);
  assert_non_null(large);
  memset(large, '#', (1 << 20) + 1);
  refuses_text(large, "m.yaml");
  free(large);
}

static void use_tarn_config_close(void) {
  tarn_config *config = NULL;
  tarn_config_close(&config);
  assert_null(config);
  config = parsed(SMALL, NULL);
  tarn_config_close(&config);
  assert_null(config);
  tarn_config_close(&config);
  assert_null(config);
}

static void use_tarn_config_task(void) {
  tarn_config *config = parsed("decoder: { layers: L }\nkinds: { L: {} }\n", NULL);
  assert_string_equal(tarn_task_word(tarn_config_task(config)), "language-model");
  assert_string_equal(tarn_task_word(tarn_config_task(small)), "translation");
  tarn_config_close(&config);
}

static void use_tarn_config_metric(void) {
  tarn_config *config = parsed(SMALL, "valid.metric=ppl");
  assert_string_equal(tarn_measure_of(tarn_config_metric(config))->word, "ppl");
  assert_string_equal(tarn_measure_of(tarn_config_metric(small))->word, "bleu");
  tarn_config_close(&config);
}

static void use_tarn_config_seed(void) {
  tarn_config *config = parsed(SMALL, "train.seed=7");
  assert_int_equal(tarn_config_seed(config), 7);
  assert_int_equal(tarn_config_seed(small), 1);
  tarn_config_close(&config);
}

static void refuses_get(const char *key, const char *words) {
  char *text;
  refuses(tarn_config_get(small, key, &text), TARN_STATUS_USAGE, words);
  assert_null(text);
}

static void use_tarn_config_get(void) {
  has(small, "train.lr", "0.002");
  has(small, "train.seeds", "[]");
  has(small, "data.train", "");
  has(small, "model.task", "");
  has(small, "model.norm", "post");
  has(small, "kinds.L.ffn", "16");
  char *text;
  works(tarn_config_get(small, "decoder", &text));
  assert_non_null(strstr(text, "\"layers\": \"L\""));
  tarn_config_text_close(&text);
  refuses_get("train.lrr", "has no key \"train.lrr\"; did you mean \"lr\"?");
  refuses_get("kinds.X.heads", "has no key \"kinds.X.heads\"");
  refuses_get("train.lr.more", "has no key");
  refuses_get("", "has no key");
}

static void use_tarn_config_number(void) {
  double value;
  works(tarn_config_number(small, "train.lr", &value));
  assert_true(value == 0.002);
  works(tarn_config_number(small, "kinds.R.heads", &value));
  assert_true(value == 2);
  works(tarn_config_number(small, "kinds.R.frozen", &value));
  assert_true(value == 1);
  works(tarn_config_number(small, "train.cache_frozen", &value));
  assert_true(value == 0);
  refuses(tarn_config_number(small, "model.norm", &value), TARN_STATUS_USAGE,
          "model.norm is \"post\", which is no number");
  refuses(tarn_config_number(small, "train.none", &value), TARN_STATUS_USAGE, "has no key");
}

static void use_tarn_config_set(void) {
  tarn_config *config = parsed(SMALL, NULL);
  works(tarn_config_set(&config, "train.lr", "0.5"));
  works(tarn_config_set(&config, "encoder.layers", "R L"));
  has(config, "train.lr", "0.5");
  has(config, "encoder.layers", "R L");
  has(config, "model.d_model", "8");
  const tarn_config *before = config;
  refuses(tarn_config_set(&config, "train.lrr", "1"), TARN_STATUS_USAGE, "did you mean \"lr\"");
  refuses(tarn_config_set(&config, "model.d_model", "much"), TARN_STATUS_USAGE, "much");
  refuses(tarn_config_set(&config, "model.d_model", "7"), TARN_STATUS_USAGE, "d_model");
  assert_ptr_equal(config, before);
  has(config, "model.d_model", "8");
  tarn_config_close(&config);
}

static void use_tarn_config_check_training(void) {
  static const struct {
    const char *override, *line;
  } bad[] = {{"data.train=", "m.yaml: data.train is missing"},
             {"data.vocab=", "m.yaml: data.vocab is missing"},
             {"train.max_updates=0", "m.yaml: nothing ends the training"},
             {"train.patience=3", "m.yaml: train.patience needs data.valid"}};
  static const char text[] = SMALL "data: { vocab: vocab, train: train }\n";
  tarn_config *config = parsed(text, NULL);
  works(tarn_config_check_training(config));
  tarn_config_close(&config);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    config = parsed(text, bad[i].override);
    refuses(tarn_config_check_training(config), TARN_STATUS_USAGE, bad[i].line);
    tarn_config_close(&config);
  }
}

// No description is bad any more when it has been read, so only memory can be missing; the first and a later piece.
static void refuses_without_memory(tarn_status (*write)(const tarn_config *config, char **text)) {
  for (uint64_t n = 1; n <= 2; n++) {
    char *text = (char *)small;
    tarn__memory_fail_after(n);
    refuses(write(small, &text), TARN_STATUS_MEMORY, "memory");
    tarn__memory_fail_after(0);
    assert_null(text);
  }
}

// Read again, a text gives the same text.
static void comes_back(tarn_status (*write)(const tarn_config *config, char **text)) {
  char *text, *again;
  tarn_config *config;
  works(write(small, &text));
  works(tarn_config_parse(&config, "again", text, strlen(text), NULL, 0));
  works(write(config, &again));
  assert_string_equal(text, again);
  tarn_config_text_close(&text);
  tarn_config_text_close(&again);
  tarn_config_close(&config);
}

static void use_tarn_config_write(void) {
  comes_back(tarn_config_write);
  refuses_without_memory(tarn_config_write);
}

static void use_tarn_config_write_json(void) {
  char *text;
  comes_back(tarn_config_write_json);
  works(tarn_config_write_json(small, &text));
  assert_int_equal(text[0], '{');
  tarn_config_text_close(&text);
  refuses_without_memory(tarn_config_write_json);
}

static void use_tarn_config_text_close(void) {
  char *text = NULL;
  tarn_config_text_close(&text);
  assert_null(text);
  works(tarn_config_write(small, &text));
  tarn_config_text_close(&text);
  assert_null(text);
  tarn_config_text_close(&text);
  assert_null(text);
}

// The number of the options, the last of which is left in *option if there are more than `index`.
static size_t count_options(void) {
  tarn_config_option option;
  size_t count = 0;
  while (tarn_config_option_at(count, &option)) count++;
  return count;
}

static tarn_config_option find_option(const char *key) {
  tarn_config_option option;
  for (size_t i = 0; tarn_config_option_at(i, &option); i++)
    if (strcmp(option.key, key) == 0) return option;
  fail_msg("there is no option %s", key);
  return option;
}

static void use_tarn_config_option_at(void) {
  tarn_config_option option = find_option("train.max_updates");
  assert_string_equal(option.type, "integer");
  assert_string_equal(option.value, "50000");
  assert_string_equal(option.unit, "updates");
  const size_t count = count_options();
  assert_true(count > 100);
  assert_false(tarn_config_option_at(count, &option));
  assert_false(tarn_config_option_at(SIZE_MAX, &option));
}

static void use_tarn_config_option_word(void) {
  tarn_config_word word;
  const tarn_config_option schedule = find_option("train.schedule"), updates = find_option("train.max_updates");
  assert_int_equal(schedule.word_count, 4);
  assert_true(tarn_config_option_word(&schedule, 1, &word));
  assert_string_equal(word.word, "cosine");
  assert_int_equal(word.value, 1);
  assert_false(tarn_config_option_word(&schedule, schedule.word_count, &word));
  assert_false(tarn_config_option_word(&schedule, SIZE_MAX, &word));
  assert_false(tarn_config_option_word(&updates, 0, &word));
}

static void use_tarn_measure_of(void) {
  for (int m = 0; m < tarn_measure_count(); m++) assert_int_equal(tarn_measure_of(m)->number, m);
  assert_null(tarn_measure_of(-1));
  const tarn_measure *bleu = tarn_measure_find("bleu");
  assert_string_equal(bleu->word, "bleu");
  assert_true(tarn_measure_find("nll")->less);
}

static void use_tarn_measure_count(void) {
  assert_true(tarn_measure_count() > 0 && tarn_measure_count() <= TARN_MEASURES);
  assert_null(tarn_measure_of(tarn_measure_count()));
}

static void use_tarn_measure_find(void) {
  static const char *const good[] = {"bleu", "valid/bleu", "valid_bleu", "sets/my_set/bleu"};
  static const char *const bad[] = {"", "/", "_", "train/lr", "bleu/", "valid/", "valid/BLEU", "bleu "};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) assert_string_equal(tarn_measure_find(good[i])->word, "bleu");
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    if (tarn_measure_find(bad[i])) fail_msg("\"%s\" is a measure", bad[i]);
}

static void use_tarn_measure_same_name(void) {
  assert_true(tarn_measure_same_name("valid/bleu", "valid_bleu"));
  assert_true(tarn_measure_same_name("valid_bleu", "valid/bleu"));
  assert_true(tarn_measure_same_name("", ""));
  assert_false(tarn_measure_same_name("valid/bleu", "valid/ble"));
  assert_false(tarn_measure_same_name("valid/ble", "valid/bleu"));
  assert_false(tarn_measure_same_name("valid/bleu", ""));
  assert_false(tarn_measure_same_name("", "valid/bleu"));
}

int main(void) {
  static const char *const headers[] = {"config.h", "measure.h", NULL};
  static const api_use uses[] = {
      USE(tarn_fp32_name),
      USE(tarn_task_word),
      USE(tarn_config_has_use),
      USE(tarn_config_read),
      USE(tarn_config_parse),
      USE(tarn_config_close),
      USE(tarn_config_check_training),
      USE(tarn_config_task),
      USE(tarn_config_metric),
      USE(tarn_config_seed),
      USE(tarn_config_get),
      USE(tarn_config_number),
      USE(tarn_config_set),
      USE(tarn_config_write),
      USE(tarn_config_write_json),
      USE(tarn_config_text_close),
      USE(tarn_config_option_at),
      USE(tarn_config_option_word),
      USE(tarn_measure_of),
      USE(tarn_measure_count),
      USE(tarn_measure_find),
      USE(tarn_measure_same_name),
  };
  return api_main(headers, uses, sizeof uses / sizeof *uses, open_all, close_all);
}
