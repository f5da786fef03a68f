// Recomputation: gradients have the bits that they have without, less memory is needed, and only what the backward pass
// reads is computed again.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "base/memory.h"
#include "device/devices.h"
#include "model/model.h"

enum { VOCAB = 19, SENTENCES = 5, ROWS = 40, THREADS = 2 };

// Sentences of different lengths, one of them a single token.
static const int32_t source_offsets[SENTENCES + 1] = {0, 9, 10, 21, 29, ROWS};
static const int32_t target_offsets[SENTENCES + 1] = {0, 7, 15, 16, 28, ROWS};

// Stacks whose layers are trained (L), frozen (R), shared (L1, R1), pre- or post-norm, with and without a mixer, and
// convolutions (C, Y; frozen: Z), and experts with little room (E).
typedef struct stacks {
  const char *encoder, *decoder, *norm;
  const char *more;  // of the model; NULL: nothing
} stacks;

static const stacks all[] = {
    {"L*3", "L*2", "post", NULL},
    {"L*3", "L*2", "pre", NULL},
    {"(R L)*2", "R L R", "post", NULL},
    {"(R L)*2", "R L R", "pre", NULL},
    {"L1*3", "L1 R1*2", "post", NULL},
    {"R1 L1 R1 L1", "L1*2", "pre", NULL},
    {"L P N L F R", "N L P", "post", NULL},
    {"N P L F", "P N F L", "pre", NULL},
    {"(H L)*2", "H L H", "post", NULL},
    {"(H L)*2", "H L H", "pre", NULL},
    {"R R L", "L", "post", NULL},
    {"L", "L", "pre", NULL},
    {"Z C Y L", "Y C Z", "post", NULL},
    {"C1 Y C1 Z", "C L Y", "pre", NULL},
    {"L R H L", "L H R", "pre", ", activation: gelu_tanh, positions: learned, output_rank: 8"},
    {"R L N", "L F N", "post", ", activation: gelu, positions: learned, frozen_embeddings: encoder"},
    {"E*2", "E L", "pre", NULL},
};

typedef struct fixture {
  tarn_config *config;
  tarn__model *model;
  tarn__graph graph;
  tarn__tensor *loss;
  void *workspace;
  int32_t ids[2][ROWS], positions[2][ROWS], targets[ROWS];
  double scale;
} fixture;

