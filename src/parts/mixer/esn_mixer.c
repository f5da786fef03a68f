// An echo state network (Jaeger 2001; Ueda et al.), with W_rec [hidden, hidden] drawn once and never trained
// (init/reservoir.h):
//   h' = (1 - leak_rate) h + leak_rate f(W_rec h + W_in x)
// Its parameters are esn.in, the W_in of a projection, absent if the layer's input drives the units directly;
// esn.recurrent, W_rec; esn.leak_rate, if each unit has its own; esn.out, the readout.
//
// At the scale of Ueda et al. 2025 (arXiv 2503.01724), tens of thousands of units, W_rec and a sparse W_in are stored
// and multiplied as their entries (graph/entries.h). Trained matrices are always dense: a trained W_in has its zeros
// only at the beginning.
#include <math.h>

#include "graph/entries.h"
#include "parts/mixer/recurrent_layer.h"

typedef enum esn_function { RELU, TANH } esn_function;
typedef enum esn_input { PROJECTION, DIRECT } esn_input;
typedef enum esn_storage { AUTO, DENSE, ENTRIES } esn_storage;

// The sparsity from which matrices are stored as entries by default: an entry takes 8 bytes instead of 2 or 4, and
// products become faster at about this point (bench/performance.md). Smaller recurrent matrices are packed for decoding
// like all weights, also to INT8.
static const double SPARSE = 0.85;
static const int64_t MANY_UNITS = 4096;

typedef struct esn_keys {
  tarn__recurrent_keys recurrent;  // frozen_recurrence is no key: W_rec is always frozen
  double leak_rate, leak_rate_min, spectral_radius;
  double sparsity;  // share of W_rec's entries that are 0
  tarn__topology topology;
  esn_function nonlinearity;  // f
  esn_input input;
  double input_sparsity;  // share of the entries of a projection's W_in that are 0
  esn_storage storage;
  double input_scaling;  // standard deviation of a projection's W_in, which is normal; 0: as `init` says
} esn_keys;

static const tarn_config_word topologies[] = {
    {"random", "each entry is there with probability 1 - sparsity (Erdos and Renyi 1959)", TARN__TOPOLOGY_RANDOM},
    {"small_world", "a ring of near neighbours of which a tenth is rewired, Watts and Strogatz 1998",
     TARN__TOPOLOGY_SMALL_WORLD},
    {"scale_free", "few units know many, Barabasi and Albert 1999", TARN__TOPOLOGY_SCALE_FREE},
    {"ring", "each unit hears those before it, by default one, Rodan and Tino 2011", TARN__TOPOLOGY_RING},
};
static const tarn_config_word functions[] = {{"relu", "max(x, 0)", RELU}, {"tanh", "hyperbolic tangent", TANH}};
static const tarn_config_word inputs[] = {
    {"projection", "a matrix W_in of the layer projects the layer's input to its units", PROJECTION},
    {"direct",
     "the layer's input drives the d_model units: W_in is the embedding matrix, above another layer the identity",
     DIRECT},
};

static const tarn_config_word storages[] = {
    {"auto", "entries of a frozen matrix of which 0.85 or more are 0, W_rec from 4,096 units on; else dense", AUTO},
    {"dense", "all values, zeros too", DENSE},
    {"entries", "those that are not 0, 8 bytes each, whatever their share is; a W_in only with input_sparsity",
     ENTRIES},
};

