// The key `sequential` of the sweep file: how many seeds a comparison may take, and when it is looked at.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "significance/sequential.h"
#include "sweep/spec.h"

static tarn_status read_real(const tarn__yaml_node *map, const char *key, double *out) {
  const char *text;
  char shown[TARN__YAML_SHOWN], *end;
  TARN_TRY(tarn__sweep_read_text(map, key, &text));
  if (!text) return TARN_STATUS_OK;
  *out = strtod(text, &end);
  if (end == text || *end || !isfinite(*out))
    return tarn__yaml_fail(tarn__yaml_get(map, key), "sequential.%s: expected a number, not \"%s\"", key,
                           tarn__yaml_show(shown, text));
  return TARN_STATUS_OK;
}

// Without the key, from the seeds of the file (3 or more) on after every one.
static tarn_status read_looks(const tarn__yaml_node *map, tarn_sequential_design *design, int64_t first) {
  const tarn__yaml_node *list = tarn__yaml_get(map, "looks");
  if (tarn__yaml_is_empty(list)) {
    for (int64_t n = first > 3 ? first : 3; n <= design->max_seeds; n++) design->looks[design->look_count++] = n;
    return TARN_STATUS_OK;
  }
  if (list->type != TARN__YAML_LIST || !list->first)
    return tarn__yaml_fail(list, "sequential.looks: expected a list of numbers of seeds, such as [3, 5, 8, 12]");
  for (const tarn__yaml_node *item = list->first; item; item = item->next) {
    if (design->look_count == TARN_SEQUENTIAL_SEEDS)
      return tarn__yaml_fail(list, "sequential.looks: more than %d", (int)TARN_SEQUENTIAL_SEEDS);
    TARN_TRY(
        tarn__sweep_read_integer(item, "sequential.looks", 3, design->max_seeds, &design->looks[design->look_count++]));
  }
  return TARN_STATUS_OK;
}

// What the sweep's test gives, else the best validation.
static tarn_status read_measure(const tarn_sweep *sweep, const tarn__yaml_node *map, tarn_sequential_design *design) {
  const char *names[TARN__SEQUENTIAL_MEASURES];
  const bool labelled = sweep->test_labelled || sweep->test_text;
  const int own = sweep->test_source ? 0 : sweep->test_blimp ? 1 : labelled ? 2 : TARN__SEQUENTIAL_TESTS;
  const tarn__yaml_node *node = tarn__yaml_get(map, "measure");
  int word = own;
  for (int i = 0; i < TARN__SEQUENTIAL_MEASURES; i++) names[i] = tarn__sequential_measure(i);
  if (!tarn__yaml_is_empty(node))
    TARN_TRY(tarn__sweep_read_word(node, "sequential.measure", names, TARN__SEQUENTIAL_MEASURES, &word));
  if (word < TARN__SEQUENTIAL_TESTS && word != own)
    return tarn__yaml_fail(node, "sequential.measure: the sweep's test does not give %s, but %s", names[word],
                           own < TARN__SEQUENTIAL_TESTS ? names[own] : "there is none");
  // Else it is over the time of the longest run, so that a later run would change looks that were taken.
  if (strcmp(names[word], "aucc_mean") == 0 && sweep->budget_seconds == 0)
    return tarn__yaml_fail(node, "sequential.measure: aucc_mean needs the key budget, the time of the areas");
  design->measure = names[word];
  return TARN_STATUS_OK;
}

static tarn_status read_spending(const tarn__yaml_node *map, tarn_sequential_design *design) {
  const char *names[TARN_SEQUENTIAL_SPENDINGS];
  const tarn__yaml_node *node = tarn__yaml_get(map, "spending");
  int word;
  for (int i = 0; i < TARN_SEQUENTIAL_SPENDINGS; i++)
    names[i] = tarn_sequential_spending_name((tarn_sequential_spending)i);
  if (tarn__yaml_is_empty(node)) return TARN_STATUS_OK;
  TARN_TRY(tarn__sweep_read_word(node, "sequential.spending", names, TARN_SEQUENTIAL_SPENDINGS, &word));
  design->spending = (tarn_sequential_spending)word;
  return TARN_STATUS_OK;
}

