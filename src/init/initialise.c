// First values of parameters: a function of (generator, seed, name, initialiser), with equal bits on every machine and
// for every number of threads. Compiled without contraction of a*b+c (see CMakeLists.txt).
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/hash.h"
#include "base/random.h"
#include "base/threads.h"
#include "base/work.h"
#include "device/transfer.h"
#include "init/entries_init.h"
#include "init/orthogonal.h"
#include "init/reservoir.h"
#include "model/model.h"
#include "ops/hadamard.h"

static void fill_normal(float *values, size_t count, double deviation, tarn__random *random) {
  for (size_t i = 0; i < count; i++) values[i] = (float)(deviation * tarn__random_normal(random));
}

static void fill_uniform(float *values, size_t count, double bound, tarn__random *random) {
  for (size_t i = 0; i < count; i++) values[i] = (float)(bound * (2.0 * tarn__random_uniform(random) - 1.0));
}

static void fill_range(float *values, size_t count, double least, double most, tarn__random *random) {
  for (size_t i = 0; i < count; i++) values[i] = (float)(least + (most - least) * tarn__random_uniform(random));
}

static void fill_signs(float *values, size_t count, tarn__random *random) {
  for (size_t i = 0; i < count; i++) values[i] = tarn__random_u32(random) >> 31 ? -1.0f : 1.0f;
}

static tarn_status fill_hadamard(const tarn__param *param, float *values, tarn__random *random) {
  tarn__hadamard_shape shape = tarn__hadamard_shape_of(param->rows, param->cols, param->init.blocks);
  size_t count = (size_t)(tarn__hadamard_sign_rows(&shape) * shape.width);
  shape.scale *= param->init.gain;
  void *signs;
  TARN_TRY(tarn__alloc(&signs, TARN__MEMORY_OTHER, count, sizeof(float)));
  fill_signs(signs, count, random);
  tarn_status status = tarn__hadamard_dense(values, signs, &shape);
  tarn__free(signs);
  return status;
}

// The matrix NAME.weight and its signs NAME.signs use the same stream, so that they are equal.
static size_t length_for_stream(const tarn__param *param) {
  size_t length = strlen(param->name);
  bool structured = param->init.kind == TARN__INIT_HADAMARD || param->init.kind == TARN__INIT_SIGNS;
  const char *dot = strrchr(param->name, '.');
  return structured && dot ? (size_t)(dot - param->name) : length;
}

static tarn_status name_reservoir(const tarn__param *param, tarn_status status) {
  if (status == TARN_STATUS_OK) return status;
  return tarn__fail_prefix(status, "kinds.%s.spectral_radius: %s: ", param->reservoir->kind, param->name);
}

// A reservoir's *factor is used, or determined if 0.
static tarn_status fill_reservoir(const tarn__param *param, float *values, double *factor, tarn__random *random) {
  return name_reservoir(
      param, tarn__reservoir_values(values, factor, param->rows, param->init.gain, param->reservoir, random));
}

static tarn__random generator(const tarn__param *param, uint64_t seed, uint32_t stream) {
  tarn__random random;
  tarn__random_init(&random, tarn__hash64(param->name, length_for_stream(param), seed), stream);
  return random;
}

static tarn_status draw_values(const tarn__param *param, uint64_t seed, float *values, double *factor) {
  size_t count = (size_t)(param->rows * param->cols);
  tarn__random random = generator(param, seed, param->draw);
  const tarn__init *init = &param->init;
  int blocks = init->blocks > 1 ? init->blocks : 1;
  int64_t rows = param->rows / blocks;
  switch (init->kind) {
    case TARN__INIT_ZERO:
      memset(values, 0, count * sizeof *values);
      break;
    case TARN__INIT_ONE:
      for (size_t i = 0; i < count; i++) values[i] = 1.0f;
      break;
    case TARN__INIT_CONSTANT:
      for (size_t i = 0; i < count; i++) values[i] = (float)init->gain;
      break;
    case TARN__INIT_NORMAL:
      fill_normal(values, count, init->gain, &random);
      break;
    case TARN__INIT_UNIFORM:
      fill_uniform(values, count, init->gain, &random);
      break;
    case TARN__INIT_RANGE:
      fill_range(values, count, param->least, init->gain, &random);
      break;
    case TARN__INIT_XAVIER:
      fill_uniform(values, count, init->gain * sqrt(6.0 / (double)(rows + param->cols)), &random);
      break;
    case TARN__INIT_ORTHOGONAL:
      for (int b = 0; b < blocks; b++)
        TARN_TRY(tarn__orthogonal(values + (size_t)(b * rows * param->cols), rows, param->cols, init->gain, &random));
      break;
    case TARN__INIT_HADAMARD:
      return fill_hadamard(param, values, &random);
    case TARN__INIT_SIGNS:
      fill_signs(values, count, &random);
      break;
    case TARN__INIT_FEATURES:
      return tarn__orthogonal_features(values, param->rows, param->cols, &random);
    case TARN__INIT_RESERVOIR:
      return fill_reservoir(param, values, factor, &random);
  }
  return TARN_STATUS_OK;
}

