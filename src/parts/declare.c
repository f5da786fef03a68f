#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "ops/hadamard.h"
#include "parts/block.h"
#include "parts/depth.h"

void *tarn__declare_struct(tarn__declare *declare, size_t size) {
  void *memory = NULL;
  if (declare->status == TARN_STATUS_OK) declare->status = tarn__arena_alloc(declare->arena, &memory, 1, size);
  return declare->status == TARN_STATUS_OK ? memory : NULL;
}

// The parameter of that name, with one more use; NULL: none yet.
static tarn__param *use_again(tarn__declare *declare, const char *full, int64_t rows, int64_t cols) {
  const uint64_t hash = tarn__hash64(full, strlen(full), 0);
  size_t step = 0;
  for (int64_t i; (i = tarn__index_next(declare->params.names, hash, &step)) >= 0;) {
    tarn__param *param = (*declare->params.list)[i];
    if (strcmp(param->name, full) != 0) continue;
    if (param->rows != rows || param->cols != cols)
      declare->status = tarn__fail(TARN_STATUS_INTERNAL, "%s has other sizes as a part of %s", full, declare->prefix);
    param->uses++;
    return param;
  }
  return NULL;
}

// The parameter of the shared set; NULL: there is none, or the set is not shared.
static tarn__param *find_shared(tarn__declare *declare, const char *name, int64_t rows, int64_t cols) {
  char full[256];
  if (!declare->shared) return NULL;
  snprintf(full, sizeof full, "%s.%s", declare->shared, name);
  return use_again(declare, full, rows, cols);
}

tarn__param *tarn__declare_param(tarn__declare *declare, const char *name, int64_t rows, int64_t cols, bool trained,
                                 tarn__init init) {
  if (declare->status != TARN_STATUS_OK) return NULL;
  tarn__param *shared = find_shared(declare, name, rows, cols);
  if (shared) return shared;
  char full[256];
  snprintf(full, sizeof full, "%s%s%s", declare->prefix, *declare->prefix ? "." : "", name);
  char *copy = NULL;
  void *memory = NULL;
  declare->status = tarn__arena_strdup(declare->arena, &copy, full);
  if (declare->status == TARN_STATUS_OK)
    declare->status = tarn__arena_alloc(declare->arena, &memory, 1, sizeof(tarn__param));
  if (declare->status == TARN_STATUS_OK)
    declare->status =
        tarn__grow(declare->params.list, declare->params.capacity, *declare->params.count + 1, sizeof(tarn__param *));
  if (declare->status == TARN_STATUS_OK)
    declare->status = tarn__index_add(declare->params.names, tarn__hash64(copy, strlen(copy), 0));
  if (declare->status != TARN_STATUS_OK) return NULL;
  tarn__param *param = memory;
  // A weight is a matrix, even with one row.
  const size_t length = strlen(name);
  const bool weight = length >= 6 && strcmp(name + length - 6, "weight") == 0;
  *param = (tarn__param){.name = copy,
                         .rows = rows,
                         .cols = cols,
                         .vector = rows == 1 && !weight,
                         .role = declare->role,
                         .stack = declare->stack_id,
                         .trained = trained,
                         .uses = 1,
                         .init = init};
  (*declare->params.list)[(*declare->params.count)++] = param;
  return param;
}

tarn__param *tarn__declare_signs(tarn__declare *declare, const char *name, int64_t out, int64_t in, int blocks) {
  char part[128];
  snprintf(part, sizeof part, "%s.signs", name);
  tarn__hadamard_shape shape = tarn__hadamard_shape_of(out, in, blocks);
  tarn__param *signs = tarn__declare_param(declare, part, tarn__hadamard_sign_rows(&shape), shape.width, false,
                                           (tarn__init){TARN__INIT_SIGNS, declare->kind->init_gain, blocks});
  if (!signs) return NULL;
  signs->out = out;
  signs->in = in;
  return signs;
}

