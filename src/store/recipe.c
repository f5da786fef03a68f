#include "store/recipe.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

const char tarn__generator[] = "philox4x32-10";

static const char *init_name(tarn__init_kind kind) {
  switch (kind) {
    case TARN__INIT_ZERO:
      return "zero";
    case TARN__INIT_ONE:
      return "one";
    case TARN__INIT_CONSTANT:
      return "constant";
    case TARN__INIT_XAVIER:
      return "xavier";
    case TARN__INIT_ORTHOGONAL:
      return "orthogonal";
    case TARN__INIT_HADAMARD:
      return "hadamard";
    case TARN__INIT_SIGNS:
      return "signs";
    case TARN__INIT_NORMAL:
      return "normal";
    case TARN__INIT_UNIFORM:
      return "uniform";
    case TARN__INIT_RANGE:
      return "range";
    case TARN__INIT_FEATURES:
      return "features";
    case TARN__INIT_RESERVOIR:
      return "reservoir";
  }
  return "unknown";
}

static const char *topology_name(tarn__topology topology) {
  switch (topology) {
    case TARN__TOPOLOGY_RANDOM:
      return "random";
    case TARN__TOPOLOGY_SMALL_WORLD:
      return "small_world";
    case TARN__TOPOLOGY_SCALE_FREE:
      return "scale_free";
    case TARN__TOPOLOGY_RING:
      return "ring";
  }
  return "unknown";
}

static const char FACTOR_WORD[] = " factor=";
enum { RESERVOIR_TEXT = 128 };

static void reservoir_text(char text[RESERVOIR_TEXT], const tarn__param *param) {
  *text = '\0';
  if (!param->reservoir) return;
  snprintf(text, RESERVOIR_TEXT, " topology=%s sparsity=%.17g%s%.17g", topology_name(param->reservoir->topology),
           param->reservoir->sparsity, FACTOR_WORD, param->factor);
}

tarn_status tarn__recipe_take_factor(const char *text, const char *file, tarn__param *param) {
  if (!param->reservoir) return TARN_STATUS_OK;
  const char *at = strstr(text, FACTOR_WORD);
  char *end = NULL;
  const double factor = at ? strtod(at + strlen(FACTOR_WORD), &end) : -1.0;
  const bool fits = param->init.gain == 0 ? factor == 0 : isfinite(factor) && factor > 0;
  TARN_REQUIRE(fits && *end == ' ', DATA,
               "%s: the frozen parameter %s is described as \"%.200s\", which has no factor of a reservoir", file,
               param->name, text);
  param->factor = factor;
  return TARN_STATUS_OK;
}

void tarn__recipe_write(char text[TARN__RECIPE_TEXT], const tarn__param *param, uint64_t seed) {
  char reservoir[RESERVOIR_TEXT], last[48] = "", least[48] = "", zeros[48] = "";
  reservoir_text(reservoir, param);
  if (param->init.kind == TARN__INIT_RANGE) snprintf(least, sizeof least, " least=%.17g", param->least);
  if (param->sparsity > 0.0) snprintf(zeros, sizeof zeros, " sparsity=%.17g", param->sparsity);
  if (param->last_gain != 0.0) snprintf(last, sizeof last, " last_gain=%.17g", param->last_gain);
  snprintf(text, TARN__RECIPE_TEXT,
           "generator=%s seed=%" PRIu64 " init=%s gain=%.17g blocks=%d%s%s%s%s shape=%" PRId64 "x%" PRId64 " hash=%s",
           tarn__generator, seed, init_name(param->init.kind), param->init.gain, param->init.blocks, last, least, zeros,
           reservoir, param->rows, param->cols, param->hash);
}

static const char HASH_WORD[] = " hash=";

tarn_status tarn__recipe_check(const char *text, const char *file, const tarn__param *param, uint64_t seed) {
  char own[TARN__RECIPE_TEXT];
  tarn__recipe_write(own, param, seed);
  size_t length = (size_t)(strstr(own, HASH_WORD) - own) + strlen(HASH_WORD);
  own[length] = '\0';
  TARN_REQUIRE(strncmp(text, own, length) == 0, DATA,
               "%s: the frozen parameter %s is described as \"%.160s\", which is not what this model has (\"%s...\")",
               file, param->name, text, own);
  return TARN_STATUS_OK;
}

tarn_status tarn__recipe_verify(const char *text, const char *file, const tarn__param *param) {
  const char *hash = strstr(text, HASH_WORD);
  TARN_REQUIRE(hash && *param->hash && tarn__hash_same(hash + strlen(HASH_WORD), param->hash), DATA,
               "%s: the frozen parameter %s cannot be made again: its values hash to %s, the file says \"%.160s\"",
               file, param->name, param->hash, text);
  return TARN_STATUS_OK;
}