static const tarn__option options[] = {
    TARN__KEY_CROSS_HEADS(esn_keys, recurrent.heads),
    TARN__KEY_HIDDEN(esn_keys, recurrent.hidden, "model.d_model", "units of the recurrence"),
    {"leak_rate", TARN__KEY_REAL(esn_keys, leak_rate, 0, 1), TARN__KEY_ABOVE_LEAST, .value = "0.8",
     .help = "a in h' = (1 - a) h + a f(W_rec h + W_in x)", .also = "leak leaking_rate lr alpha leak_rate_max"},
    {"leak_rate_min", TARN__KEY_REAL(esn_keys, leak_rate_min, 0, 1), TARN__KEY_BELOW_MOST, .value = "0", .later = true,
     .help = "above 0: each unit has a leak rate of its own, drawn uniformly between this and leak_rate; 0: all have "
             "leak_rate",
     .also = "leak_min leaking_rate_min lr_min leak_range"},
    {"spectral_radius", TARN__KEY_REAL(esn_keys, spectral_radius, 0, 1000), .value = "0.993",
     .help = "largest modulus of the eigenvalues of W_rec; 0: no recurrent connections, W_rec is 0", .also = "sr rho"},
    {"sparsity", TARN__KEY_REAL(esn_keys, sparsity, 0, 1), TARN__KEY_BELOW_MOST,
     .derived = "0.5; 1 - 1 / hidden for topology ring", .help = "share of the entries of W_rec that are 0",
     .also = "lambda connectivity rc_connectivity density"},
    {"topology", TARN__KEY_WORD(esn_keys, topology, topologies), .value = "random",
     .help = "which entries of W_rec there are", .also = "graph"},
    {"nonlinearity", TARN__KEY_WORD(esn_keys, nonlinearity, functions), .value = "relu",
     .help = "f of an echo state network", .also = "reservoir_activation activation"},
    {"input", TARN__KEY_WORD(esn_keys, input, inputs), .value = "projection",
     .help = "what drives the units; direct needs hidden equal to model.d_model"},
    {"input_scaling", TARN__KEY_REAL(esn_keys, input_scaling, 0, 1000), .value = "0",
     .help = "standard deviation of a projection's W_in, which is normal; 0: as init says", .also = "sigma_in"},
    {"input_sparsity", TARN__KEY_REAL(esn_keys, input_sparsity, 0, 1), TARN__KEY_BELOW_MOST, .value = "0",
     .later = true,
     .help = "share of the entries of a projection's W_in that are 0, drawn one by one; of one that learns, at the "
             "beginning",
     .also = "input_connectivity w_in_sparsity"},
    {"storage", TARN__KEY_WORD(esn_keys, storage, storages), .value = "auto", .later = true,
     .help = "how W_rec and a frozen W_in are kept in memory; the same values in any case",
     .also = "format sparse_storage"},
    TARN__KEY_FROZEN_INPUT(esn_keys, recurrent.frozen_input),
    TARN__KEY_FROZEN_OUTPUT(esn_keys, recurrent.frozen_output),
    TARN__KEY_CROSS_DROPOUT(esn_keys, recurrent.cross_dropout),
};

// A random graph needs an expected number of at least one entry. Every other topology has a smallest graph, to which a
// share of entries is rounded if it is closer to that graph than to none.
static tarn_status check_sparsity(const tarn__part_site *site, const esn_keys *keys) {
  const int64_t hidden = keys->recurrent.hidden;
  const double n = (double)hidden, entries = (1.0 - keys->sparsity) * n * n;
  const double least_entries = keys->topology == TARN__TOPOLOGY_RING          ? n
                               : keys->topology == TARN__TOPOLOGY_SMALL_WORLD ? 2.0 * n
                                                                              : 2.0 * n - 2.0;
  if (keys->topology == TARN__TOPOLOGY_RANDOM) {
    if (entries >= 1.0) return TARN_STATUS_OK;
    return tarn__part_fail(site, "sparsity", "%.10g of %lld x %lld entries leaves no edges", keys->sparsity,
                           (long long)hidden, (long long)hidden);
  }
  if (entries >= 0.5 * least_entries) return TARN_STATUS_OK;
  return tarn__part_fail(site, "sparsity",
                         "%.10g is sparser than a graph of this topology with %lld units can be; use at most %.10g",
                         keys->sparsity, (long long)hidden, 1.0 - least_entries / (n * n));
}

static tarn_status check_direct(const tarn__part_site *site, const esn_keys *keys) {
  if (keys->input == PROJECTION) return TARN_STATUS_OK;
  if (keys->recurrent.hidden != site->model->d_model)
    return tarn__part_fail(
        site, "hidden",
        "with input: direct the layer's input drives the units, so there are model.d_model %lld of them",
        (long long)site->model->d_model);
  if (keys->input_scaling == 0 && keys->input_sparsity == 0 && !keys->recurrent.frozen_input) return TARN_STATUS_OK;
  return tarn__part_fail(site,
                         keys->input_scaling != 0    ? "input_scaling"
                         : keys->input_sparsity != 0 ? "input_sparsity"
                                                     : "frozen_input",
                         "with input: direct the layer has no W_in; see model.embedding_std and frozen_embeddings");
}