// The role of a projection, for first values that depend on the depth of a model.
typedef enum role {
  ROLE_OTHER,
  ROLE_SCORES,  // queries, keys, logits: inputs of attention weights
  ROLE_VALUES,  // the same, with values in the last block of rows
  ROLE_APART    // weights of a sum over tokens, products of a state with itself, vectors by distance: the depth of a
                // model does not concern them
} role;

static role role_of(const char *name) {
  static const struct {
    const char *end;
    role of;
  } roles[] = {{"q", ROLE_SCORES},         {"k", ROLE_SCORES},        {"qk", ROLE_SCORES},     {"token", ROLE_SCORES},
               {"logits", ROLE_SCORES},    {"kv", ROLE_VALUES},       {"qkv", ROLE_VALUES},    {"kernel", ROLE_APART},
               {"recurrent", ROLE_APART},  {"forward", ROLE_APART},   {"reverse", ROLE_APART}, {"tokens", ROLE_APART},
               {"relative_k", ROLE_APART}, {"relative_v", ROLE_APART}};
  const char *dot = strrchr(name, '.');
  for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
    if (strcmp(dot ? dot + 1 : name, roles[i].end) == 0) return roles[i].of;
  return ROLE_OTHER;
}

// Whether the next matrix is frozen, and whether a bias or norm is.
static bool matrix_frozen(const tarn__declare *declare) {
  return declare->kind->frozen != TARN_FROZEN_NO || declare->frozen_part;
}

// The logits of Synthesizers became scores after models with frozen ones had been trained. Frozen values are recomputed
// from their recipe in the checkpoint, so frozen matrices keep the old rule.
static role role_in(const tarn__declare *declare, const char *name) {
  const char *dot = strrchr(name, '.'), *last = dot ? dot + 1 : name;
  const bool later = strcmp(last, "token") == 0 || strcmp(last, "logits") == 0;
  return later && matrix_frozen(declare) ? ROLE_OTHER : role_of(name);
}

// The gain of a projection under norms that depend on the depth of a model.
static double depth_gain(const tarn__declare *declare, const char *name, double *gain, double *last_gain) {
  const role made = role_in(declare, name);
  *last_gain = 0.0;
  switch (declare->kind->norm) {
    case TARN_NORM_DEEPNORM:
      if (*gain == TARN__ATTENTION_GAIN) *gain = 1.0;  // fairseq's, not the paper's
      if (made == ROLE_OTHER) return declare->beta;
      if (made == ROLE_VALUES) *last_gain = declare->beta;
      return 1.0;
    case TARN_NORM_FIXUP:
      if (made == ROLE_APART) return 1.0;
      return tarn__fixup_factor(declare->branches, made == ROLE_OTHER ? 2 : 4);
    default:
      return 1.0;
  }
}

// The first values of a projection's matrix.
static tarn__init init_of(const tarn__declare *declare, const char *name, int64_t out, int64_t in, int blocks,
                          double gain, double *last_gain) {
  const tarn_kind *kind = declare->kind;
  const double all = kind->init_gain * depth_gain(declare, name, &gain, last_gain);
  switch (kind->init) {
    case TARN_INIT_ORTHOGONAL:
      return (tarn__init){TARN__INIT_ORTHOGONAL, all, blocks};
    case TARN_INIT_HADAMARD:
      return (tarn__init){TARN__INIT_HADAMARD, all, blocks};
    case TARN_INIT_NORMAL:
      // A factor on one block needs separate blocks.
      return (tarn__init){TARN__INIT_NORMAL, all * gain * sqrt(2.0 / (double)(out / blocks + in)),
                          *last_gain != 0.0 ? blocks : 1};
    case TARN_INIT_XAVIER:
    case TARN_INIT_COUNT:
      break;
  }
  return (tarn__init){TARN__INIT_XAVIER, all * gain, blocks};
}

static bool vector_frozen(const tarn__declare *declare) {
  return declare->kind->frozen == TARN_FROZEN_YES || declare->frozen_part;
}

