// Reads sweep.json and the runs that it lists.
#include <string.h>

#include "base/file.h"
#include "report/results_memory.h"
#include "report/run_read.h"
#include "run/names.h"
#include "run/run_file.h"

static tarn_status add_runs(struct tarn__results_memory *m, const tarn__run_file *file, const char *folder,
                            const char *variant, size_t group, size_t first) {
  const json_t *seeds = json_object_get(file->root, "seeds");
  const char *variant_path;
  TARN_REQUIRE(json_is_array(seeds) && json_array_size(seeds) > 0, DATA, "%s: \"seeds\" must be a list of numbers",
               file->path);
  TARN_TRY(tarn__join(&variant_path, &m->arena, folder, variant));
  for (size_t i = 0; i < json_array_size(seeds); i++) {
    const json_t *seed = json_array_get(seeds, i);
    const char *path;
    TARN_REQUIRE(json_is_integer(seed) && json_integer_value(seed) >= 0, DATA,
                 "%s: \"seeds\" must be whole numbers from 0 on", file->path);
    TARN_TRY(
        tarn__arena_print(&path, &m->arena, TARN__RUN_SEED_PATH, variant_path, (long long)json_integer_value(seed)));
    if (i >= first && !tarn__file_exists(path)) continue;
    TARN_TRY(tarn__results_add_run(m, path, group, json_integer_value(seed)));
  }
  return TARN_STATUS_OK;
}

// The grid point of the newest group, with its variant.
static tarn_status take_grid(struct tarn__results_memory *m, const tarn__run_file *file, const json_t *variant,
                             const char *sweep) {
  const char *grid = NULL;
  tarn__results_group *group = &m->groups[m->group_count - 1];
  TARN_TRY(tarn__run_file_text(file, variant, "grid", &grid, &m->arena));
  if (!grid) return TARN_STATUS_OK;
  TARN_TRY(tarn__run_file_pairs(file, variant, "point", &group->public.grid, &m->arena));
  TARN_REQUIRE(*grid && group->public.grid, DATA, "%s: \"grid\" needs a name and \"point\"", file->path);
  return tarn__arena_print(&group->grid, &m->arena, "%s%s%s", sweep ? sweep : "", sweep ? "/" : "", grid);
}

static tarn_status add_variants(struct tarn__results_memory *m, const tarn__run_file *file, const char *folder,
                                const char *sweep, bool alone) {
  size_t first;
  const json_t *variants = json_object_get(file->root, "variants");
  TARN_REQUIRE(json_is_array(variants) && json_array_size(variants) > 0, DATA, "%s: \"variants\" must be a list",
               file->path);
  TARN_TRY(tarn__results_sequential(m, &first, file, alone));
  for (size_t i = 0; i < json_array_size(variants); i++) {
    const json_t *variant = json_array_get(variants, i);
    const char *name = NULL;
    const char *full;
    const char *changes = NULL;
    const char *equalized = NULL;
    TARN_TRY(tarn__run_file_text(file, variant, "name", &name, &m->arena));
    TARN_REQUIRE(name && *name && !strchr(name, '/') && strcmp(name, "..") != 0 && strcmp(name, ".") != 0, DATA,
                 "%s: variant %zu needs a \"name\" that can be a folder's", file->path, i + 1);
    TARN_TRY(tarn__run_file_pairs(file, variant, "set", &changes, &m->arena));
    TARN_TRY(tarn__run_file_pairs(file, variant, "equalized", &equalized, &m->arena));
    TARN_TRY(tarn__arena_print(&full, &m->arena, "%s%s%s", alone ? "" : sweep, alone ? "" : "/", name));
    for (size_t g = 0; g < m->group_count; g++)
      TARN_REQUIRE(strcmp(m->groups[g].public.name, full) != 0, DATA, "%s: two variants are called \"%s\"", file->path,
                   name);
    size_t group = m->group_count;
    TARN_TRY(tarn__results_add_group(m, full, changes, equalized));
    TARN_TRY(tarn__run_file_text(file, variant, "init_from", &m->groups[group].body, &m->arena));
    TARN_TRY(take_grid(m, file, variant, alone ? NULL : sweep));
    TARN_TRY(add_runs(m, file, folder, name, group, first));
  }
  return TARN_STATUS_OK;
}

static tarn_status take_settings(struct tarn__results_memory *m, const tarn__run_file *file, const char *sweep) {
  const char *baseline = NULL;
  m->public.sweep = sweep;
  TARN_TRY(tarn__run_file_real(file, file->root, "budget_seconds", &m->public.budget));
  TARN_REQUIRE(m->public.budget >= 0, DATA, "%s: \"budget_seconds\" must not be negative", file->path);
  TARN_TRY(tarn__run_file_text(file, file->root, "baseline", &baseline, &m->arena));
  if (!baseline) return TARN_STATUS_OK;
  for (size_t g = 0; g < m->group_count; g++)
    if (strcmp(m->groups[g].public.name, baseline) == 0 ||
        (m->groups[g].grid && strcmp(m->groups[g].grid, baseline) == 0))
      m->public.baseline = g;
  TARN_REQUIRE(m->public.baseline != SIZE_MAX, DATA, "%s: the baseline \"%s\" is none of its variants", file->path,
               baseline);
  return TARN_STATUS_OK;
}

static tarn_status read_sweep(struct tarn__results_memory *m, const tarn__run_file *file, const char *path,
                              bool alone) {
  const char *slash = strrchr(path, '/');
  const char *name = slash ? slash + 1 : path;
  const char *version = NULL;
  TARN_TRY(tarn__run_file_text(file, file->root, "version", &version, &m->arena));
  if (version) TARN_TRY(tarn__run_check_version(version, file->path));
  TARN_TRY(tarn__run_file_text(file, file->root, "name", &name, &m->arena));
  if (!alone) TARN_TRY(tarn__results_free_name(&name, m, path));
  TARN_TRY(add_variants(m, file, path, name, alone));
  return alone ? take_settings(m, file, name) : TARN_STATUS_OK;
}

tarn_status tarn__results_add_sweep(struct tarn__results_memory *m, const char *path, bool alone) {
  tarn__run_file file = {0};
  bool exists;
  TARN_TRY(tarn__run_file_open(&file, &exists, path, TARN__SWEEP_JSON, &m->arena));
  TARN_REQUIRE(exists, IO, "%s: it is gone", file.path);
  tarn_status status = read_sweep(m, &file, path, alone);
  tarn__run_file_close(&file);
  return status;
}
