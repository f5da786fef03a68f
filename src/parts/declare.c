#include <math.h>
#include <stdio.h>

#include "ops/hadamard.h"
#include "parts/block.h"

void *tarn__declare_struct(tarn__declare *declare, size_t size) {
  void *memory = NULL;
  if (declare->status == TARN_STATUS_OK) declare->status = tarn__arena_alloc(declare->arena, &memory, 1, size);
  return declare->status == TARN_STATUS_OK ? memory : NULL;
}

tarn__param *tarn__declare_param(tarn__declare *declare, const char *name, int64_t rows, int64_t cols, bool trained,
                                 tarn__init init) {
  if (declare->status != TARN_STATUS_OK) return NULL;
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
  if (declare->status != TARN_STATUS_OK) return NULL;
  tarn__param *param = memory;
  // A weight is a matrix, if only of one row.
  const size_t length = strlen(name);
  const bool weight = length >= 6 && strcmp(name + length - 6, "weight") == 0;
  *param = (tarn__param){.name = copy,
                         .rows = rows,
                         .cols = cols,
                         .vector = rows == 1 && !weight,
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

// The first values of a projection's matrix.
static tarn__init init_of(const tarn_kind *kind, int64_t out, int64_t in, int blocks, double gain) {
  switch (kind->init) {
    case TARN_INIT_ORTHOGONAL:
      return (tarn__init){TARN__INIT_ORTHOGONAL, kind->init_gain, blocks};
    case TARN_INIT_HADAMARD:
      return (tarn__init){TARN__INIT_HADAMARD, kind->init_gain, blocks};
    case TARN_INIT_NORMAL:
      return (tarn__init){TARN__INIT_NORMAL, kind->init_gain * gain * sqrt(2.0 / (double)(out / blocks + in)), 1};
    case TARN_INIT_XAVIER:
    case TARN_INIT_COUNT:
      break;
  }
  return (tarn__init){TARN__INIT_XAVIER, kind->init_gain * gain, blocks};
}

// Whether a matrix that is declared now is frozen, and whether a bias or norm is.
static bool matrix_frozen(const tarn__declare *declare) {
  return declare->kind->frozen != TARN_FROZEN_NO || declare->frozen_part;
}

static bool vector_frozen(const tarn__declare *declare) {
  return declare->kind->frozen == TARN_FROZEN_YES || declare->frozen_part;
}

tarn__param *tarn__declare_dense(tarn__declare *declare, const char *name, int64_t out, int64_t in, int blocks,
                                 double gain) {
  char part[128];
  const tarn_kind *kind = declare->kind;
  snprintf(part, sizeof part, "%s.weight", name);
  return tarn__declare_param(declare, part, out, in, !matrix_frozen(declare), init_of(kind, out, in, blocks, gain));
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

tarn__norm_weights tarn__declare_norm(tarn__declare *declare, const char *name) {
  const tarn_kind *kind = declare->kind;
  tarn__norm_weights weights = {0};
  if (kind && kind->norm == TARN_NORM_NONE) return weights;
  weights.use = kind ? kind->norm_type : declare->norm;
  tarn__norm_of(&weights.use)->declare(declare, name, !kind || kind->frozen != TARN_FROZEN_YES, &weights);
  return weights;
}

tarn__tensor *tarn__project(tarn__graph *graph, tarn__tensor *x, const tarn__linear_weights *weights,
                            tarn__activation activation) {
  if (weights->weight->init.kind == TARN__INIT_SIGNS)
    return tarn__hadamard(graph, x, weights->weight, weights->bias, activation);
  return tarn__linear(graph, x, weights->weight, weights->bias, activation);
}
