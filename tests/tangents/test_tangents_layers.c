// Encoder layers of every mixer, and of every other part with attention, as one map of the residual stream, and decoder
// layers of every mixer that has a causal form, as a map of that and of the encoder's output: J v in double against
// central differences and against the gradients. A part without rules fails by its name.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "base/memory.h"
#include "model/model.h"
#include "parts/table/part_table.h"
#include "tangents/tangent_check.h"

enum { ROWS = 11, MEMORY = 8, SENTENCES = 3, D = 8 };

typedef struct layers {
  tarn_config *config;
  tarn__model *model;
  bool decoder;
  char name[128];
} layers;

// What a layer of parts reads as: words of the tables, and the keys that some need.
typedef struct words {
  const char *mixer, *channel, *norm, *position, *activation, *order, *keys;
} words;

static void open_layers(layers *l, const words *w, bool decoder) {
  char text[640];
  *l = (layers){.decoder = decoder};
  snprintf(l->name, sizeof l->name, "%s, %s, %s, %s, %s, %s%s", w->mixer, w->channel, w->norm, w->position,
           w->activation, w->order, decoder ? ", decoder" : "");
  snprintf(text, sizeof text,
           "model: { d_model: %d, embeddings: none, max_length: 24, dropout: 0.1, norm: %s, norm_type: %s,\n"
           "         positions: %s, activation: %s }\n"
           "encoder: { layers: \"%s\" }\ndecoder: { layers: \"%s\" }\n"
           "kinds:\n  L: { mixer: attention, heads: 2, ffn: 12 }\n  B: { mixer: %s, ffn: %s, norm: %s%s }\n",
           D, w->order, w->norm, w->position, w->activation, decoder ? "L" : "B1 B1", decoder ? "B1 B1" : "L", w->mixer,
           w->channel, w->order, w->keys);
  check_ok(tarn_config_parse(&l->config, l->name, text, strlen(text), NULL, 0));
  check_ok(tarn__model_open(&l->model, l->config, 13, 13, TARN__F64, true));
  check_ok(tarn__model_allocate(l->model));
  check_ok(tarn__model_initialise(l->model, 5));
}

static void close_layers(layers *l) {
  tarn__model_close(&l->model);
  tarn_config_close(&l->config);
}

// Both layers of the side, from residual stream to residual stream.
static void build(check *c, tarn__graph *graph, const void *spec) {
  const layers *l = spec;
  static const int32_t offsets[SENTENCES + 1] = {0, 5, 6, ROWS}, positions[ROWS] = {0, 1, 2, 3, 4, 0, 0, 1, 2, 3, 4};
  static const int32_t source[SENTENCES + 1] = {0, 2, 5, MEMORY};
  const tarn__model_stack *stack = l->decoder ? &l->model->decoder : &l->model->encoder;
  for (size_t p = 0; p < l->model->param_count; p++) l->model->params[p]->training.grad_written = false;
  tarn__block_run run = {.graph = graph,
                         .d_model = D,
                         .offsets = check_ints(c, graph, offsets, SENTENCES + 1),
                         .positions = check_ints(c, graph, positions, ROWS),
                         .longest = 5,
                         .position = &l->config->model.positions,
                         .skip = stack->skip,
                         .share = 1.0,
                         .causal = l->decoder};
  tarn__stream stream = {.x = check_input(c, graph, ROWS, D, 1.0, true)};
  if (l->decoder) {
    const bool attends = tarn__mixer_of(stack->layers[0].weights->kind)->attends;
    run.memory = check_input(c, graph, MEMORY, D, 1.0, attends);
    run.memory_offsets = check_ints(c, graph, source, SENTENCES + 1);
    run.memory_longest = 3;
  }
  const tarn__position_entry *position = tarn__position_of(run.position);
  if (stack->biases) run.biases = position->biases(graph, run.position->keys, stack->biases, run.causal);
  for (int i = 0; i < stack->count; i++) tarn__layer_build(&run, stack->layers[i].weights, &stream);
  check_output(c, tarn__stream_finish(graph, &stream, &stack->norm));
}

static void try_side(const words *w, bool decoder) {
  layers l;
  open_layers(&l, w, decoder);
  check_tangents(build, &l, l.name);
  close_layers(&l);
}

static void try(const words *w) { try_side(w, false); }

// Both orders of norms. ReLU has a kink, which differences may meet: another activation stands where it need not.
static const words plain = {"attention", "12", "layer", "none", "gelu", "post", ", heads: 2"};

static void mixers(void **state) {
  (void)state;
  static const struct {
    const char *word, *keys;
  } own[] = {{"attention", ", heads: 2, attention_dropout: 0.2"},
             {"light_conv", ", heads: 2, kernel: 3"},
             {"dynamic_conv", ", heads: 2, kernel: 5"},
             {"performer", ", heads: 2, features: 6"},
             {"linformer", ", heads: 2, rows: 3"},
             {"esn", ", hidden: 10, nonlinearity: tanh"}};
  const tarn__part *part;
  for (int i = 0; (part = tarn__part_at(TARN__TABLE_MIXER, i)) != NULL; i++) {
    words w = plain;
    w.mixer = part->word;
    w.keys = "";
    for (size_t k = 0; k < sizeof own / sizeof *own; k++)
      if (strcmp(own[k].word, part->word) == 0) w.keys = own[k].keys;
    const bool causal = ((const tarn__mixer_entry *)part)->causal;
    try(&w);
    if (causal) try_side(&w, true);
    w.order = "pre";
    try(&w);
    if (causal) try_side(&w, true);
  }
}

static void parts(void **state) {
  (void)state;
  const tarn__part *part;
  for (int i = 1; (part = tarn__part_at(TARN__TABLE_CHANNEL, i)) != NULL; i++) {
    words w = plain;
    w.channel = strcmp(part->word, "moe") == 0 || strcmp(part->word, "switch") == 0
                    ? strcmp(part->word, "moe") == 0
                          ? "{ type: moe, experts: 3, width: 12, balance: 0, capacity: 3 }"
                          : "{ type: switch, experts: 3, width: 12, balance: 0, capacity: 3 }"
                : strcmp(part->word, "product_keys") == 0
                    ? "{ type: product_keys, memory_heads: 2, keys: 4, nearest: 3, query: 5 }"
                    : part->word;
    try(&w);
  }
  for (int i = 1; (part = tarn__part_at(TARN__TABLE_NORM, i)) != NULL; i++) {
    words w = plain;
    w.norm = part->word;
    try(&w);
  }
  for (int i = 0; (part = tarn__part_at(TARN__TABLE_POSITION, i)) != NULL; i++) {
    words w = plain;
    w.position = part->word;
    try(&w);
  }
  for (int i = 0; (part = tarn__part_at(TARN__TABLE_ACTIVATION, i)) != NULL; i++) {
    words w = plain;
    w.activation = part->word;
    w.keys = ", heads: 2, kv_heads: 1";
    try(&w);
  }
}

static void orders(void **state) {
  (void)state;
  static const char *const all[] = {"none", "b2t", "deepnorm", "fixup"};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    words w = plain;
    w.order = all[i];
    try(&w);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(mixers), cmocka_unit_test(parts), cmocka_unit_test(orders)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
