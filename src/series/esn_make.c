// The matrices of a reservoir: drawn from a seed, or read from a file.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "init/reservoir.h"
#include "series/esn.h"
#include "series/esn_file.h"
#include "store/safetensors.h"

enum { STREAM_W = 0x57, STREAM_WIN = 0x57494e, STREAM_BIAS = 0x42494153 };

void tarn_esn_default(tarn_esn_options *options) {
  *options = (tarn_esn_options){.units = 500,
                                .sr = 0.9,
                                .lr = 1,
                                .input_scaling = 1,
                                .bias_scaling = 0.5,
                                .input_connectivity = 1,
                                .rc_connectivity = 0.1,
                                .ridge = 1e-6,
                                .seed = 1,
                                .warmup = 100,
                                .standardize = true};
}

static tarn_status check_share(const char *name, double value) {
  TARN_REQUIRE(value > 0 && value <= 1, USAGE, "%s %g: a number above 0, at most 1, is expected", name, value);
  return TARN_STATUS_OK;
}

static tarn_status check(const tarn_esn_options *o) {
  TARN_REQUIRE(o->units >= 1 && o->units <= TARN__ESN_UNITS, USAGE, "units %" PRId64 ": 1 .. %d is expected", o->units,
               TARN__ESN_UNITS);
  TARN_REQUIRE(isfinite(o->sr) && o->sr >= 0, USAGE, "sr %g: a spectral radius that is not negative is expected",
               o->sr);
  TARN_REQUIRE(isfinite(o->input_scaling) && o->input_scaling > 0, USAGE,
               "input_scaling %g: a number above 0 is expected", o->input_scaling);
  TARN_REQUIRE(isfinite(o->bias_scaling) && o->bias_scaling >= 0, USAGE,
               "bias_scaling %g: a number that is not negative is expected", o->bias_scaling);
  TARN_REQUIRE(isfinite(o->ridge) && o->ridge >= 0, USAGE, "ridge %g: a number that is not negative is expected",
               o->ridge);
  TARN_REQUIRE(o->warmup >= 0, USAGE, "warmup %" PRId64 ": a number that is not negative is expected", o->warmup);
  TARN_REQUIRE(o->activation == TARN_ESN_TANH || o->activation == TARN_ESN_RELU, USAGE, "an unknown activation");
  TARN_TRY(check_share("lr", o->lr));
  TARN_TRY(check_share("input_connectivity", o->input_connectivity));
  return check_share("rc_connectivity", o->rc_connectivity);
}

static tarn_status draw(tarn_esn *esn, const tarn_esn_options *o) {
  const tarn__reservoir reservoir = {.topology = TARN__TOPOLOGY_RANDOM, .sparsity = 1 - o->rc_connectivity};
  const int64_t n = o->units;
  double factor = 0;
  tarn__random random;
  tarn__random_init(&random, o->seed, STREAM_W);
  TARN_TRY(tarn__reservoir_matrix(&esn->w, &factor, n, o->sr, &reservoir, &random));
  tarn__random_init(&random, o->seed, STREAM_WIN);
  for (int64_t i = 0; i < n * esn->info.columns; i++) {
    double value = o->input_scaling * (2 * tarn__random_uniform(&random) - 1);
    if (tarn__random_uniform(&random) < o->input_connectivity) esn->win[i] = value;
  }
  tarn__random_init(&random, o->seed, STREAM_BIAS);
  for (int64_t i = 0; i < n; i++) esn->bias[i] = o->bias_scaling * (2 * tarn__random_uniform(&random) - 1);
  return TARN_STATUS_OK;
}

static tarn_status from_file(tarn_esn **esn, const tarn__safetensors *file, const char *path, int64_t columns) {
  const tarn__stored *w = tarn__safetensors_find(file, "W");
  TARN_REQUIRE(w && w->dims == 2 && w->shape[0] == w->shape[1] && w->shape[0] >= 1 && w->shape[0] <= TARN__ESN_UNITS,
               DATA, "%s: a tensor W [units, units] with 1 .. %d units is expected", path, TARN__ESN_UNITS);
  TARN_TRY(tarn__esn_new(esn, w->shape[0], columns));
  return tarn__esn_load_reservoir(*esn, file, path);
}

tarn_status tarn__esn_make(tarn_esn **esn, const tarn_esn_options *options, int64_t columns) {
  *esn = NULL;
  TARN_TRY(check(options));
  tarn_status status;
  if (options->matrices) {
    tarn__safetensors file;
    TARN_TRY(tarn__safetensors_open(&file, options->matrices));
    status = tarn__map_judge(&file.map, from_file(esn, &file, options->matrices, columns));
    tarn__safetensors_close(&file);
  } else {
    status = tarn__esn_new(esn, options->units, columns);
    if (status == TARN_STATUS_OK) status = draw(*esn, options);
  }
  if (status != TARN_STATUS_OK) {
    tarn_esn_close(esn);
    return status;
  }
  (*esn)->info.edges = (*esn)->w.starts[(*esn)->w.n];
  (*esn)->activation = options->activation;
  (*esn)->lr = options->lr;
  (*esn)->warmup = options->warmup;
  (*esn)->seed = options->seed;
  return TARN_STATUS_OK;
}