static void must(tarn_status status) {
  if (status != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

static void open_model(fixture *f, const stacks *at, tarn__dtype dtype, tarn_recompute recompute) {
  char text[2048];
  static const char *const words[] = {"none", "cheap", "block"};
  *f = (fixture){.scale = 0.1};
  // P: pre-norm, N: no mixer (pre-norm unless told), F: the same, frozen; in one model with post-norm layers.
  snprintf(text, sizeof text,
           "model: { d_model: 16, embeddings: none, max_length: 24, dropout: 0.2, norm: %s%s }\n"
           "encoder: { layers: \"%s\" }\ndecoder: { layers: \"%s\" }\n"
           "kinds:\n  L: { mixer: attention, heads: 2, ffn: 24 }\n"
           "  R: { mixer: attention, heads: 4, ffn: 24, frozen: yes }\n"
           "  P: { mixer: attention, heads: 2, attention_dropout: 0.2, ffn: 24, norm: pre }\n  N: { mixer: none, ffn: "
           "40, norm: %s }\n"
           "  F: { mixer: none, ffn: 40, frozen: yes }\n"
           "  H: { mixer: attention, heads: 2, ffn: 32, frozen: yes, init: hadamard }\n"
           "  C: { mixer: light_conv, heads: 2, kernel: 5, kernel_dropout: 0.2, ffn: 24 }\n"
           "  Y: { mixer: dynamic_conv, heads: 2, kernel: 3, kernel_dropout: 0.2, ffn: 24 }\n"
           "  Z: { mixer: dynamic_conv, heads: 2, kernel: 3, ffn: 24, frozen: yes }\n"
           "  E: { mixer: attention, heads: 2, ffn: { type: switch, width: 24, experts: 4, capacity: 1, activation: "
           "swish_beta } }\n"
           "train: { recompute: %s }\n",
           at->norm, at->more ? at->more : "", at->encoder, at->decoder, at->norm, words[recompute]);
  must(tarn_config_parse(&f->config, "recompute", text, strlen(text), NULL, 0));
  must(tarn__model_open(&f->model, f->config, VOCAB, VOCAB, dtype, true));
  must(tarn__model_allocate(f->model));
  must(tarn__model_initialise(f->model, 5));
}

static void close_model(fixture *f) {
  tarn__graph_close(&f->graph);
  tarn__free(f->workspace);
  tarn__model_close(&f->model);
  tarn_config_close(&f->config);
}

// Builds and plans the graph of the batch.
static void plan(fixture *f, const tarn__device *device) {
  for (int r = 0; r < ROWS; r++) {
    f->ids[0][r] = 3 + r * 7 % (VOCAB - 3);
    f->ids[1][r] = 3 + r * 5 % (VOCAB - 3);
    f->targets[r] = 3 + r * 11 % (VOCAB - 3);
  }
  tarn__packed_positions(f->positions[0], source_offsets, SENTENCES);
  tarn__packed_positions(f->positions[1], target_offsets, SENTENCES);
  tarn__packed source = {SENTENCES, ROWS, 24, f->ids[0], f->positions[0], source_offsets, NULL, NULL};
  tarn__packed target = {SENTENCES, ROWS, 24, f->ids[1], f->positions[1], target_offsets, NULL, NULL};
  tarn__graph_begin(&f->graph, device, f->model->dtype, true, THREADS);
  const tarn__batch batch = {.source = source, .target = target, .predictions = ROWS, .targets = f->targets};
  f->loss = tarn__model_build_loss(f->model, &f->graph, &batch, NULL, 0.1, f->scale, NULL);
  tarn__model_differentiate(f->model, &f->graph, f->loss);
  must(tarn__graph_plan(&f->graph));
}

// Two micro-steps whose gradients are summed. What is not written holds NaNs.
static void run(fixture *f, const tarn__device *device) {
  plan(f, device);
  void *memory;
  must(tarn__alloc(&memory, TARN__MEMORY_OTHER, f->graph.workspace_bytes, 1));
  f->workspace = memory;
  tarn__graph_bind(&f->graph, f->workspace);
  for (uint32_t step = 0; step < 2; step++) {
    memset(f->workspace, 0xFF, f->graph.workspace_bytes);
    tarn__exec exec = {.threads = THREADS, .seed = 9, .step = step};
    must(tarn__graph_run(&f->graph, &exec));
  }
}

static void same_bits(const stacks *at, const tarn__device *device, tarn__dtype dtype, tarn_recompute recompute) {
  fixture kept, again;
  open_model(&kept, at, dtype, TARN_RECOMPUTE_NONE);
  open_model(&again, at, dtype, recompute);
  run(&kept, device);
  run(&again, device);
  assert_true(again.graph.node_count > kept.graph.node_count);
  assert_true(again.graph.activation_bytes <= kept.graph.activation_bytes);
  assert_memory_equal(kept.loss->data, again.loss->data, 2 * sizeof(double));
  assert_int_equal(kept.model->param_count, again.model->param_count);
  for (size_t p = 0; p < kept.model->param_count; p++) {
    const tarn__param *a = kept.model->params[p], *b = again.model->params[p];
    assert_int_equal(a->training.grad_written, b->training.grad_written);
    if (!a->trained) continue;
    assert_true(a->training.grad_written);
    size_t size = dtype == TARN__F64 ? sizeof(double) : sizeof(float);
    if (memcmp(a->training.grad, b->training.grad, (size_t)(a->rows * a->cols) * size) != 0)
      fail_msg("%s | %s, %s-norm: the gradient of %s has other bits", at->encoder, at->decoder, at->norm, a->name);
  }
  close_model(&kept);
  close_model(&again);
}

static void test_bits(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    for (int recompute = TARN_RECOMPUTE_CHEAP; recompute < TARN_RECOMPUTE_COUNT; recompute++) {
      same_bits(&all[i], &tarn__device_reference, TARN__F64, (tarn_recompute)recompute);
      same_bits(&all[i], &tarn__device_cpu, TARN__F32, (tarn_recompute)recompute);
      same_bits(&all[i], &tarn__device_cpu, TARN__BF16, (tarn_recompute)recompute);
    }
}

// Nodes of one op and label, of those that run again or of the others.
static int count(const fixture *f, const char *label, const char *op, bool again) {
  int found = 0;
  for (size_t n = 0; n < f->graph.node_count; n++) {
    const tarn__node *node = f->graph.nodes[n];
    if (node->again) assert_true(n >= f->graph.forward_count);
    found += node->again == again && strcmp(node->label, label) == 0 && strcmp(node->op->name, op) == 0;
  }
  return found;
}

static double flops(const fixture *f, const char *label, bool again) {
  double sum = 0.0;
  for (size_t n = 0; n < f->graph.node_count; n++) {
    const tarn__node *node = f->graph.nodes[n];
    bool forward = node->again || n < f->graph.forward_count;
    if (forward && node->again == again && strcmp(node->label, label) == 0 && node->op->flops)
      sum += node->op->flops(node);
  }
  return sum;
}

static size_t bytes_across(const fixture *f, const char *label) {
  size_t bytes = 0;
  for (size_t n = 0; n < f->graph.forward_count; n++)
    for (int k = 0; k < TARN__MAX_OUTPUTS; k++) {
      const tarn__node *node = f->graph.nodes[n];
      if (strcmp(node->label, label) != 0 || !node->out[k]) continue;
      const tarn__tensor *memory = tarn__tensor_owner(node->out[k]);
      if (memory->first == (int)n && memory->last >= (int)f->graph.forward_count) bytes += memory->bytes;
    }
  return bytes;
}

// Bytes of a tensor in the workspace.
static size_t kept(size_t cols) { return (ROWS * cols * sizeof(float) + 63) & ~(size_t)63; }

// All products but the last of a layer run again, and its norms once: the last one from the sum, which is kept.
static void test_what_runs_again(void **state) {
  (void)state;
  for (int pre = 0; pre < 2; pre++) {
    const stacks at = {"L*4", "L*3", pre ? "pre" : "post", NULL};
    fixture f;
    open_model(&f, &at, TARN__F32, TARN_RECOMPUTE_BLOCK);
    plan(&f, &tarn__device_cpu);
    assert_int_equal(count(&f, "encoder 2 L", "linear", false), 4);
    assert_int_equal(count(&f, "encoder 2 L", "linear", true), 3);
    assert_int_equal(count(&f, "encoder 2 L", "attention", true), 1);
    assert_int_equal(count(&f, "encoder 2 L", "residual_norm", true), 1);
    assert_int_equal(count(&f, "encoder 2 L", "norm", true), 1);
    assert_int_equal(count(&f, "decoder 2 L", "linear", false), 7);
    assert_int_equal(count(&f, "decoder 2 L", "linear", true), 6);
    assert_int_equal(count(&f, "decoder 2 L", "attention", true), 2);
    assert_int_equal(count(&f, "embeddings", "embedding", true), 2);
    assert_int_equal(bytes_across(&f, "embeddings"), 0);
    assert_int_equal(count(&f, "output", "output_loss", true), 0);
    const double last = 2.0 * ROWS * 24 * 16;
    assert_true(flops(&f, "encoder 2 L", true) == flops(&f, "encoder 2 L", false) - last);
    assert_true(flops(&f, "decoder 2 L", true) == flops(&f, "decoder 2 L", false) - last);
    // One tensor and the norm's statistics.
    size_t most = kept(16) + kept(2);
    assert_in_range(bytes_across(&f, "encoder 2 L"), kept(16), most);
    assert_in_range(bytes_across(&f, "decoder 2 L"), kept(16), most);
    close_model(&f);
  }
}

// Cheap: no product runs again, and of a layer's 10 tensors of the model's width (q, k, v count 3, the FFN 2) 3 are not
// kept: the result of attention and both norms.
static void test_cheap(void **state) {
  (void)state;
  for (int pre = 0; pre < 2; pre++) {
    const stacks at = {"L*4", "L*3", pre ? "pre" : "post", NULL};
    fixture f;
    open_model(&f, &at, TARN__F32, TARN_RECOMPUTE_CHEAP);
    plan(&f, &tarn__device_cpu);
    assert_int_equal(count(&f, "encoder 2 L", "linear", true), 0);
    assert_int_equal(count(&f, "encoder 2 L", "attention", true), 1);
    assert_int_equal(count(&f, "encoder 2 L", "residual_norm", true), 0);
    assert_int_equal(count(&f, "embeddings", "embedding", true), 2);
    assert_int_equal(count(&f, "encoder 2 L", "norm", true), 2);
    assert_int_equal(count(&f, "decoder 2 L", "attention", true), 2);
    assert_int_equal(bytes_across(&f, "encoder 2 L"), 5 * kept(16) + kept(24) + 2 * kept(2));
    close_model(&f);
  }
}

// Frozen layers with nothing trained below have no backward pass, so nothing of them is computed again.
static void test_frozen_bottom(void **state) {
  (void)state;
  static const char *const ops[] = {"linear", "attention", "residual_norm", "norm"};
  for (int pre = 0; pre < 2; pre++) {
    const stacks at = {"R R L", "L", pre ? "pre" : "post", NULL};
    fixture f;
    open_model(&f, &at, TARN__F32, TARN_RECOMPUTE_BLOCK);
    f.model->weights.source_table->trained = false;
    plan(&f, &tarn__device_cpu);
    for (int k = 0; k < 4; k++) {
      assert_int_equal(count(&f, "encoder 1 R", ops[k], true), 0);
      assert_int_equal(count(&f, "encoder 2 R", ops[k], true), 0);
    }
    assert_int_equal(count(&f, "encoder 3 L", "linear", true), 3);
    assert_int_equal(bytes_across(&f, "encoder 1 R"), 0);
    assert_int_equal(count(&f, "embeddings", "embedding", true), 1);
    close_model(&f);
  }
}

// The deeper the model, the less one layer more costs: its border alone.
static void test_memory_of_depth(void **state) {
  (void)state;
  static const char *const depths[] = {"L*4", "L*8"};
  size_t bytes[2];
  for (int i = 0; i < 2; i++) {
    const stacks at = {depths[i], "L*2", "post", NULL};
    fixture f;
    open_model(&f, &at, TARN__BF16, TARN_RECOMPUTE_BLOCK);
    plan(&f, &tarn__device_cpu);
    bytes[i] = f.graph.activation_bytes;
    close_model(&f);
  }
  assert_in_range(bytes[1] - bytes[0], 1, 4 * 48 * (16 * 2 + 2 * sizeof(float)));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bits),          cmocka_unit_test(test_what_runs_again), cmocka_unit_test(test_cheap),
      cmocka_unit_test(test_frozen_bottom), cmocka_unit_test(test_memory_of_depth),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
