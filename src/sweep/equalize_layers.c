// Equal sizes by layers: the group that the pattern of each stack repeats is repeated more or less often. The stack
// with the most repetitions has the number that is searched; those of the other follow in proportion.
#include <math.h>
#include <string.h>

#include "config/pattern.h"
#include "sweep/spec.h"

// A stack as repetitions of a group of layers.
typedef struct repeated {
  const char *key;  // "encoder.layers"
  int64_t repetitions;
  int32_t group;                  // layers
  char text[TARN__PATTERN_TEXT];  // of the group
} repeated;

typedef struct stacks {
  repeated stack[2];
  size_t count;
  int64_t most;  // repetitions
} stacks;

static bool same_layer(const tarn_layer *a, const tarn_layer *b) {
  if (a->kind != b->kind || tarn__pattern_is_bare(a->set) != tarn__pattern_is_bare(b->set)) return false;
  return tarn__pattern_is_bare(a->set) || strcmp(a->set, b->set) == 0;
}

// The shortest group that the stack is made of.
static int32_t group_of(const tarn_stack *stack) {
  for (int32_t group = 1; group < stack->count; group++) {
    int32_t i = group;
    while (stack->count % group == 0 && i < stack->count && same_layer(&stack->layers[i], &stack->layers[i - group]))
      i++;
    if (i == stack->count) return group;
  }
  return stack->count;
}

static tarn_status add_stack(stacks *s, const tarn_config *config, const tarn_stack *stack, const char *key) {
  if (stack->count == 0) return TARN_STATUS_OK;
  repeated *r = &s->stack[s->count++];
  r->key = key;
  r->group = group_of(stack);
  r->repetitions = stack->count / r->group;
  if (r->repetitions > s->most) s->most = r->repetitions;
  return tarn__pattern_write(r->text, stack->layers, r->group, config->kinds);
}

static int64_t repetitions_at(const stacks *s, const repeated *r, int64_t number) {
  const int64_t n = llround((double)number * (double)r->repetitions / (double)s->most);
  return n < 1 ? 1 : n;
}

static tarn_status changes(tarn_sweep *sweep, const tarn__sweep_whole *whole, int64_t number,
                           const char *texts[TARN__SWEEP_CHANGES], size_t *count) {
  const stacks *s = whole->user;
  for (size_t i = 0; i < s->count; i++) {
    const repeated *r = &s->stack[i];
    const int64_t n = repetitions_at(s, r, number);
    if (n == r->repetitions) continue;
    const char **text = &texts[(*count)++];
    if (n == 1)
      TARN_TRY(tarn__sweep_text(sweep, text, "%s=%s", r->key, r->text));
    else if (r->group == 1)
      TARN_TRY(tarn__sweep_text(sweep, text, "%s=%s*%lld", r->key, r->text, (long long)n));
    else
      TARN_TRY(tarn__sweep_text(sweep, text, "%s=(%s)*%lld", r->key, r->text, (long long)n));
  }
  return TARN_STATUS_OK;
}

// The numbers at which no stack has too many layers.
static size_t list_numbers(const stacks *s, int64_t numbers[TARN_CONFIG_LAYERS], size_t *now) {
  size_t count = 0;
  for (int64_t n = 1; n <= TARN_CONFIG_LAYERS; n++) {
    for (size_t i = 0; i < s->count; i++)
      if (repetitions_at(s, &s->stack[i], n) * s->stack[i].group > TARN_CONFIG_LAYERS) return count;
    if (n == s->most) *now = count;
    numbers[count++] = n;
  }
  return count;
}

// Keys that name layers by their number.
static tarn_status check(tarn_sweep *sweep, size_t variant, const tarn_stack *stack, const char *side) {
  const char *key = stack->keep_count > 0 ? "layers_to_keep" : stack->pool_count > 0 ? "pool_after" : NULL;
  if (!key) return TARN_STATUS_OK;
  return tarn__fail(TARN_STATUS_USAGE,
                    "%s: variant %s: equalize cannot change its layers, which %s.%s names by their numbers; let it "
                    "change ffn",
                    sweep->name, sweep->memory->variants[variant].name, side, key);
}

tarn_status tarn__sweep_trade_layers(tarn_sweep *sweep, const tarn__sweep_goal *goal) {
  const tarn_config *config = goal->config;
  void *memory;
  TARN_TRY(check(sweep, goal->variant, &config->encoder, "encoder"));
  TARN_TRY(check(sweep, goal->variant, &config->decoder, "decoder"));
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(stacks)));
  stacks *s = memory;
  *s = (stacks){.count = 0};
  int64_t numbers[TARN_CONFIG_LAYERS];
  tarn_status status = add_stack(s, config, &config->encoder, "encoder.layers");
  if (status == TARN_STATUS_OK) status = add_stack(s, config, &config->decoder, "decoder.layers");
  if (status == TARN_STATUS_OK) {
    tarn__sweep_whole whole = {
        .what = "number of repetitions of the layers", .numbers = numbers, .changes = changes, .user = s};
    whole.count = list_numbers(s, numbers, &whole.now);
    status = tarn__sweep_trade_whole(sweep, goal, &whole);
  }
  tarn__free(s);
  return status;
}
