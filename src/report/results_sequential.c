// Reads the sequential design of a sweep.json.
#include <string.h>

#include "report/results_memory.h"

static tarn_status read_looks(tarn_sequential_design *design, const tarn__run_file *file, const json_t *object) {
  size_t i;
  const json_t *look;
  const json_t *looks = json_object_get(object, "looks");
  TARN_REQUIRE(json_is_array(looks) && json_array_size(looks) <= TARN_SEQUENTIAL_SEEDS, DATA,
               "%s: \"sequential\": \"looks\" must be a list of at most %d numbers", file->path, TARN_SEQUENTIAL_SEEDS);
  json_array_foreach(looks, i, look) design->looks[design->look_count++] = json_integer_value(look);
  return TARN_STATUS_OK;
}

static tarn_status read_design(tarn_sequential_design *design, int64_t *first, struct tarn__results_memory *m,
                               const tarn__run_file *file, const json_t *object) {
  const char *spending = NULL;
  TARN_TRY(tarn__run_file_whole(file, object, "max_seeds", &design->max_seeds));
  TARN_TRY(tarn__run_file_whole(file, object, "first", first));
  TARN_TRY(tarn__run_file_text(file, object, "measure", &design->measure, &m->arena));
  TARN_TRY(tarn__run_file_real(file, object, "alpha", &design->alpha));
  TARN_TRY(tarn__run_file_text(file, object, "spending", &spending, &m->arena));
  TARN_TRY(tarn__run_file_real(file, object, "equivalence", &design->equivalence));
  TARN_TRY(tarn__run_file_real(file, object, "futility", &design->futility));
  design->spending = TARN_SEQUENTIAL_SPENDINGS;
  for (int i = 0; i < TARN_SEQUENTIAL_SPENDINGS; i++)
    if (spending && strcmp(spending, tarn_sequential_spending_name((tarn_sequential_spending)i)) == 0)
      design->spending = (tarn_sequential_spending)i;
  return read_looks(design, file, object);
}

tarn_status tarn__results_sequential(struct tarn__results_memory *m, size_t *first, const tarn__run_file *file,
                                     bool alone) {
  const json_t *object = json_object_get(file->root, "sequential");
  const json_t *seeds = json_object_get(file->root, "seeds");
  tarn_sequential_design design = {0};
  int64_t begun = 0;
  void *memory;
  *first = json_array_size(seeds);
  if (!object || json_is_null(object)) return TARN_STATUS_OK;
  TARN_REQUIRE(json_is_object(object), DATA, "%s: \"sequential\" must be an object", file->path);
  TARN_TRY(read_design(&design, &begun, m, file, object));
  const char *problem = tarn_sequential_problem(&design);
  TARN_REQUIRE(!problem, DATA, "%s: \"sequential\": %s", file->path, problem);
  TARN_REQUIRE(begun > 0 && begun <= design.max_seeds && *first == (size_t)design.max_seeds, DATA,
               "%s: \"sequential\": expected max_seeds numbers in \"seeds\", and \"first\" from 1 to as many",
               file->path);
  *first = (size_t)begun;
  m->plans++;
  if (!alone) return TARN_STATUS_OK;
  const size_t count = json_array_size(seeds);
  TARN_TRY(tarn__arena_alloc(&m->arena, &memory, count, sizeof(int64_t)));
  int64_t *numbers = memory;
  for (size_t i = 0; i < count; i++) {
    numbers[i] = json_integer_value(json_array_get(seeds, i));
    for (size_t j = 0; j < i; j++)
      TARN_REQUIRE(numbers[j] != numbers[i], DATA, "%s: \"seeds\": %lld is given twice", file->path,
                   (long long)numbers[i]);
  }
  m->public.sequential = design;
  m->public.seeds = numbers;
  m->public.seed_count = count;
  return TARN_STATUS_OK;
}