tarn__param *tarn__declare_dense(tarn__declare *declare, const char *name, int64_t out, int64_t in, int blocks,
                                 double gain) {
  char part[128];
  double last_gain;
  snprintf(part, sizeof part, "%s.weight", name);
  const tarn__init init = init_of(declare, name, out, in, blocks, gain, &last_gain);
  const size_t before = *declare->params.count;
  tarn__param *param = tarn__declare_param(declare, part, out, in, !matrix_frozen(declare), init);
  // A set declared by the encoder keeps its first values, by the encoder's depth.
  if (param && *declare->params.count > before) param->last_gain = last_gain;
  return declare->last = param;
}

tarn__param *tarn__declare_dense_shared(tarn__declare *declare, const char *name, int64_t out, int64_t in,
                                        double gain) {
  char prefix[128], full[256];
  snprintf(prefix, sizeof prefix, "%s.shared.%s", declare->stack, declare->kind->name);
  snprintf(full, sizeof full, "%s.%s.weight", prefix, name);
  if (declare->status != TARN_STATUS_OK) return NULL;
  tarn__param *param = use_again(declare, full, out, in);
  if (param) return param;
  const char *const own = declare->prefix, *const set = declare->shared;
  declare->prefix = prefix;
  declare->shared = NULL;
  declare->role = TARN__ROLE_SHARED;
  param = tarn__declare_dense(declare, name, out, in, 1, gain);
  declare->role = TARN__ROLE_LAYER;
  declare->prefix = own;
  declare->shared = set;
  return param;
}

tarn__linear_weights tarn__declare_matrix(tarn__declare *declare, const char *name, int64_t out, int64_t in, int blocks,
                                          double gain) {
  const tarn_kind *kind = declare->kind;
  tarn__linear_weights weights = {0};
  weights.weight = kind->init == TARN_INIT_HADAMARD && matrix_frozen(declare)
                       ? tarn__declare_signs(declare, name, out, in, blocks)
                       : tarn__declare_dense(declare, name, out, in, blocks, gain);
  return weights;
}

// A trained bias starts at zero, as in fairseq; a frozen one keeps PyTorch's default, uniform in 1 / sqrt(in).
tarn__param *tarn__declare_bias(tarn__declare *declare, const char *name, int64_t n, int64_t in) {
  char part[128];
  bool trained = !vector_frozen(declare);
  tarn__init init = {TARN__INIT_ZERO, 0.0, 1};
  if (!trained) init = (tarn__init){TARN__INIT_UNIFORM, 1.0 / sqrt((double)in), 1};
  snprintf(part, sizeof part, "%s.bias", name);
  return tarn__declare_param(declare, part, 1, n, trained, init);
}

tarn__linear_weights tarn__declare_linear(tarn__declare *declare, const char *name, int64_t out, int64_t in, int blocks,
                                          double gain) {
  tarn__linear_weights weights = tarn__declare_matrix(declare, name, out, in, blocks, gain);
  weights.bias = tarn__declare_bias(declare, name, out, in);
  return weights;
}

static tarn__param *norm_vector(tarn__declare *declare, const char *name, const char *word, bool trained,
                                tarn__init_kind kind) {
  char part[128];
  snprintf(part, sizeof part, "%s.%s", name, word);
  return tarn__declare_param(declare, part, 1, declare->d_model, trained, (tarn__init){kind, 0.0, 1});
}

tarn__param *tarn__declare_norm_gain(tarn__declare *declare, const char *name, bool trained) {
  return norm_vector(declare, name, "gain", trained, TARN__INIT_ONE);
}

tarn__param *tarn__declare_norm_bias(tarn__declare *declare, const char *name, bool trained) {
  return norm_vector(declare, name, "bias", trained, TARN__INIT_ZERO);
}

tarn__param *tarn__declare_number(tarn__declare *declare, const char *name, double first) {
  return tarn__declare_param(declare, name, 1, 1, !vector_frozen(declare), (tarn__init){TARN__INIT_CONSTANT, first, 1});
}

tarn__activated tarn__declare_activation(tarn__declare *declare, const char *name, const tarn_part_use *use) {
  const tarn__activation_entry *entry = tarn__activation_of(use);
  return (tarn__activated){use, entry->declare ? entry->declare(declare, name, use->keys) : NULL};
}

