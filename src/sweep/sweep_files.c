// The files of a sweep's folder besides its runs: sweep.yaml and base.yaml, for resuming, and sweep.json, for programs
// that compare the runs.
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json_io.h"
#include "run/names.h"
#include "run/run_file.h"
#include "sweep/spec.h"

typedef struct text {
  char *data;
  size_t used, capacity;
  tarn_status status;
} text;

static void put(text *t, const char *piece) {
  size_t n = strlen(piece);
  if (t->status == TARN_STATUS_OK) t->status = tarn__grow(&t->data, &t->capacity, t->used + n + 1, 1);
  if (t->status != TARN_STATUS_OK) return;
  memcpy(t->data + t->used, piece, n + 1);
  t->used += n;
}

static void put_scalar(text *t, const char *value, bool empty) {
  char one[2] = "";
  if (empty) return;
  put(t, "\"");
  for (; *value; value++) {
    one[0] = *value;
    if (*value == '"' || *value == '\\') put(t, "\\");
    put(t, one);
  }
  put(t, "\"");
}

// A value after its key: a scalar, a list in one line, or a map below it.
static void put_value(text *t, const tarn__yaml_node *node, int indent) {
  char spaces[64];
  snprintf(spaces, sizeof spaces, "%*s", indent < 60 ? indent : 60, "");
  if (node->type == TARN__YAML_MAP) {
    put(t, "\n");
    for (const tarn__yaml_node *entry = node->first; entry; entry = entry->next) {
      put(t, spaces);
      put_scalar(t, entry->key, false);
      put(t, ": ");
      put_value(t, entry, indent + 2);
    }
    return;
  }
  if (node->type == TARN__YAML_LIST) {
    put(t, "[");
    for (const tarn__yaml_node *item = node->first; item; item = item->next) {
      put_scalar(t, item->text ? item->text : "", false);
      if (item->next) put(t, ", ");
    }
    put(t, "]\n");
    return;
  }
  put_scalar(t, node->text, tarn__yaml_is_empty(node));
  put(t, "\n");
}

static tarn_status write_text(const tarn_sweep *sweep, const char *name, const char *data, size_t size) {
  char path[PATH_MAX];
  TARN_TRY(tarn__path_join(path, sweep->folder, name));
  return tarn__file_write(path, data, size);
}

// The sweep file as read, with the base in the same folder and the machine-dependent defaults resolved.
static tarn_status write_yaml(const tarn_sweep *sweep) {
  static const char *const own[] = {"name", "base", "parallel", "threads"};
  text t = {0};
  char numbers[96];
  put(&t, "name: ");
  put_scalar(&t, sweep->name, false);
  snprintf(numbers, sizeof numbers, "\nbase: " TARN__SWEEP_BASE "\nparallel: %lld\nthreads: %lld\n",
           (long long)sweep->parallel, (long long)sweep->threads);
  put(&t, numbers);
  for (const tarn__yaml_node *entry = sweep->memory->root->first; entry; entry = entry->next) {
    bool written = false;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) written = written || strcmp(own[i], entry->key) == 0;
    if (written) continue;
    put(&t, entry->key);
    put(&t, ": ");
    put_value(&t, entry, 2);
  }
  tarn_status status = t.status;
  if (status == TARN_STATUS_OK) status = write_text(sweep, TARN__SWEEP_FILE, t.data, t.used);
  tarn__free(t.data);
  return status;
}

// {"kinds.R.ffn": "512"} from texts "kinds.R.ffn=512".
static json_t *pairs(const char *const *texts, size_t count) {
  json_t *object = json_object();
  for (size_t i = 0; object && i < count; i++) {
    const char *equals = strchr(texts[i], '=');
    char key[320];
    if (!equals) continue;
    snprintf(key, sizeof key, "%.*s", (int)(equals - texts[i]), texts[i]);
    if (json_object_set_new(object, key, json_string(equals + 1)) == 0) continue;
    json_decref(object);
    object = NULL;
  }
  return object;
}

static json_t *equalized(const tarn_sweep_variant *v) {
  if (v->equalize == TARN_SWEEP_EQUALIZE_NO) return json_null();
  json_t *object = pairs(v->adjusted, v->adjusted_count);
  int failed = json_object_set_new(object, "equalize", json_string(tarn_sweep_equalize_name(v->equalize))) != 0;
  // Absent where only widths are traded, as before there was another choice.
  if (v->trade != TARN_SWEEP_TRADE_FFN)
    failed |= json_object_set_new(object, "change", json_string(tarn_sweep_trade_name(v->trade))) != 0;
  if (v->bound) failed |= json_object_set_new(object, "bound", json_string(v->bound)) != 0;
  failed |= json_object_set_new(object, "value", json_real(v->measure)) != 0;
  failed |= json_object_set_new(object, "base", json_real(v->base_measure)) != 0;
  if (!failed) return object;
  json_decref(object);
  return NULL;
}

