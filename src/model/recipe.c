#include "model/recipe.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char tarn__generator[] = "philox4x32-10";

static const char *init_name(tarn__init_kind kind) {
  switch (kind) {
    case TARN__INIT_ZERO:
      return "zero";
    case TARN__INIT_ONE:
      return "one";
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
  }
  return "unknown";
}

void tarn__recipe_write(char text[TARN__RECIPE_TEXT], const tarn__param *param, uint64_t seed) {
  snprintf(text, TARN__RECIPE_TEXT,
           "generator=%s seed=%" PRIu64 " init=%s gain=%.17g blocks=%d shape=%" PRId64 "x%" PRId64 " hash=%s",
           tarn__generator, seed, init_name(param->init.kind), param->init.gain, param->init.blocks, param->rows,
           param->cols, param->hash);
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
  TARN_REQUIRE(hash && strcmp(hash + strlen(HASH_WORD), param->hash) == 0, DATA,
               "%s: the frozen parameter %s cannot be made again: its values hash to %s, the file says \"%.160s\"",
               file, param->name, param->hash, text);
  return TARN_STATUS_OK;
}
