// Equal sizes by heads: the kind with the most has the number that is searched; those of other kinds follow in
// proportion. Most parts divide model.d_model among their heads, so that sizes hardly depend on their number; where
// some kinds have a head_width, only these are changed.
#include <math.h>

#include "config/config_part.h"
#include "sweep/spec.h"

enum { MOST = 1024 };

typedef struct kinds {
  const tarn_config *config;
  int64_t heads[TARN_CONFIG_KINDS];  // 0: the kind is not used, has none, or is left as it is
  int64_t most;
} kinds;

static double number_of(const kinds *k, int32_t kind, const char *key) {
  double value = 0.0;
  tarn__kind_number(&k->config->kinds[kind], key, &value);
  return value;
}

static void note_uses(kinds *k, const tarn_stack *stack) {
  for (int32_t i = 0; i < stack->count; i++)
    k->heads[stack->layers[i].kind] = (int64_t)number_of(k, stack->layers[i].kind, "heads");
}

// Leaves out the kinds that divide model.d_model among their heads, if there are others.
static void choose(kinds *k) {
  bool any = false;
  for (int32_t i = 0; i < k->config->kind_count; i++) any |= k->heads[i] > 0 && number_of(k, i, "head_width") > 0;
  for (int32_t i = 0; i < k->config->kind_count; i++) {
    if (any && number_of(k, i, "head_width") <= 0) k->heads[i] = 0;
    if (k->heads[i] > k->most) k->most = k->heads[i];
  }
}

static int64_t heads_at(const kinds *k, int32_t kind, int64_t number) {
  const int64_t n = llround((double)number * (double)k->heads[kind] / (double)k->most);
  return n < 1 ? 1 : n;
}

static tarn_status changes(tarn_sweep *sweep, const tarn__sweep_whole *whole, int64_t number,
                           const char *texts[TARN__SWEEP_CHANGES], size_t *count) {
  const kinds *k = whole->user;
  for (int32_t i = 0; i < k->config->kind_count; i++) {
    const int64_t n = k->heads[i] > 0 ? heads_at(k, i, number) : 0;
    if (n == k->heads[i]) continue;
    TARN_TRY(
        tarn__sweep_text(sweep, &texts[(*count)++], "kinds.%s.heads=%lld", k->config->kinds[i].name, (long long)n));
  }
  return TARN_STATUS_OK;
}

// Whether every kind without a width of its heads could divide model.d_model; the configuration has the last word.
static bool fits(const kinds *k, int64_t number) {
  for (int32_t i = 0; i < k->config->kind_count; i++)
    if (k->heads[i] > 0 && number_of(k, i, "head_width") <= 0 && k->config->model.d_model % heads_at(k, i, number) != 0)
      return false;
  return true;
}

tarn_status tarn__sweep_trade_heads(tarn_sweep *sweep, const tarn__sweep_goal *goal) {
  tarn_sweep_variant *variant = &sweep->memory->variants[goal->variant];
  kinds k = {.config = goal->config};
  int64_t numbers[MOST];
  tarn__sweep_whole whole = {.what = "number of heads", .numbers = numbers, .changes = changes, .user = &k};
  note_uses(&k, &goal->config->encoder);
  note_uses(&k, &goal->config->decoder);
  choose(&k);
  if (k.most == 0) {
    variant->bound = "none of its layers has heads";
    return TARN_STATUS_OK;
  }
  for (int64_t n = 1; n <= MOST; n++) {
    if (n != k.most && !fits(&k, n)) continue;
    if (n == k.most) whole.now = whole.count;
    numbers[whole.count++] = n;
  }
  return tarn__sweep_trade_whole(sweep, goal, &whole);
}