static json_t *variants_of(const tarn_sweep *sweep) {
  json_t *list = json_array();
  for (size_t i = 0; list && i < sweep->variant_count; i++) {
    const tarn_sweep_variant *v = &sweep->variants[i];
    json_t *entry = json_pack("{s:s, s:o, s:o}", "name", v->name, "set", pairs(v->changes, v->change_count),
                              "equalized", equalized(v));
    // The variant's name in the file, and its grid point.
    int failed = v->grid && json_object_set_new(entry, "grid", json_string(v->grid)) != 0;
    if (v->grid && !failed)
      failed = json_object_set_new(entry, "point",
                                   pairs(v->changes + v->change_count - v->point_count, v->point_count)) != 0;
    const char *body = sweep->memory->bodies[i];
    if (body && !failed) failed = json_object_set_new(entry, "init_from", json_string(body)) != 0;
    if (failed) {
      json_decref(entry);
      entry = NULL;
    }
    if (json_array_append_new(list, entry) == 0) continue;
    json_decref(list);
    list = NULL;
  }
  return list;
}

static json_t *seeds_of(const tarn_sweep *sweep) {
  json_t *list = json_array();
  for (size_t i = 0; list && i < sweep->seed_count; i++) {
    if (json_array_append_new(list, json_integer(sweep->seeds[i])) == 0) continue;
    json_decref(list);
    list = NULL;
  }
  return list;
}

// The checkpoint is written only if it was given, so sweeps without the key stay compatible with earlier versions.
json_t *tarn__sweep_test_json(const tarn_sweep *sweep) {
  const char *precision = tarn_translate_precision_name(sweep->test_precision);
  const char *checkpoint = sweep->test_checkpoint == TARN_CHECKPOINT_CHOICE_AUTO
                               ? NULL
                               : tarn_checkpoint_choice_name(sweep->test_checkpoint);
  if (sweep->test_blimp)
    return json_pack("{s:s, s:s, s:s*}", "blimp", sweep->test_blimp, "precision", precision, "checkpoint", checkpoint);
  if (sweep->test_labelled)
    return json_pack("{s:s, s:s, s:s*}", "labelled", sweep->test_labelled, "precision", precision, "checkpoint",
                     checkpoint);
  if (sweep->test_text)
    return json_pack("{s:s, s:I, s:I, s:s, s:s*}", "text", sweep->test_text, "window", (json_int_t)sweep->test_window,
                     "stride", (json_int_t)sweep->test_stride, "precision", precision, "checkpoint", checkpoint);
  if (!sweep->test_source) return json_null();
  return json_pack("{s:s, s:s, s:I, s:s, s:s*}", "source", sweep->test_source, "reference", sweep->test_reference,
                   "beam", (json_int_t)sweep->test_beam, "precision", precision, "checkpoint", checkpoint);
}