static bool input_frozen(const esn_keys *keys, const tarn_kind *kind) {
  return kind->frozen != TARN_FROZEN_NO || keys->recurrent.frozen_input;
}

static tarn_status check_scale(const tarn__part_site *site, const esn_keys *keys) {
  if (keys->leak_rate_min >= keys->leak_rate)
    return tarn__part_fail(site, "leak_rate_min", "%.10g is not below leak_rate %.10g", keys->leak_rate_min,
                           keys->leak_rate);
  const double entries = (1.0 - keys->input_sparsity) * (double)keys->recurrent.hidden * (double)site->model->d_model;
  if (keys->input_sparsity > 0 && entries < 1.0)
    return tarn__part_fail(site, "input_sparsity", "%.10g of %lld x %lld entries leaves none", keys->input_sparsity,
                           (long long)keys->recurrent.hidden, (long long)site->model->d_model);
  const bool structured = input_frozen(keys, site->kind) && site->kind->init == TARN_INIT_HADAMARD;
  if (keys->input_sparsity > 0 && keys->input_scaling == 0 && structured)
    return tarn__part_fail(site, "input_sparsity", "a frozen W_in of init hadamard has no entries; give input_scaling");
  return TARN_STATUS_OK;
}

// Capacity for the entries of W_in, if stored as entries, else 0.
static int64_t input_room(const esn_keys *keys, int64_t d, bool frozen) {
  const int64_t all = keys->recurrent.hidden * d;
  const bool wanted = keys->storage == ENTRIES || (keys->storage == AUTO && keys->input_sparsity >= SPARSE);
  if (!frozen || !wanted || keys->input == DIRECT || keys->input_sparsity == 0) return 0;
  const int64_t room = tarn__entries_room((1.0 - keys->input_sparsity) * (double)all);
  return room < all ? room : all;
}

// The same for W_rec.
static int64_t recurrent_room(const esn_keys *keys) {
  const int64_t hidden = keys->recurrent.hidden;
  const tarn__reservoir reservoir = {.topology = keys->topology, .sparsity = keys->sparsity};
  const bool large = hidden >= MANY_UNITS && keys->sparsity >= SPARSE;
  if (keys->storage != ENTRIES && !(keys->storage == AUTO && large)) return 0;
  return tarn__reservoir_room(hidden, &reservoir);
}

// Entries are counted in 32 bits (graph/entries.h).
static tarn_status check_room(const tarn__part_site *site, const esn_keys *keys) {
  const int64_t in = input_room(keys, site->model->d_model, input_frozen(keys, site->kind));
  const int64_t recurrent = recurrent_room(keys);
  if (in <= INT32_MAX && recurrent <= INT32_MAX) return TARN_STATUS_OK;
  return tarn__part_fail(site, "storage",
                         "%s may have up to %lld entries, but at most %d can be stored as such; use dense, or fewer of "
                         "them",
                         recurrent > INT32_MAX ? "W_rec" : "W_in", (long long)(recurrent > INT32_MAX ? recurrent : in),
                         INT32_MAX);
}

static tarn_status resolve(const tarn__part_site *site, void *memory) {
  esn_keys *keys = memory;
  tarn__recurrent_default(&keys->recurrent, site->model->d_model);
  const int64_t hidden = keys->recurrent.hidden;
  if (isnan(keys->sparsity)) keys->sparsity = keys->topology == TARN__TOPOLOGY_RING ? 1.0 - 1.0 / (double)hidden : 0.5;
  const int64_t least = keys->topology == TARN__TOPOLOGY_SMALL_WORLD  ? 3
                        : keys->topology == TARN__TOPOLOGY_SCALE_FREE ? 2
                                                                      : 1;
  if (hidden < least)
    return tarn__part_fail(site, "hidden", "a graph of this topology has at least %lld units", (long long)least);
  TARN_TRY(check_sparsity(site, keys));
  TARN_TRY(check_direct(site, keys));
  TARN_TRY(check_scale(site, keys));
  TARN_TRY(check_room(site, keys));
  return tarn__recurrent_check(site, &keys->recurrent, 1);
}