// The seeds that follow the largest of the file.
static tarn_status add_seeds(tarn_sweep *sweep, const tarn__yaml_node *node) {
  int64_t *seeds = sweep->memory->seeds, largest = 0;
  for (size_t i = 0; i < sweep->seed_count; i++) largest = seeds[i] > largest ? seeds[i] : largest;
  if (largest > 4294967295 - TARN_SEQUENTIAL_SEEDS)
    return tarn__yaml_fail(node, "sequential: no seeds follow %lld", (long long)largest);
  while (sweep->seed_count < (size_t)sweep->sequential.max_seeds) seeds[sweep->seed_count++] = ++largest;
  return TARN_STATUS_OK;
}

tarn_status tarn__sweep_read_sequential(tarn_sweep *sweep) {
  static const char *const names[] = {"max_seeds", "looks", "measure", "alpha", "spending", "equivalence", "futility"};
  const tarn__yaml_node *node = tarn__yaml_get(sweep->memory->root, "sequential");
  if (tarn__yaml_is_empty(node)) return TARN_STATUS_OK;
  if (node->type != TARN__YAML_MAP)
    return tarn__yaml_fail(node, "sequential: expected keys such as max_seeds: 12 and equivalence: 0.3");
  TARN_TRY(tarn__sweep_check_keys(node, "key in sequential", names, sizeof names / sizeof *names));
  for (size_t i = 0; i < sweep->variant_count; i++)
    if (sweep->variants[i].grid)
      return tarn__yaml_fail(node,
                             "sequential: not with a grid (variant %s), whose best point may change with every seed",
                             sweep->variants[i].grid);
  if (sweep->variant_count < 2)
    return tarn__yaml_fail(node, "sequential: there is only the baseline, and no comparison");
  tarn_sequential_design *design = &sweep->sequential;
  *design = (tarn_sequential_design){.alpha = 0.05, .futility = 0.1};
  const tarn__yaml_node *most = tarn__yaml_get(node, "max_seeds");
  if (tarn__yaml_is_empty(most))
    return tarn__yaml_fail(node, "sequential: max_seeds is missing, the seeds of a variant");
  const int64_t least = sweep->seed_count > 3 ? (int64_t)sweep->seed_count : 3;
  TARN_TRY(tarn__sweep_read_integer(most, "sequential.max_seeds", least, TARN_SEQUENTIAL_SEEDS, &design->max_seeds));
  TARN_TRY(read_looks(node, design, (int64_t)sweep->seed_count));
  TARN_TRY(read_measure(sweep, node, design));
  TARN_TRY(read_spending(node, design));
  TARN_TRY(read_real(node, "alpha", &design->alpha));
  TARN_TRY(read_real(node, "equivalence", &design->equivalence));
  TARN_TRY(read_real(node, "futility", &design->futility));
  const char *problem = tarn_sequential_problem(design);
  if (problem) return tarn__yaml_fail(node, "sequential.%s", problem);
  return add_seeds(sweep, node);
}

json_t *tarn__sweep_sequential_json(const tarn_sweep *sweep) {
  const tarn_sequential_design *d = &sweep->sequential;
  json_t *looks = json_array();
  for (size_t k = 0; looks && k < d->look_count; k++) {
    if (json_array_append_new(looks, json_integer(d->looks[k])) == 0) continue;
    json_decref(looks);
    looks = NULL;
  }
  return json_pack("{s:I, s:I, s:o, s:s, s:f, s:s, s:f, s:f}", "first", (json_int_t)sweep->first_seeds, "max_seeds",
                   (json_int_t)d->max_seeds, "looks", looks, "measure", d->measure, "alpha", d->alpha, "spending",
                   tarn_sequential_spending_name(d->spending), "equivalence", d->equivalence, "futility", d->futility);
}