tarn__tensor *tarn__activated_project(tarn__graph *graph, tarn__tensor *x, const tarn__linear_weights *weights,
                                      const tarn__activated *activated) {
  const tarn__activation_entry *entry = tarn__activation_of(activated->use);
  if (!entry->apply) return entry->build(graph, x, weights);
  tarn__tensor *z = tarn__project(graph, x, weights, TARN__IDENTITY);
  return entry->apply(graph, z, NULL, activated->use->keys, activated->number);
}

// A number with the prefix of a norm: "self_attn.gate" for "self_attn.norm".
static tarn__param *number_beside(tarn__declare *declare, const char *norm, const char *word, double first) {
  char part[128];
  const char *dot = strrchr(norm, '.');
  snprintf(part, sizeof part, "%.*s%s%s", dot ? (int)(dot - norm) : 0, norm, dot ? "." : "", word);
  return tarn__declare_number(declare, part, first);
}

// Whether the output of the sublayer of a norm is a trained projection: "ffn.out" for "ffn.norm".
static bool has_output(const tarn__param *last, const char *norm) {
  char name[128];
  const int length = snprintf(name, sizeof name, ".%.*s.out.weight", (int)(strrchr(norm, '.') - norm), norm);
  const size_t all = last ? strlen(last->name) : 0;
  return last && last->trained && all > (size_t)length && strcmp(last->name + all - (size_t)length, name) == 0;
}

// Declares the parameters on the branch of a sublayer whose last projection is `last`. With norm fixup a branch begins
// as 0: by its last projection or, if that is frozen or missing, by its factor, if trained. A norm inside a sublayer
// has another name and does not concern the branch.
static void declare_branch(tarn__declare *declare, const char *norm, tarn__param *last, tarn__norm_weights *weights) {
  const tarn_kind *kind = declare->kind;
  const char *dot = strrchr(norm, '.');
  if (!dot || strcmp(dot, ".norm") != 0) return;
  if (kind->gate == TARN_GATE_SCALAR) weights->gate = number_beside(declare, norm, "gate", kind->gate_init);
  if (kind->norm != TARN_NORM_FIXUP) return;
  const bool shut = has_output(last, norm);
  if (shut) {
    last->init = (tarn__init){TARN__INIT_ZERO, 0.0, 1};
    last->last_gain = 0.0;
  }
  weights->gate = number_beside(declare, norm, "gate", shut || vector_frozen(declare) ? 1.0 : 0.0);
  weights->shift = number_beside(declare, norm, "shift", 0.0);
}

static void declare_entry(tarn__declare *declare, const char *name, tarn__norm_weights *weights) {
  const tarn_kind *kind = declare->kind;
  weights->use = kind ? kind->norm_type : declare->norm;
  tarn__norm_of(&weights->use)->declare(declare, name, !kind || kind->frozen != TARN_FROZEN_YES, weights);
}

tarn__norm_weights tarn__declare_norm(tarn__declare *declare, const char *name) {
  const tarn_kind *kind = declare->kind;
  tarn__norm_weights weights = {0};
  if (kind) declare_branch(declare, name, declare->last, &weights);
  declare->last = NULL;
  if (!kind || tarn__order_has_norm(kind->norm)) declare_entry(declare, name, &weights);
  return weights;
}

tarn__norm_weights tarn__declare_inner_norm(tarn__declare *declare, const char *name, int64_t width) {
  const int64_t d_model = declare->d_model;
  tarn__norm_weights weights = {0};
  declare->d_model = width;  // of what entries declare
  declare_entry(declare, name, &weights);
  declare->d_model = d_model;
  return weights;
}

tarn__tensor *tarn__project(tarn__graph *graph, tarn__tensor *x, const tarn__linear_weights *weights,
                            tarn__activation activation) {
  if (weights->weight->init.kind == TARN__INIT_SIGNS)
    return tarn__hadamard(graph, x, weights->weight, weights->bias, activation);
  return tarn__linear(graph, x, weights->weight, weights->bias, activation);
}