enum { ZEROS = 0x5A45524F };  // stream of the zeros, far from the numbers of draws

static tarn_status make_values(const tarn__param *param, uint64_t seed, float *values, double *factor) {
  TARN_TRY(draw_values(param, seed, values, factor));
  const int64_t count = param->rows * param->cols, block = count / (param->init.blocks > 1 ? param->init.blocks : 1);
  for (int64_t i = count - block; param->last_gain != 0.0 && i < count; i++)
    values[i] = (float)(param->last_gain * (double)values[i]);
  tarn__random random = generator(param, seed, ZEROS);
  for (int64_t i = 0; param->sparsity > 0.0 && i < count; i++)
    if (tarn__random_uniform(&random) < param->sparsity) values[i] = 0.0f;
  return TARN_STATUS_OK;
}

tarn_status tarn__param_initialise(const tarn__param *param, uint64_t seed, float *values) {
  double factor = param->factor;
  return make_values(param, seed, values, &factor);
}

// Values are converted piece by piece between the host and the device.
enum { PIECE = 1024 };

static tarn_status put_value(const tarn__param *param, size_t first, const float *values, size_t count) {
  const size_t size = tarn__dtype_size(param->dtype);
  double piece[PIECE];
  for (size_t done = 0; done < count; done += PIECE) {
    const size_t n = count - done < PIECE ? count - done : PIECE;
    if (param->dtype == TARN__BF16)
      for (size_t i = 0; i < n; i++) ((uint16_t *)(void *)piece)[i] = tarn__bf16_from_f32(values[done + i]);
    else
      for (size_t i = 0; i < n; i++) piece[i] = (double)values[done + i];
    TARN_TRY(tarn__device_put(param->device, (char *)param->value + (first + done) * size, piece, n * size));
  }
  return TARN_STATUS_OK;
}

static tarn_status get_value(const tarn__param *param, float *values, size_t count) {
  const size_t size = tarn__dtype_size(param->dtype);
  double piece[PIECE];
  for (size_t done = 0; done < count; done += PIECE) {
    const size_t n = count - done < PIECE ? count - done : PIECE;
    TARN_TRY(tarn__device_get(param->device, piece, (const char *)param->value + done * size, n * size));
    if (param->dtype == TARN__BF16)
      for (size_t i = 0; i < n; i++) values[done + i] = tarn__bf16_to_f32(((const uint16_t *)(const void *)piece)[i]);
    else
      for (size_t i = 0; i < n; i++) values[done + i] = (float)piece[i];
  }
  return TARN_STATUS_OK;
}

// Writes values [first, first + count) of a whole parameter to the master copy of a part, as far as they belong to it.
static tarn_status put_master(const tarn__param *part, int64_t first, const float *values, int64_t count) {
  const int64_t begin = part->training.first, end = begin + part->rows * part->cols;
  const int64_t from = first > begin ? first : begin, to = first + count < end ? first + count : end;
  if (from >= to) return TARN_STATUS_OK;
  return tarn__device_put(part->device, part->training.master + (from - begin), values + (from - first),
                          (size_t)(to - from) * sizeof *values);
}

tarn_status tarn__param_set_part(tarn__param *param, size_t first, const float *values, size_t count) {
  TARN_REQUIRE(!param->mapped.value && !param->mapped.rounded, INTERNAL,
               "%s lies in a file, and cannot be given other values", param->name);
  if (param->entries > 0) return tarn__entries_append(param, first, values, count);
  float *master = param->training.master ? param->training.master + first : NULL;
  const size_t bytes = count * sizeof *values;
  if (master && values != master) TARN_TRY(tarn__device_put(param->device, master, values, bytes));
  if (!master && param->training.part)
    TARN_TRY(put_master(param->training.part, (int64_t)first, values, (int64_t)count));
  if (param->dtype != TARN__F32) return put_value(param, first, values, count);
  return param->value != param->training.master
             ? tarn__device_put(param->device, (float *)param->value + first, values, bytes)
             : TARN_STATUS_OK;
}

tarn_status tarn__param_set(tarn__param *param, const float *values) {
  return tarn__param_set_part(param, 0, values, (size_t)(param->rows * param->cols));
}