// W_in of a projection.
static void declare_input(tarn__declare *declare, const esn_keys *keys, tarn__recurrent_weights *weights) {
  const int64_t hidden = keys->recurrent.hidden, d = declare->d_model;
  const bool frozen = input_frozen(keys, declare->kind);
  declare->frozen_part = keys->recurrent.frozen_input;
  if (keys->input_scaling > 0)
    weights->in.weight = tarn__declare_param(declare, "esn.in.weight", hidden, d, !frozen,
                                             (tarn__init){TARN__INIT_NORMAL, keys->input_scaling, 1});
  else
    weights->in = tarn__declare_matrix(declare, "esn.in", hidden, d, 1, 1.0);
  if (!weights->in.weight || keys->input_sparsity == 0) return;
  weights->in.weight->sparsity = keys->input_sparsity;
  weights->in.weight->entries = input_room(keys, d, frozen);
}

// W_rec.
static void declare_recurrence(tarn__declare *declare, const esn_keys *keys, tarn__recurrent_weights *weights) {
  const int64_t hidden = keys->recurrent.hidden;
  tarn__reservoir *reservoir = tarn__declare_struct(declare, sizeof *reservoir);
  tarn__param *weight = tarn__declare_param(declare, "esn.recurrent.weight", hidden, hidden, false,
                                            (tarn__init){TARN__INIT_RESERVOIR, keys->spectral_radius, 1});
  weights->cell[0].weight = weight;
  if (!weight || !reservoir) return;
  *reservoir = (tarn__reservoir){keys->topology, keys->sparsity, declare->kind->name};
  weight->reservoir = reservoir;
  weight->entries = recurrent_room(keys);
}

static void *declare_esn(tarn__declare *declare, const void *memory) {
  const esn_keys *keys = memory;
  tarn__recurrent_weights *weights = tarn__declare_struct(declare, sizeof *weights);
  if (!weights) return NULL;
  const int64_t hidden = keys->recurrent.hidden;
  weights->spec = (tarn__recurrence_spec){.cell = TARN__CELL_ECHO,
                                          .hidden = hidden,
                                          .directions = 1,
                                          .relu = keys->nonlinearity == RELU,
                                          .leak = keys->leak_rate};
  if (keys->input == PROJECTION) declare_input(declare, keys, weights);
  declare_recurrence(declare, keys, weights);
  if (keys->leak_rate_min > 0) {
    tarn__param *leaks = weights->cell[0].leaks = tarn__declare_param(
        declare, "esn.leak_rate", 1, hidden, false, (tarn__init){TARN__INIT_RANGE, keys->leak_rate, 1});
    if (leaks) leaks->least = keys->leak_rate_min;
  }
  tarn__recurrent_declare_rest(declare, &keys->recurrent, "esn", weights);
  return weights;
}

static int64_t cache_width(const void *keys, int64_t d_model) {
  (void)d_model;
  return tarn__recurrence_cache_width(TARN__CELL_ECHO, ((const esn_keys *)keys)->recurrent.hidden);
}

// W_rec.
static bool partly_frozen(const void *keys) {
  (void)keys;
  return true;
}

const tarn__mixer_entry tarn__mixer_esn = {
    .part = {.word = "esn",
             .text = "echo state network, Jaeger 2001: a leaky recurrence whose recurrent matrix is random, scaled and "
                     "frozen, and a projection of its states; in the decoder then cross-attention. Large sparse "
                     "matrices take the memory and time of their entries (key storage)",
             .equation = "h' = (1 - a) h + a f(W_rec h + W_in x), a the leak rate of all units, or a vector\n"
                         "y = W_o h'",
             .source = "Jaeger 2001; at the scale of tens of thousands of units Ueda et al. 2025 (arXiv 2503.01724)",
             .also = "echo_state_network reservoir",
             TARN__PART_KEYS(esn_keys, options),
             .resolve = resolve},
    .causal = true,
    .decodes = true,
    .attends = true,
    .sequential = true,
    .declare = declare_esn,
    .build = tarn__recurrent_build,
    .cache_width = cache_width,
    .history = tarn__recurrent_history,
    .partly_frozen = partly_frozen,
    .explodes = "states of an echo state network explode if its spectral_radius is too large",
};
