// Opening, texts, closing.
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/threads.h"
#include "dynamics/dynamics.h"
#include "states/states.h"

static tarn_status check_range(const char *what, double value, double least, double most) {
  TARN_REQUIRE(value >= least && value <= most, USAGE, "%s: %.10g is not in %.10g .. %.10g", what, value, least, most);
  return TARN_STATUS_OK;
}

static tarn_status check_options(const tarn_dynamics_options *o) {
  TARN_REQUIRE(o->precision >= 0 && o->precision < TARN_DYNAMICS_PRECISION_COUNT && o->map >= 0 &&
                   o->map < TARN_DYNAMICS_MAP_COUNT && o->drive >= 0 && o->drive < TARN_DYNAMICS_DRIVE_COUNT,
               USAGE, "unknown precision, map or drive");
  TARN_REQUIRE(o->products >= 0 && o->products < TARN_FP32_COUNT, USAGE, "unknown kind of products");
  TARN_REQUIRE(o->products == TARN_FP32_EXACT || o->precision == TARN_DYNAMICS_PRECISION_FP32, USAGE,
               "products are %s in fp32 only", tarn_fp32_name(o->products));
  TARN_TRY(check_range("iterations", (double)o->iterations, 0, 1e7));
  TARN_TRY(check_range("exponents", (double)o->exponents, 0, 4096));
  TARN_TRY(check_range("starts", (double)o->starts, 1, 4096));
  TARN_TRY(check_range("iterations between two QR factorisations", (double)o->every, 1, 1000));
  TARN_TRY(check_range("iterations that the exponents leave out", (double)o->discard, -1, 1e7));
  TARN_TRY(check_range("tolerance", o->tolerance, 0, 1));
  TARN_TRY(check_range("longest period", (double)o->longest_period, 1, 1024));
  TARN_TRY(check_range("distance of the second start", o->apart, 0, 1e6));
  TARN_TRY(check_range("states that are kept", (double)o->kept, 0, 1e5));
  // As many as train.threads may be.
  TARN_REQUIRE(o->threads >= 0 && o->threads <= 4096, USAGE, "threads must be from 0 to 4096, not %d", o->threads);
  return TARN_STATUS_OK;
}

static tarn_status make(tarn_dynamics **out, const tarn_dynamics_options *options) {
  void *memory;
  *out = NULL;
  TARN_TRY(check_options(options));
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(tarn_dynamics)));
  tarn_dynamics *d = *out = memory;
  d->options = *options;
  d->info = (tarn_dynamics_info){.path = "",
                                 .text = "",
                                 .pattern = "",
                                 .drive = options->drive,
                                 .precision = options->precision,
                                 .products = options->products,
                                 .spectral_radius = NAN,
                                 .leak_rate = NAN};
  tarn__threads_set(options->threads);
  return TARN_STATUS_OK;
}

// The description of a recurrence, except its width.
static tarn_status describe_cell(tarn_dynamics *d) {
  d->info.precision = TARN_DYNAMICS_PRECISION_DOUBLE;
  d->info.products = TARN_FP32_EXACT;
  d->options.precision = TARN_DYNAMICS_PRECISION_DOUBLE;  // determines the tolerance
  if (d->cell.spec.cell != TARN__CELL_ECHO) return TARN_STATUS_OK;
  d->info.leak_rate = d->cell.spec.leak;
  return tarn__cell_radius(&d->info.spectral_radius, &d->cell);
}

// Prepares fp32 products in the requested way, with weights packed once.
static tarn_status prepare_products(tarn_dynamics *d) {
  tarn__model *model = d->checkpoint->model;
  model->fp32 = tarn__model_products(&(tarn_config_train){.fp32 = d->options.products});
  const char *lacks = tarn__device_fp32_lacks(model->device, model->fp32);
  TARN_REQUIRE(!lacks, UNSUPPORTED, "products of fp32 by %s need %s", tarn_fp32_name(d->options.products), lacks);
  d->packed_bytes = tarn__model_pack_bytes(model, false);
  if (d->planned) return TARN_STATUS_OK;
  TARN_TRY(tarn__device_allocate(model->device, &d->packed, TARN__MEMORY_OTHER, d->packed_bytes, 1));
  return tarn__model_pack(model, d->packed, false, tarn__threads());
}

// Of d->checkpoint.
static tarn_status open_model(tarn_dynamics *d) {
  tarn_states_options reading;
  tarn_states_default(&reading);
  reading.strict = d->options.strict;
  d->info.path = d->checkpoint->path;
  d->info.update = d->checkpoint->update;
  TARN_TRY(tarn__states_open_checkpoint(&d->states, d->checkpoint, &reading));
  TARN_TRY(tarn__dynamics_choose(d));
  if (d->info.map != TARN_DYNAMICS_MAP_RECURRENCE) return prepare_products(d);
  return d->planned ? TARN_STATUS_OK : describe_cell(d);
}

tarn_status tarn_dynamics_open(tarn_dynamics **dynamics, const char *path, const tarn_dynamics_options *options) {
  TARN_TRY(make(dynamics, options));
  tarn_dynamics *d = *dynamics;
  tarn_status status = tarn__dynamics_open_source(&d->checkpoint, &d->info.trained, path, &d->options);
  if (status == TARN_STATUS_OK) status = open_model(d);
  if (status != TARN_STATUS_OK) tarn_dynamics_close(dynamics);
  return status;
}

