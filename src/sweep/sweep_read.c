// The sweep file: its own keys, and the changes of each variant as keys of a configuration.
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json_io.h"
#include "base/threads.h"
#include "run/names.h"
#include "sweep/spec.h"
#include "tarn/text.h"

enum { PATH_TEXT = 256, LARGEST_FILE = 1 << 20, MOST_THREADS = 4096, MOST_LISTED = 8 };

static const char *const equalize_names[TARN_SWEEP_EQUALIZE_COUNT] = {"no", "parameters", "trained", "flops"};

static const char *const trade_names[TARN_SWEEP_TRADE_COUNT] = {"ffn", "layers", "heads"};

const char *tarn_sweep_trade_name(tarn_sweep_trade trade) {
  return (unsigned)trade < TARN_SWEEP_TRADE_COUNT ? trade_names[trade] : NULL;
}

const char *tarn_sweep_equalize_name(tarn_sweep_equalize equalize) {
  return (unsigned)equalize < TARN_SWEEP_EQUALIZE_COUNT ? equalize_names[equalize] : NULL;
}

tarn_status tarn__sweep_add_text(tarn__sweep_edits *edits, const char *text) {
  TARN_TRY(tarn__grow(&edits->items, &edits->capacity, edits->count + 1, sizeof *edits->items));
  edits->items[edits->count++] = (tarn__config_edit){.text = text};
  return TARN_STATUS_OK;
}

tarn_status tarn__sweep_text(tarn_sweep *sweep, const char **out, const char *format, ...) {
  char text[PATH_MAX + 256];
  char *copy;
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  TARN_REQUIRE(length >= 0 && length < (int)sizeof text, USAGE, "a text of the sweep is too long: %.80s...", text);
  TARN_TRY(tarn__arena_strdup(&sweep->memory->arena, &copy, text));
  *out = copy;
  return TARN_STATUS_OK;
}

tarn_status tarn__sweep_unknown_word(const tarn__yaml_node *node, const char *what, const char *word,
                                     const char *const *names, size_t count) {
  char shown[TARN__YAML_SHOWN];
  const char *near = tarn_text_nearest(word, names, count);
  tarn__yaml_show(shown, word);
  if (near) return tarn__yaml_fail(node, "unknown %s \"%s\"; did you mean \"%s\"?", what, shown, near);
  // Few words are all listed.
  char list[256] = "";
  size_t used = 0;
  for (size_t i = 0; i < count && count <= MOST_LISTED && used < sizeof list; i++)
    used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i == 0 ? "; expected one of " : ", ", names[i]);
  return tarn__yaml_fail(node, "unknown %s \"%s\"%s", what, shown, used < sizeof list ? list : "");
}

tarn_status tarn__sweep_check_keys(const tarn__yaml_node *map, const char *what, const char *const *names,
                                   size_t count) {
  for (const tarn__yaml_node *entry = map->first; entry; entry = entry->next) {
    size_t i = 0;
    while (i < count && strcmp(names[i], entry->key) != 0) i++;
    if (i == count) return tarn__sweep_unknown_word(entry, what, entry->key, names, count);
  }
  return TARN_STATUS_OK;
}

// The text of a scalar; NULL if the key is absent or empty.
tarn_status tarn__sweep_read_text(const tarn__yaml_node *map, const char *key, const char **out) {
  const tarn__yaml_node *node = tarn__yaml_get(map, key);
  *out = NULL;
  if (tarn__yaml_is_empty(node)) return TARN_STATUS_OK;
  if (node->type != TARN__YAML_SCALAR) return tarn__yaml_fail(node, "%s: expected one value", key);
  *out = node->text;
  return TARN_STATUS_OK;
}

tarn_status tarn__sweep_read_integer(const tarn__yaml_node *node, const char *key, int64_t least, int64_t most,
                                     int64_t *out) {
  int64_t value;
  const char *text = node->type == TARN__YAML_SCALAR ? node->text : "";
  if (!tarn_text_integer(&value, text) || value < least || value > most)
    return tarn__yaml_fail(node, "%s: expected a whole number from %lld to %lld", key, (long long)least,
                           (long long)most);
  *out = value;
  return TARN_STATUS_OK;
}

static tarn_status read_optional_integer(const tarn__yaml_node *map, const char *key, int64_t least, int64_t most,
                                         int64_t *out) {
  const tarn__yaml_node *node = tarn__yaml_get(map, key);
  return tarn__yaml_is_empty(node) ? TARN_STATUS_OK : tarn__sweep_read_integer(node, key, least, most, out);
}