tarn_status tarn__param_get(const tarn__param *param, float *values) {
  const size_t count = (size_t)(param->rows * param->cols), bytes = count * sizeof *values;
  if (param->entries > 0) return tarn__entries_get(param, values);
  if (param->training.master) return tarn__device_get(param->device, values, param->training.master, bytes);
  if (param->dtype == TARN__F32) return tarn__device_get(param->device, values, param->value, bytes);
  return get_value(param, values, count);
}

// Without the dense matrix.
static tarn_status initialise_entries(tarn__param *param, uint64_t seed) {
  tarn__random random = generator(param, seed, param->draw);
  tarn__sparse matrix;
  TARN_TRY(name_reservoir(param, tarn__reservoir_matrix(&matrix, &param->factor, param->rows, param->init.gain,
                                                        param->reservoir, &random)));
  tarn_status status = tarn__entries_set(param, &matrix);
  if (status == TARN_STATUS_OK) status = tarn__entries_hash(param->hash, &matrix);
  tarn__sparse_close(&matrix);
  return status;
}

static tarn_status initialise_one(tarn__param *param, uint64_t seed) {
  void *values;
  if (param->entries > 0 && param->reservoir) return initialise_entries(param, seed);
  TARN_TRY(tarn__alloc(&values, TARN__MEMORY_OTHER, (size_t)(param->rows * param->cols), sizeof(float)));
  tarn_status status = make_values(param, seed, values, &param->factor);
  if (status == TARN_STATUS_OK) status = tarn__param_set(param, values);
  if (status == TARN_STATUS_OK && !param->trained)
    tarn__hash(param->hash, values, (size_t)(param->rows * param->cols) * sizeof(float));
  tarn__free(values);
  return status;
}

static tarn_status initialise(tarn__model *model, uint64_t seed, bool trained,
                              void (*done)(void *user, const tarn__param *param), void *user) {
  model->seed = seed;
  tarn__failure failure = {0};
#pragma omp parallel for schedule(dynamic, 1) num_threads(tarn__threads())
  for (size_t i = 0; i < model->param_count + model->helper_count; i++) {
    tarn__param *param = tarn__model_param(model, i);
    if (param->trained && !trained) continue;
    // A parameter in a mapped file has its values and cannot be written.
    if (param->mapped.value || param->mapped.rounded) continue;
    tarn__failure_note(&failure, initialise_one(param, seed));
    if (done) done(user, param);
  }
  return tarn__failure_raise(&failure);
}

// The state of generating values.
typedef struct making {
  tarn__work work;
  _Atomic int64_t done;
  int64_t all;
} making;

static void note_made(void *user, const tarn__param *param) {
  making *m = user;
  const int64_t count = param->rows * param->cols, done = atomic_fetch_add(&m->done, count) + count;
  tarn__work_at(&m->work, (double)done, (double)done / (double)m->all);
}

tarn_status tarn__model_initialise(tarn__model *model, uint64_t seed) {
  making m = {.all = 0};
  for (size_t i = 0; i < model->param_count; i++) model->params[i]->factor = 0.0;
  for (size_t i = 0; i < model->param_count + model->helper_count; i++)
    m.all += tarn__model_param(model, i)->rows * tarn__model_param(model, i)->cols;
  tarn__work_begin(&m.work, "drawing first weights", "weights");
  const tarn_status status = initialise(model, seed, true, note_made, &m);
  tarn__work_end(&m.work);
  return status;
}

tarn_status tarn__model_initialise_frozen(tarn__model *model, uint64_t seed) {
  return initialise(model, seed, false, NULL, NULL);
}

tarn_status tarn__model_initialise_told(tarn__model *model, uint64_t seed,
                                        void (*done)(void *user, const tarn__param *param), void *user) {
  return initialise(model, seed, false, done, user);
}

static uint32_t draw_at(const tarn__param *param, int64_t update) {
  return param->redraw > 0 && update > 0 ? (uint32_t)((update - 1) / param->redraw) : 0;
}

void tarn__model_set_draws(tarn__model *model, int64_t update) {
  for (size_t i = 0; i < model->param_count; i++) model->params[i]->draw = draw_at(model->params[i], update);
}

tarn_status tarn__model_redraw(tarn__model *model, int64_t update) {
  for (size_t i = 0; i < model->param_count; i++) {
    tarn__param *param = model->params[i];
    const uint32_t draw = draw_at(param, update);
    if (draw == param->draw) continue;
    param->draw = draw;
    TARN_TRY(initialise_one(param, model->seed));
  }
  return TARN_STATUS_OK;
}
