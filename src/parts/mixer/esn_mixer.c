// An echo state network (Jaeger 2001; Ueda et al.), with W_rec [hidden, hidden] made once and never trained
// (init/reservoir.h):
//   h' = (1 - leak_rate) h + leak_rate f(W_rec h + W_in x)
// Its parameters are esn.in, the W_in of a projection, absent where the layer's input itself drives the units;
// esn.recurrent, W_rec; esn.out, the readout.
#include <math.h>

#include "parts/mixer/recurrent_layer.h"

typedef enum esn_function { RELU, TANH } esn_function;
typedef enum esn_input { PROJECTION, DIRECT } esn_input;

typedef struct esn_keys {
  tarn__recurrent_keys recurrent;  // frozen_recurrence is no key: W_rec always is
  double leak_rate, spectral_radius;
  double sparsity;  // share of W_rec's entries that are 0
  tarn__topology topology;
  esn_function nonlinearity;  // f
  esn_input input;
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

static const tarn__option options[] = {
    TARN__KEY_CROSS_HEADS(esn_keys, recurrent.heads),
    TARN__KEY_HIDDEN(esn_keys, recurrent.hidden, "model.d_model", "units of the recurrence"),
    {"leak_rate", TARN__KEY_REAL(esn_keys, leak_rate, 0, 1), TARN__KEY_ABOVE_LEAST, .value = "0.8",
     .help = "a in h' = (1 - a) h + a f(W_rec h + W_in x)", .also = "leak leaking_rate lr alpha"},
    {"spectral_radius", TARN__KEY_REAL(esn_keys, spectral_radius, 0, 1000), TARN__KEY_ABOVE_LEAST, .value = "0.993",
     .help = "largest modulus of the eigenvalues of W_rec", .also = "sr rho"},
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
    TARN__KEY_FROZEN_INPUT(esn_keys, recurrent.frozen_input),
    TARN__KEY_FROZEN_OUTPUT(esn_keys, recurrent.frozen_output),
    TARN__KEY_CROSS_DROPOUT(esn_keys, recurrent.cross_dropout),
};

// A random graph needs an entry to be expected. Each other topology has a least graph, to which a share of entries is
// rounded if it is nearer to that graph than to none.
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
  if (keys->input_scaling == 0 && !keys->recurrent.frozen_input) return TARN_STATUS_OK;
  return tarn__part_fail(site, keys->input_scaling != 0 ? "input_scaling" : "frozen_input",
                         "with input: direct the layer has no W_in; see model.embedding_std and frozen_embeddings");
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
  return tarn__recurrent_check(site, &keys->recurrent, 1);
}

static void *declare_esn(tarn__declare *declare, const void *memory) {
  const esn_keys *keys = memory;
  tarn__recurrent_weights *weights = tarn__declare_struct(declare, sizeof *weights);
  tarn__reservoir *reservoir = tarn__declare_struct(declare, sizeof *reservoir);
  if (!weights || !reservoir) return NULL;
  const tarn_kind *kind = declare->kind;
  const int64_t hidden = keys->recurrent.hidden;
  weights->spec = (tarn__recurrence_spec){.cell = TARN__CELL_ECHO,
                                          .hidden = hidden,
                                          .directions = 1,
                                          .relu = keys->nonlinearity == RELU,
                                          .leak = keys->leak_rate};
  const bool frozen_input = declare->frozen_part = keys->recurrent.frozen_input;
  if (keys->input == PROJECTION && keys->input_scaling > 0)
    weights->in.weight = tarn__declare_param(declare, "esn.in.weight", hidden, declare->d_model,
                                             kind->frozen == TARN_FROZEN_NO && !frozen_input,
                                             (tarn__init){TARN__INIT_NORMAL, keys->input_scaling, 1});
  else if (keys->input == PROJECTION)
    weights->in = tarn__declare_matrix(declare, "esn.in", hidden, declare->d_model, 1, 1.0);
  *reservoir = (tarn__reservoir){keys->topology, keys->sparsity, kind->name};
  weights->cell[0].weight = tarn__declare_param(declare, "esn.recurrent.weight", hidden, hidden, false,
                                                (tarn__init){TARN__INIT_RESERVOIR, keys->spectral_radius, 1});
  if (weights->cell[0].weight) weights->cell[0].weight->reservoir = reservoir;
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
                     "frozen, and a projection of its states; in the decoder then cross-attention",
             .equation = "h' = (1 - a) h + a f(W_rec h + W_in x), a the leak rate\n"
                         "y = W_o h'",
             .source = "Jaeger 2001",
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