bool tarn_sweep_time_parse(double *seconds, const char *text) {
  static const struct {
    const char *name;
    double seconds;
  } units[] = {{"s", 1},       {"sec", 1},      {"seconds", 1}, {"second", 1},  {"min", 60},
               {"minute", 60}, {"minutes", 60}, {"h", 3600},    {"hour", 3600}, {"hours", 3600}};
  char *unit = NULL;
  double value = strtod(text, &unit);
  unit += strspn(unit, " ");
  for (size_t i = 0; unit != text && i < sizeof units / sizeof *units; i++) {
    if (strcmp(units[i].name, unit) != 0) continue;
    *seconds = value * units[i].seconds;
    return isfinite(value) && *seconds > 0 && *seconds <= 1e7 * 60;
  }
  return false;
}

static tarn_status read_budget(const tarn__yaml_node *node, double *seconds) {
  char shown[TARN__YAML_SHOWN];
  const char *text = node->type == TARN__YAML_SCALAR ? node->text : "";
  if (tarn_sweep_time_parse(seconds, text)) return TARN_STATUS_OK;
  return tarn__yaml_fail(node,
                         "budget: expected a time above 0 with its unit, such as 10 min, 90 s or 1.5 h, not \"%s\"",
                         tarn__yaml_show(shown, text));
}

// One of the words of a key.
tarn_status tarn__sweep_read_word(const tarn__yaml_node *node, const char *key, const char *const *names, int count,
                                  int *out) {
  const char *word = node->type == TARN__YAML_SCALAR ? node->text : "";
  for (int i = 0; i < count; i++) {
    if (strcmp(word, names[i]) != 0) continue;
    *out = i;
    return TARN_STATUS_OK;
  }
  return tarn__sweep_unknown_word(node, key, word, names, (size_t)count);
}

// "parameters", or { by: parameters, change: layers }.
static tarn_status read_equalize(const tarn__yaml_node *node, tarn__sweep_equal *out) {
  static const char *const keys[] = {"by", "change"};
  int by = TARN_SWEEP_EQUALIZE_NO, trade = TARN_SWEEP_TRADE_FFN;
  if (tarn__yaml_is_empty(node)) return TARN_STATUS_OK;
  if (node->type == TARN__YAML_MAP) {
    TARN_TRY(tarn__sweep_check_keys(node, "key in equalize", keys, sizeof keys / sizeof *keys));
    const tarn__yaml_node *change = tarn__yaml_get(node, "change");
    if (!tarn__yaml_is_empty(change))
      TARN_TRY(tarn__sweep_read_word(change, "equalize.change", trade_names, TARN_SWEEP_TRADE_COUNT, &trade));
    const tarn__yaml_node *measure = tarn__yaml_get(node, "by");
    if (tarn__yaml_is_empty(measure))
      return tarn__yaml_fail(node, "equalize: expected what is to be equal, by: parameters, trained or flops");
    node = measure;
  }
  TARN_TRY(tarn__sweep_read_word(node, "equalize", equalize_names, TARN_SWEEP_EQUALIZE_COUNT, &by));
  *out = (tarn__sweep_equal){(tarn_sweep_equalize)by, (tarn_sweep_trade)trade};
  return TARN_STATUS_OK;
}

// Settings that the sweep makes for all runs.
static tarn_status refuse_reserved(const tarn_sweep *sweep, const char *path, const tarn__yaml_node *node) {
  static const struct {
    const char *path, *instead;
  } reserved[] = {{"train.seed", "seeds"}, {"train.seeds", "seeds"}, {"train.threads", "threads"}};
  for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++) {
    if (strcmp(path, reserved[i].path) == 0)
      return tarn__yaml_fail(node, "%s is not set here: it comes from the sweep's key %s", path, reserved[i].instead);
  }
  if (sweep->budget_seconds > 0 && strcmp(path, "train.max_minutes") == 0)
    return tarn__yaml_fail(node, "train.max_minutes is not set here: it comes from the sweep's key budget");
  return TARN_STATUS_OK;
}