tarn_status tarn__dynamics_open_checkpoint(tarn_dynamics **dynamics, tarn__checkpoint *checkpoint, bool planned,
                                           const tarn_dynamics_options *options) {
  TARN_TRY(make(dynamics, options));
  tarn_dynamics *d = *dynamics;
  d->checkpoint = checkpoint;
  d->shared = true;
  d->planned = planned;
  d->info.trained = true;
  const tarn_status status = open_model(d);
  if (status != TARN_STATUS_OK) tarn_dynamics_close(dynamics);
  return status;
}

// The cell of a reservoir: its sparse matrix, its bias, the weights of one input.
static tarn_status take_reservoir(tarn_dynamics *d, const tarn_reservoir *reservoir, const tarn_esn_options *options) {
  const int64_t units = tarn_reservoir_units(reservoir);
  void *memory;
  d->cell.spec = (tarn__recurrence_spec){.cell = TARN__CELL_ECHO,
                                         .hidden = units,
                                         .directions = 1,
                                         .relu = options->activation == TARN_ESN_RELU,
                                         .leak = options->lr};
  d->cell.factor = 1.0;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)units, sizeof(double)));
  d->cell.bias = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)units, sizeof(double)));
  d->cell.noise_in = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)units * (size_t)units, sizeof(double)));
  tarn_reservoir_matrices(reservoir, memory, d->cell.noise_in, d->cell.bias);
  const tarn_status status = tarn__sparse_from_dense(&d->cell.sparse, memory, units);
  tarn__free(memory);
  return status;
}

static tarn_status open_alone(tarn_dynamics *d, const tarn_esn_options *options) {
  tarn_reservoir *reservoir;
  TARN_REQUIRE(d->options.drive != TARN_DYNAMICS_DRIVE_TEXT, USAGE,
               "a reservoir without a model reads no text: it is free, or driven by noise");
  TARN_REQUIRE(d->options.map == TARN_DYNAMICS_MAP_AUTO || d->options.map == TARN_DYNAMICS_MAP_RECURRENCE, USAGE,
               "a reservoir has no layers; its map is recurrence");
  TARN_TRY(tarn_reservoir_open(&reservoir, 1, options));
  const tarn_status status = take_reservoir(d, reservoir, options);
  tarn_reservoir_close(&reservoir);
  TARN_TRY(status);
  d->info.map = TARN_DYNAMICS_MAP_RECURRENCE;
  d->info.device = "reference";
  d->info.width = d->cell.spec.hidden;
  d->info.text = d->options.drive == TARN_DYNAMICS_DRIVE_FREE ? "an echo state network with an input of zeros"
                                                              : "an echo state network driven by noise";
  return describe_cell(d);
}

tarn_status tarn_dynamics_open_reservoir(tarn_dynamics **dynamics, const tarn_esn_options *reservoir,
                                         const tarn_dynamics_options *options) {
  TARN_TRY(make(dynamics, options));
  const tarn_status status = open_alone(*dynamics, reservoir);
  if (status != TARN_STATUS_OK) tarn_dynamics_close(dynamics);
  return status;
}

void tarn_dynamics_close(tarn_dynamics **dynamics) {
  tarn_dynamics *d = *dynamics;
  if (!d) return;
  tarn_states_close(&d->states);
  tarn__cell_close(&d->cell);
  if (d->packed) {
    tarn__model_unpack(d->checkpoint->model);
    tarn__device_free(d->checkpoint->model->device, d->packed);
  }
  if (!d->shared) tarn__checkpoint_close(&d->checkpoint);
  tarn__arena_close(&d->texts);
  tarn__free(d);
  *dynamics = NULL;
}

const tarn_dynamics_info *tarn_dynamics_describe(const tarn_dynamics *dynamics) { return &dynamics->info; }

static tarn_status check_model(const tarn_dynamics *d) {
  TARN_REQUIRE(d->checkpoint, USAGE, "a reservoir without a model reads no text");
  return TARN_STATUS_OK;
}

tarn_status tarn_dynamics_encode(tarn_dynamics *d, const char *const *lines, const size_t *lengths, size_t count) {
  TARN_TRY(check_model(d));
  return tarn_states_encode(d->states, lines, lengths, NULL, NULL, count);
}

tarn_status tarn_dynamics_encode_file(tarn_dynamics *d, const char *path) {
  TARN_TRY(check_model(d));
  return tarn_states_encode_file(d->states, path, NULL);
}

tarn_status tarn__dynamics_pack(const tarn_dynamics *d, tarn__packed *packed, void **memory) {
  const tarn__states_text *text = &d->states->sides[TARN_STATES_SIDE_SOURCE];
  const int64_t sentences = d->states->summary.sentences;
  *memory = NULL;
  TARN_REQUIRE(sentences > 0, USAGE, "%s: there are no sentences to start from", d->info.path);
  TARN_REQUIRE(text->tokens <= INT32_MAX / 2, USAGE, "%lld tokens are too many to be computed together",
               (long long)text->tokens);
  TARN_TRY(tarn__alloc(memory, TARN__MEMORY_OTHER, (size_t)(text->tokens + sentences + 1), sizeof(int32_t)));
  int32_t *positions = *memory, *offsets = positions + text->tokens;
  for (int64_t i = 0; i <= sentences; i++) offsets[i] = (int32_t)text->offsets[i];
  tarn__packed_positions(positions, offsets, sentences);
  *packed = (tarn__packed){.sentences = sentences,
                           .rows = text->tokens,
                           .longest = text->longest,
                           .ids = text->ids,
                           .positions = positions,
                           .offsets = offsets,
                           .segments = text->segments};
  return TARN_STATUS_OK;
}