static tarn_status write_json(const tarn_sweep *sweep) {
  const tarn_config *config = sweep->variants[sweep->baseline].config;
  json_t *budget = sweep->budget_seconds > 0 ? json_real(sweep->budget_seconds) : json_null();
  json_t *object = json_pack("{s:s, s:s, s:o, s:s, s:o, s:o, s:I, s:I, s:o}", "name", sweep->name, "baseline",
                             sweep->memory->baseline, "budget_seconds", budget, "clock",
                             config->train.clock == TARN_CLOCK_CPU ? "cpu" : "wall", "variants", variants_of(sweep),
                             "seeds", seeds_of(sweep), "parallel", (json_int_t)sweep->parallel, "threads",
                             (json_int_t)sweep->threads, "test", tarn__sweep_test_json(sweep));
  // A sweep without a design has a file as before there were any.
  if (object && sweep->sequential.max_seeds > 0 &&
      json_object_set_new(object, "sequential", tarn__sweep_sequential_json(sweep)) != 0) {
    json_decref(object);
    object = NULL;
  }
  char *data = tarn__json_dump(object, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
  json_decref(object);
  TARN_REQUIRE(data, MEMORY, "out of memory: " TARN__SWEEP_JSON);
  size_t length = strlen(data);
  data[length] = '\n';  // replaces the zero byte
  tarn_status status = write_text(sweep, TARN__SWEEP_JSON, data, length + 1);
  free(data);
  return status;
}

tarn_status tarn__sweep_write_files(const tarn_sweep *sweep) {
  TARN_TRY(write_text(sweep, TARN__SWEEP_BASE, sweep->memory->base_text, sweep->memory->base_size));
  TARN_TRY(write_yaml(sweep));
  return write_json(sweep);
}

static bool has_variant(const tarn_sweep *sweep, const char *name) {
  for (size_t i = 0; i < sweep->variant_count; i++)
    if (strcmp(sweep->variants[i].name, name) == 0) return true;
  return false;
}

static bool has_seed(const tarn_sweep *sweep, int64_t seed) {
  for (size_t i = 0; i < sweep->seed_count; i++)
    if (sweep->seeds[i] == seed) return true;
  return false;
}

tarn_status tarn__sweep_each_run(const char *folder, const json_t *sweep_json, tarn__sweep_visit visit, void *user) {
  size_t i;
  size_t j;
  const json_t *variant;
  const json_t *seed;
  json_array_foreach(json_object_get(sweep_json, "variants"), i, variant) {
    const char *name = json_string_value(json_object_get(variant, "name"));
    json_array_foreach(json_object_get(sweep_json, "seeds"), j, seed) {
      char path[PATH_MAX];
      TARN_REQUIRE(name && json_is_integer(seed), DATA, "%s/" TARN__SWEEP_JSON ": variants or seeds are damaged",
                   folder);
      int64_t number = json_integer_value(seed);
      TARN_REQUIRE(
          snprintf(path, sizeof path, "%s/" TARN__RUN_SEED_PATH, folder, name, (long long)number) < (int)sizeof path,
          IO, "%s: the path is too long", folder);
      TARN_TRY(visit(user, path, name, number));
    }
  }
  return TARN_STATUS_OK;
}

// An earlier run that the sweep no longer lists would silently disappear from its tables.
static tarn_status check_listed(void *user, const char *path, const char *name, int64_t seed) {
  const tarn_sweep *sweep = user;
  if (has_variant(sweep, name) && has_seed(sweep, seed)) return TARN_STATUS_OK;
  TARN_REQUIRE(!tarn__file_exists(path), USAGE,
               "%s is a run of this sweep, but the variant %s with seed %lld is not in the file any more: put it "
               "back, or take the run's folder away",
               path, name, (long long)seed);
  return TARN_STATUS_OK;
}

tarn_status tarn__sweep_same_test(bool *same, const tarn_sweep *sweep, const json_t *other) {
  json_t *own = tarn__sweep_test_json(sweep);
  json_t *test = json_deep_copy(json_object_get(other, "test"));
  bool failed = !own || (json_is_object(json_object_get(other, "test")) && !test);
  // Sweeps without the key were tested in fp32.
  if (!failed && json_is_object(test) && !json_object_get(test, "precision"))
    failed = json_object_set_new(test, "precision", json_string("fp32")) != 0;
  *same = !failed && json_equal(test, own);
  json_decref(own);
  json_decref(test);
  TARN_REQUIRE(!failed, MEMORY, "out of memory: the test of a sweep");
  return TARN_STATUS_OK;
}

static tarn_status find_finished(void *user, const char *path, const char *name, int64_t seed) {
  char result[PATH_MAX];
  (void)name;
  (void)seed;
  TARN_TRY(tarn__path_join(result, path, TARN__RUN_RESULT));
  if (tarn__file_exists(result)) *(bool *)user = true;
  return TARN_STATUS_OK;
}

// Looks that are planned after runs were seen are not counted as they were taken.
static tarn_status check_design(const tarn_sweep *sweep, const json_t *old, const char *path) {
  bool finished = false;
  json_t *own = sweep->sequential.max_seeds > 0 ? tarn__sweep_sequential_json(sweep) : json_null();
  const json_t *before = json_object_get(old, "sequential");
  const bool same = tarn__run_same_design(own, before);
  json_decref(own);
  if (same) return TARN_STATUS_OK;
  TARN_TRY(tarn__sweep_each_run(sweep->folder, old, find_finished, &finished));
  TARN_REQUIRE(
      !finished || json_is_object(before), USAGE,
      "%s: sequential was added after runs were finished, so their looks were not planned; take it out, or use "
      "another folder",
      path);
  TARN_REQUIRE(!finished, USAGE,
               "%s: sequential, or the seeds from which its looks follow, has changed since runs were finished, whose "
               "looks were planned otherwise; put it back, or use another folder",
               path);
  return TARN_STATUS_OK;
}

static tarn_status check_old(const tarn_sweep *sweep, const json_t *old, const char *path) {
  bool same;
  TARN_TRY(tarn__sweep_each_run(sweep->folder, old, check_listed, (void *)(uintptr_t)sweep));
  TARN_TRY(check_design(sweep, old, path));
  if (!json_is_object(json_object_get(old, "test"))) return TARN_STATUS_OK;
  TARN_TRY(tarn__sweep_same_test(&same, sweep, old));
  TARN_REQUIRE(
      same, USAGE,
      "%s: its runs are tested otherwise (test: source, reference, beam, blimp, labelled, text, window, stride, "
      "precision, checkpoint); use another folder",
      path);
  return TARN_STATUS_OK;
}

tarn_status tarn__sweep_check_folder(const tarn_sweep *sweep) {
  char path[PATH_MAX];
  json_error_t error;
  TARN_TRY(tarn__path_join(path, sweep->folder, TARN__RUN_CONFIG));
  TARN_REQUIRE(!tarn__file_exists(path), USAGE, "%s holds a run; give a sweep a folder of its own", sweep->folder);
  TARN_TRY(tarn__path_join(path, sweep->folder, TARN__SWEEP_JSON));
  if (!tarn__file_exists(path)) return TARN_STATUS_OK;
  json_t *old;
  TARN_TRY(tarn__json_file(&old, path, 0, &error));
  TARN_REQUIRE(old, DATA, "%s:%d: %s", path, error.line, error.text);
  tarn_status status = check_old(sweep, old, path);
  json_decref(old);
  return status;
}