// Whether a path is a key of the configuration, even with a map as its value (train.freeze); else it contains keys.
static bool is_option(const char *path) {
  char general[PATH_TEXT + 16];
  const char *kinds = strncmp(path, "kinds.", 6) == 0 ? strchr(path + 6, '.') : NULL;
  tarn_config_option option;
  snprintf(general, sizeof general, "%s%s", kinds ? "kinds.NAME" : "", kinds ? kinds : path);
  for (size_t i = 0; tarn_config_option_at(i, &option); i++)
    if (strcmp(option.key, general) == 0) return true;
  return false;
}

// Adds the values of a map as changes; keys may be nested, joined by dots, or both.
static tarn_status flatten(tarn_sweep *sweep, tarn__sweep_edits *edits, const char *prefix,
                           const tarn__yaml_node *map) {
  for (const tarn__yaml_node *entry = map->first; entry; entry = entry->next) {
    char path[PATH_TEXT];
    const char *copy;
    if (!*prefix && (strcmp(entry->key, "equalize") == 0 || strcmp(entry->key, "grid") == 0)) continue;
    if (snprintf(path, sizeof path, "%s%s%s", prefix, *prefix ? "." : "", entry->key) >= (int)sizeof path)
      return tarn__yaml_fail(entry, "a key of more than %d bytes", PATH_TEXT - 1);
    if (entry->type == TARN__YAML_MAP && !is_option(path)) {
      TARN_TRY(flatten(sweep, edits, path, entry));
      continue;
    }
    TARN_TRY(refuse_reserved(sweep, path, entry));
    for (size_t i = 0; i < edits->count; i++)
      if (edits->items[i].path && strcmp(edits->items[i].path, path) == 0)
        return tarn__yaml_fail(entry, "key \"%s\" is given twice, nested and joined by dots", path);
    TARN_TRY(tarn__sweep_text(sweep, &copy, "%s", path));
    TARN_TRY(tarn__grow(&edits->items, &edits->capacity, edits->count + 1, sizeof *edits->items));
    edits->items[edits->count++] = (tarn__config_edit){.path = copy, .value = entry};
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__sweep_read_edits(tarn_sweep *sweep, tarn__sweep_edits *edits, const tarn__yaml_node *node) {
  if (tarn__yaml_is_empty(node)) return TARN_STATUS_OK;
  if (node->type != TARN__YAML_MAP)
    return tarn__yaml_fail(node, "expected keys of a configuration and their values, such as train.lr: 0.001");
  return flatten(sweep, edits, "", node);
}

tarn_status tarn__sweep_describe(tarn_sweep *sweep, tarn_sweep_variant *variant, const tarn__sweep_edits *edits) {
  void *memory;
  TARN_TRY(tarn__arena_alloc(&sweep->memory->arena, &memory, edits->count, sizeof(char *)));
  const char **changes = memory;
  for (size_t i = 0; i < edits->count; i++) {
    const tarn__yaml_node *value = edits->items[i].value;
    bool map = value->type == TARN__YAML_MAP;
    char text[1024] = "";
    size_t used = 0;
    if (value->type == TARN__YAML_SCALAR) snprintf(text, sizeof text, "%s", value->text);
    for (const tarn__yaml_node *item = value->first; item && used < sizeof text; item = item->next)
      used +=
          (size_t)snprintf(text + used, sizeof text - used, "%s%s%s%s%s", item == value->first ? map ? "{" : "[" : ", ",
                           map ? item->key : "", map ? ": " : "", item->text ? item->text : "...",
                           item->next ? ""
                           : map      ? "}"
                                      : "]");
    TARN_TRY(tarn__sweep_text(sweep, &changes[i], "%s=%s", edits->items[i].path, text));
  }
  variant->changes = changes;
  variant->change_count = edits->count;
  return TARN_STATUS_OK;
}

// Names of other files in the sweep's folder.
static bool is_taken(const char *name) {
  return strcmp(name, TARN__RUN_LOCK) == 0 || strcmp(name, TARN__SWEEP_FILE) == 0 ||
         strcmp(name, TARN__SWEEP_BASE) == 0 || strcmp(name, TARN__SWEEP_JSON) == 0 ||
         strcmp(name, TARN__SWEEP_JOBS) == 0;
}

bool tarn__sweep_is_name(const char *name) {
  size_t length = strlen(name);
  return length > 0 && length < TARN_SWEEP_NAME && name[0] != '.' && name[0] != '-' &&
         strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+.") == length;
}

// The name of a variant, its keys, and the points of its grid: its own, or the common one.
static tarn_status read_variant(tarn_sweep *sweep, const tarn__yaml_node *entry, tarn__sweep_equal equalize,
                                const tarn__sweep_grid *general) {
  char shown[TARN__YAML_SHOWN];
  tarn__sweep_grid own = {0};
  tarn__sweep_edits edits = {0};
  if (!tarn__sweep_is_name(entry->key))
    return tarn__yaml_fail(entry, "\"%s\" is not a name of a variant: at most %d letters, digits, _ - + and .",
                           tarn__yaml_show(shown, entry->key), TARN_SWEEP_NAME - 1);
  if (is_taken(entry->key))
    return tarn__yaml_fail(entry, "\"%s\" is not a name of a variant: the sweep has a file of that name", entry->key);
  const tarn__yaml_node *grid = entry->type == TARN__YAML_MAP ? tarn__yaml_get(entry, "grid") : NULL;
  tarn_status status = tarn__sweep_read_edits(sweep, &edits, entry);
  if (status == TARN_STATUS_OK) status = read_equalize(tarn__yaml_get(entry, "equalize"), &equalize);
  if (status == TARN_STATUS_OK && grid) status = tarn__sweep_grid_read(sweep, &own, grid);
  if (status == TARN_STATUS_OK) status = tarn__sweep_add_points(sweep, entry, &edits, grid ? &own : general, equalize);
  tarn__free(edits.items);
  tarn__free(own.edits.items);
  return status;
}

static tarn_status read_variants(tarn_sweep *sweep, tarn__sweep_equal equalize) {
  struct tarn__sweep_memory *m = sweep->memory;
  const tarn__yaml_node *map = tarn__yaml_get(m->root, "variants");
  const tarn__yaml_node *node = tarn__yaml_get(m->root, "grid");
  tarn__sweep_grid general = {0};
  void *memory;
  if (tarn__yaml_is_empty(map) || map->type != TARN__YAML_MAP || !map->first)
    return tarn__yaml_fail(map ? map : m->root, "variants: there are none; give at least one name with its keys");
  TARN_TRY(tarn__arena_alloc(&m->arena, &memory, TARN__SWEEP_VARIANTS, sizeof *m->variants));
  m->variants = memory;
  TARN_TRY(tarn__arena_alloc(&m->arena, &memory, TARN__SWEEP_VARIANTS, sizeof *m->edits));
  m->edits = memory;
  TARN_TRY(tarn__arena_alloc(&m->arena, &memory, TARN__SWEEP_VARIANTS, sizeof *m->configs));
  m->configs = memory;
  TARN_TRY(tarn__arena_alloc(&m->arena, &memory, TARN__SWEEP_VARIANTS, sizeof *m->bodies));
  m->bodies = memory;
  sweep->variants = m->variants;
  tarn_status status = node ? tarn__sweep_grid_read(sweep, &general, node) : TARN_STATUS_OK;
  for (const tarn__yaml_node *entry = map->first; entry && status == TARN_STATUS_OK; entry = entry->next)
    status = read_variant(sweep, entry, equalize, &general);
  tarn__free(general.edits.items);
  return status;
}

static tarn_status read_baseline(tarn_sweep *sweep) {
  const tarn__yaml_node *root = sweep->memory->root;
  const char *name;
  TARN_TRY(tarn__sweep_read_text(root, "baseline", &name));
  if (!name) return tarn__yaml_fail(root, "baseline is missing: the name of the variant that others are compared with");
  const char *names[TARN__SWEEP_VARIANTS];
  for (size_t i = 0; i < sweep->variant_count; i++) {
    const tarn_sweep_variant *v = &sweep->variants[i];
    names[i] = v->grid ? v->grid : v->name;
    sweep->baseline = i;
    if (strcmp(names[i], name) == 0 || strcmp(v->name, name) == 0) {
      sweep->memory->baseline = name;
      return TARN_STATUS_OK;
    }
  }
  return tarn__sweep_unknown_word(tarn__yaml_get(root, "baseline"), "variant in baseline", name, names,
                                  sweep->variant_count);
}

static tarn_status read_seeds(tarn_sweep *sweep) {
  struct tarn__sweep_memory *m = sweep->memory;
  const tarn__yaml_node *list = tarn__yaml_get(m->root, "seeds");
  void *memory;
  if (!list || list->type != TARN__YAML_LIST || !list->first)
    return tarn__yaml_fail(list ? list : m->root, "seeds: expected a list such as [1, 2, 3]");
  for (const tarn__yaml_node *item = list->first; item; item = item->next) sweep->seed_count++;
  if (sweep->seed_count > TARN_CONFIG_SEEDS)
    return tarn__yaml_fail(list, "seeds: more than %d", (int)TARN_CONFIG_SEEDS);
  sweep->first_seeds = sweep->seed_count;
  TARN_TRY(tarn__arena_alloc(&m->arena, &memory, sweep->seed_count + TARN_SEQUENTIAL_SEEDS, sizeof *m->seeds));
  m->seeds = memory;
  sweep->seeds = m->seeds;
  size_t i = 0;
  for (const tarn__yaml_node *item = list->first; item; item = item->next, i++) {
    TARN_TRY(tarn__sweep_read_integer(item, "seeds", 0, 4294967295, &m->seeds[i]));
    for (size_t j = 0; j < i; j++)
      if (m->seeds[j] == m->seeds[i])
        return tarn__yaml_fail(item, "seeds: %lld is given twice", (long long)m->seeds[i]);
  }
  return TARN_STATUS_OK;
}

static tarn_status read_precision(const tarn__yaml_node *map, tarn_translate_precision *out) {
  const char *names[TARN_TRANSLATE_PRECISION_AUTO];  // all but auto, which results cannot name
  const char *word;
  TARN_TRY(tarn__sweep_read_text(map, "precision", &word));
  for (int i = 0; i < TARN_TRANSLATE_PRECISION_AUTO; i++) {
    names[i] = tarn_translate_precision_name((tarn_translate_precision)i);
    if (!word || strcmp(word, names[i]) != 0) continue;
    *out = (tarn_translate_precision)i;
    return TARN_STATUS_OK;
  }
  if (!word) return TARN_STATUS_OK;
  return tarn__sweep_unknown_word(tarn__yaml_get(map, "precision"), "test.precision", word, names,
                                  TARN_TRANSLATE_PRECISION_AUTO);
}

static tarn_status read_checkpoint(const tarn__yaml_node *map, tarn_checkpoint_choice *out) {
  const char *names[TARN_CHECKPOINT_CHOICE_COUNT - 1];  // all but the default without the key
  const char *word;
  TARN_TRY(tarn__sweep_read_text(map, "checkpoint", &word));
  for (int i = 1; i < TARN_CHECKPOINT_CHOICE_COUNT; i++) {
    names[i - 1] = tarn_checkpoint_choice_name((tarn_checkpoint_choice)i);
    if (!word || strcmp(word, names[i - 1]) != 0) continue;
    *out = (tarn_checkpoint_choice)i;
    return TARN_STATUS_OK;
  }
  if (!word) return TARN_STATUS_OK;
  return tarn__sweep_unknown_word(tarn__yaml_get(map, "checkpoint"), "test.checkpoint", word, names,
                                  TARN_CHECKPOINT_CHOICE_COUNT - 1);
}

// There are four kinds of tests, each with its own keys.
static tarn_status check_test_keys(const tarn_sweep *sweep, const tarn__yaml_node *node) {
  const bool pairs = sweep->test_blimp, labelled = sweep->test_labelled, text = sweep->test_text;
  const bool translated = sweep->test_source || sweep->test_reference;
  const tarn__yaml_node *beam = tarn__yaml_get(node, "beam");
  if (pairs && translated)
    return tarn__yaml_fail(node, "test: blimp is for language models, source and reference are for translation");
  if (pairs + labelled + text + translated > 1)
    return tarn__yaml_fail(node, "test: only one of source with reference, blimp, text and labelled");
  if (pairs && !tarn__yaml_is_empty(beam))
    return tarn__yaml_fail(beam, "test.beam: blimp scores sentences without a search; leave it out");
  if (!translated && !tarn__yaml_is_empty(beam))
    return tarn__yaml_fail(beam, "test.beam: only translation searches; leave it out");
  if (translated ? !sweep->test_source || !sweep->test_reference : !pairs && !labelled && !text)
    return tarn__yaml_fail(node, "test: source and reference are needed, or blimp, text or labelled");
  if (sweep->test_window && !sweep->test_stride)
    return tarn__yaml_fail(tarn__yaml_get(node, "window"), "test.window: needs test.stride");
  if (sweep->test_stride && !text)
    return tarn__yaml_fail(tarn__yaml_get(node, "stride"), "test.stride: is for test.text");
  if (sweep->test_window && sweep->test_stride > sweep->test_window)
    return tarn__yaml_fail(tarn__yaml_get(node, "stride"), "test.stride: at most test.window");
  return TARN_STATUS_OK;
}

static tarn_status read_test(tarn_sweep *sweep) {
  static const char *const names[] = {"source",    "reference",  "beam", "blimp",  "labelled",
                                      "precision", "checkpoint", "text", "window", "stride"};
  const tarn__yaml_node *node = tarn__yaml_get(sweep->memory->root, "test");
  if (tarn__yaml_is_empty(node)) return TARN_STATUS_OK;
  if (node->type != TARN__YAML_MAP)
    return tarn__yaml_fail(node, "test: expected source, reference and beam, or blimp, text or labelled");
  TARN_TRY(tarn__sweep_check_keys(node, "key in test", names, sizeof names / sizeof *names));
  TARN_TRY(tarn__sweep_read_text(node, "blimp", &sweep->test_blimp));
  TARN_TRY(tarn__sweep_read_text(node, "labelled", &sweep->test_labelled));
  TARN_TRY(tarn__sweep_read_text(node, "text", &sweep->test_text));
  TARN_TRY(tarn__sweep_read_text(node, "source", &sweep->test_source));
  TARN_TRY(tarn__sweep_read_text(node, "reference", &sweep->test_reference));
  TARN_TRY(read_optional_integer(node, "beam", 0, 1024, &sweep->test_beam));
  TARN_TRY(read_optional_integer(node, "window", 1, 10000000, &sweep->test_window));
  TARN_TRY(read_optional_integer(node, "stride", 1, 10000000, &sweep->test_stride));
  TARN_TRY(read_precision(node, &sweep->test_precision));
  TARN_TRY(read_checkpoint(node, &sweep->test_checkpoint));
  return check_test_keys(sweep, node);
}

// The base is a file next to the sweep file.
static tarn_status read_base(tarn_sweep *sweep, const char *path) {
  struct tarn__sweep_memory *m = sweep->memory;
  const char *base;
  const char *full;
  const char *slash = strrchr(path, '/');
  TARN_TRY(tarn__sweep_read_text(m->root, "base", &base));
  if (!base) return tarn__yaml_fail(m->root, "base is missing: the configuration that all variants start from");
  if (slash && base[0] != '/')
    TARN_TRY(tarn__sweep_text(sweep, &full, "%.*s/%s", (int)(slash - path), path, base));
  else
    TARN_TRY(tarn__sweep_text(sweep, &full, "%s", base));
  TARN_TRY(tarn__strdup(&m->base_path, full));
  if (tarn__file_read(full, &m->base_text, &m->base_size) == TARN_STATUS_OK) return TARN_STATUS_OK;
  return tarn__fail_prefix(TARN_STATUS_IO, "%s:%d: base: ", path, tarn__yaml_get(m->root, "base")->line);
}

static tarn_status read_name(tarn_sweep *sweep, const char *path) {
  TARN_TRY(tarn__sweep_read_text(sweep->memory->root, "name", &sweep->name));
  if (sweep->name) return TARN_STATUS_OK;
  char full[PATH_MAX];
  const char *slash = strrchr(path, '/');
  const char *file = slash ? slash + 1 : path;
  char name[3 * NAME_MAX + 1];
  // What is called sweep.yaml is called by its folder.
  if (strcmp(file, TARN__SWEEP_FILE) == 0 && realpath(path, full)) {
    char *end = strrchr(full, '/');
    *end = '\0';
    if (strrchr(full, '/') && strrchr(full, '/')[1]) file = strrchr(full, '/') + 1;
  }
  TARN_REQUIRE(strlen(file) <= NAME_MAX, USAGE, "%s: the name of the file is too long", path);
  tarn_text_repair(name, file);  // it goes into JSON and YAML, and a file name may have arbitrary bytes
  const char *dot = file == (slash ? slash + 1 : path) ? strrchr(name, '.') : NULL;  // a folder's name has no ending
  return tarn__sweep_text(sweep, &sweep->name, "%.*s", dot && dot > name ? (int)(dot - name) : (int)strlen(name), name);
}

// The threads of the runs in the folder, if it has any: they go on with as many on every machine, or not at all.
static tarn_status threads_of_folder(int64_t *threads, const tarn_sweep *sweep) {
  char path[PATH_MAX];
  json_t *old;
  if (!sweep->folder) return TARN_STATUS_OK;
  TARN_TRY(tarn__path_join(path, sweep->folder, TARN__SWEEP_JSON));
  if (!tarn__file_exists(path)) return TARN_STATUS_OK;
  TARN_TRY(tarn__json_file(&old, path, 0, NULL));
  const json_int_t number = json_integer_value(json_object_get(old, "threads"));
  json_decref(old);
  if (number >= 1 && number <= MOST_THREADS) *threads = number;
  return TARN_STATUS_OK;
}

static tarn_status read_machine(tarn_sweep *sweep) {
  const tarn__yaml_node *root = sweep->memory->root;
  tarn__threads_set(0);
  int64_t cores = tarn__threads();
  sweep->parallel = 1;
  TARN_TRY(read_optional_integer(root, "parallel", 1, 1024, &sweep->parallel));
  sweep->threads = cores / sweep->parallel > 1 ? cores / sweep->parallel : 1;
  TARN_TRY(threads_of_folder(&sweep->threads, sweep));
  return read_optional_integer(root, "threads", 1, MOST_THREADS, &sweep->threads);
}

// A budget replaces other limits; curves begin at time 0. The sweep's `set` is applied later and overrides this.
static tarn_status add_own_settings(tarn_sweep *sweep) {
  tarn__sweep_edits *set = &sweep->memory->set;
  TARN_TRY(tarn__sweep_add_text(set, "valid.at_start=yes"));
  if (sweep->budget_seconds == 0) return TARN_STATUS_OK;
  TARN_TRY(tarn__sweep_add_text(set, "train.max_updates=0"));
  TARN_TRY(tarn__sweep_add_text(set, "train.max_epochs=0"));
  return tarn__sweep_add_text(set, "train.patience=0");
}

tarn_status tarn__sweep_read(tarn_sweep *sweep, const char *path) {
  static const char *const names[] = {"name",    "base",   "set",  "variants", "baseline", "seeds",     "parallel",
                                      "threads", "budget", "test", "equalize", "grid",     "sequential"};
  struct tarn__sweep_memory *m = sweep->memory;
  char *text;
  size_t size;
  tarn__sweep_equal equalize = {TARN_SWEEP_EQUALIZE_NO, TARN_SWEEP_TRADE_FFN};
  TARN_TRY(tarn__file_read(path, &text, &size));
  tarn_status status = size <= LARGEST_FILE
                           ? tarn__yaml_parse(&m->tree, &m->root, path, true, text, size)
                           : tarn__fail(TARN_STATUS_USAGE, "%s: larger than 1 MiB, so it is no sweep", path);
  tarn__free(text);
  TARN_TRY(status);
  if (m->root->type != TARN__YAML_MAP)
    return tarn__yaml_fail(m->root, "expected keys such as base, variants, baseline and seeds");
  TARN_TRY(tarn__sweep_check_keys(m->root, "key", names, sizeof names / sizeof *names));
  TARN_TRY(read_name(sweep, path));
  TARN_TRY(read_base(sweep, path));
  const tarn__yaml_node *budget = tarn__yaml_get(m->root, "budget");
  if (!tarn__yaml_is_empty(budget)) TARN_TRY(read_budget(budget, &sweep->budget_seconds));
  TARN_TRY(add_own_settings(sweep));
  const tarn__yaml_node *set = tarn__yaml_get(m->root, "set");
  static const char *const own[] = {"equalize", "grid"};
  for (size_t i = 0; i < 2 && set && set->type == TARN__YAML_MAP; i++) {
    const tarn__yaml_node *misplaced = tarn__yaml_get(set, own[i]);
    if (misplaced) return tarn__yaml_fail(misplaced, "%s is no key of a configuration; it stands beside set", own[i]);
  }
  TARN_TRY(tarn__sweep_read_edits(sweep, &m->set, set));
  TARN_TRY(read_equalize(tarn__yaml_get(m->root, "equalize"), &equalize));
  TARN_TRY(read_variants(sweep, equalize));
  TARN_TRY(read_baseline(sweep));
  TARN_TRY(read_seeds(sweep));
  TARN_TRY(read_test(sweep));
  TARN_TRY(tarn__sweep_read_sequential(sweep));
  return read_machine(sweep);
}
