// Every registered token mixer, in the encoder and (unless it is for the encoder only) in the decoder, pre- and
// post-norm, trained, frozen, and with frozen matrices alone, dense and structured, its weights used twice, through the
// same proofs: gradients against finite differences, fast kernels against the reference, frozen means bit-unchanged and
// without gradient memory, packed against one by one, checkpoint round trip, export, incremental against full decoding.
// A new mixer is covered by its line in the table of parts.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "base/memory.h"
#include "decode/translate.h"
#include "device/devices.h"
#include "list_optimiser.h"
#include "make_shard.h"
#include "parts/table/part_table.h"
#include "sample_step.h"
#include "sandbox.h"
#include "store/checkpoint.h"

enum { VOCAB = 13, EOS = 2, SENTENCES = 4, ROWS = 17, THREADS = 2 };

// Where a block stands, and how.
typedef struct place {
  const tarn__mixer_entry *mixer;
  const tarn__part *channel, *norm, *position, *activation;
  int index;  // of the part that varies
  bool decoder, pre;
  const char *order;  // of the norms, with gates; NULL: as `pre` says
  tarn_frozen frozen;
  const char *init;
  uint64_t seed;  // of the weights
  char name[160];
} place;

#define WORD(value, word, text) word,
static const char *const frozen_words[] = {TARN_FROZEN_MAP(WORD)};
#undef WORD

// The batch of all tests: sentences of different lengths, one of them a single token.
static const int32_t source_ids[ROWS] = {3, 4, 5, 6, EOS, 7, 8, EOS, EOS, 9, 10, 11, 12, 3, 3, 5, EOS};
static const int32_t source_offsets[SENTENCES + 1] = {0, 5, 8, 9, ROWS};
static const int32_t target_out[ROWS] = {5, 6, EOS, EOS, 8, 9, 10, 11, 4, EOS, 12, 3, 4, 4, 7, 6, EOS};
static const int32_t target_offsets[SENTENCES + 1] = {0, 3, 4, 10, ROWS};

static void must(tarn_status status) {
  if (status != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

static void *take(size_t count, size_t size) {
  void *memory;
  must(tarn__alloc(&memory, TARN__MEMORY_OTHER, count, size));
  return memory;
}

// A model with the block B1 twice in one stack, above and below a trained layer.
typedef struct fixture {
  tarn_config *config;
  tarn__model *model;
  void *workspace;
  size_t workspace_bytes;
  double scale;  // of the gradients
  double loss, nll;
  bool forward;  // a step with the dropout of training, but without its gradients
  bool filled;   // such a step has been made
} fixture;

static void open_model(fixture *f, const place *at, tarn__dtype dtype, double dropout, bool training) {
  char text[640];
  // Keys that only some mixers have.
  const struct {
    const tarn__mixer_entry *mixer;
    char keys[96];
  } own[] = {
      {&tarn__mixer_light_conv, ", heads: 2, kernel: 3, kernel_dropout: "},
      {&tarn__mixer_dynamic_conv, ", heads: 2, kernel: 5, kernel_dropout: "},
      {&tarn__mixer_attention, ", heads: 2, attention_dropout: "},
      {&tarn__mixer_performer, ", heads: 2, features: 6, attention_dropout: "},
      {&tarn__mixer_branched_attention, ", heads: 2, branch_ffn: 6, branch_activation: gelu, attention_dropout: "},
      {&tarn__mixer_evolved_attention, ", heads: 2, attention_dropout: "},
      {&tarn__mixer_linformer, ", heads: 2, rows: 3, attention_dropout: "},
      {&tarn__mixer_esn, ", hidden: 10, spectral_radius: 1.1, nonlinearity: "}};
  char keys[128] = "";
  for (size_t i = 0; i < sizeof own / sizeof *own; i++)
    if (own[i].mixer == at->mixer && at->mixer == &tarn__mixer_esn)
      snprintf(keys, sizeof keys, "%s%s%s", own[i].keys,
               at->pre ? "tanh, leak_rate_min: 0.3, storage: entries" : "relu",
               at->pre && strcmp(at->init, "hadamard") != 0 ? ", input_sparsity: 0.4" : "");
    else if (own[i].mixer == at->mixer)
      snprintf(keys, sizeof keys, "%s%s%g", at->mixer == &tarn__mixer_attention && at->pre ? ", kv_heads: 1" : "",
               own[i].keys, dropout);
  // The first channel mixer is that of a width. The balance loss of experts is not in the loss, and their capacity
  // depends on the batch.
  char ffn[128];
  snprintf(ffn, sizeof ffn, "%s", at->channel == tarn__part_at(TARN__TABLE_CHANNEL, 0) ? "12" : at->channel->word);
  if (at->channel == &tarn__channel_moe.part || at->channel == &tarn__channel_switch.part)
    snprintf(ffn, sizeof ffn, "{ type: %s, experts: 3, width: 12, balance: 0, capacity: 3, noise: %g }",
             at->channel->word, dropout);
  if (at->channel == &tarn__channel_product_keys.part)
    snprintf(ffn, sizeof ffn, "{ type: product_keys, memory_heads: 2, keys: 4, nearest: 3, query: 5 }");
  *f = (fixture){.scale = 1.0};
  snprintf(text, sizeof text,
           "model: { d_model: 8, embeddings: none, max_length: 24, dropout: %g, norm: %s, norm_type: %s,\n"
           "         positions: %s, activation: %s }\n"
           "encoder: { layers: \"%s\" }\ndecoder: { layers: \"%s\" }\n"
           "kinds:\n  L: { mixer: attention, heads: 2, ffn: 12 }\n  B: { mixer: %s, ffn: %s, frozen: %s, norm: %s, "
           "init: %s, init_gain: %g%s%s }\n",
           dropout, at->pre ? "pre" : "post", at->norm->word, at->position->word, at->activation->word,
           at->decoder ? "L" : "B1 L B1", at->decoder ? "B1 L B1" : "L", at->mixer->part.word, ffn,
           frozen_words[at->frozen],
           at->order ? at->order
           : at->pre ? "pre"
                     : "post",
           at->init, at->frozen == TARN_FROZEN_MATRICES ? 0.7 : 1.0, keys,
           at->order && strcmp(at->order, "fixup") != 0 ? ", gate: scalar, gate_init: 0.7" : "");
  must(tarn_config_parse(&f->config, at->name, text, strlen(text), NULL, 0));
  must(tarn__model_open(&f->model, f->config, VOCAB, VOCAB, dtype, training));
  must(tarn__model_allocate(f->model));
  must(tarn__model_initialise(f->model, at->seed));
}

static void close_model(fixture *f) {
  tarn__model_close(&f->model);
  tarn_config_close(&f->config);
  tarn__free(f->workspace);
}

static bool is_block(const tarn__param *param) { return strstr(param->name, ".B1.") != NULL; }

static bool is_vector(const tarn__param *param) {
  const char *last = strrchr(param->name, '.');
  return strcmp(last, ".bias") == 0 || strcmp(last, ".gain") == 0 || strcmp(last, ".gate") == 0 ||
         strcmp(last, ".shift") == 0 || strcmp(last, ".kappa") == 0 || strcmp(last, ".alpha") == 0;
}

// Whether the kind's key says that it is frozen.
static bool is_frozen(const place *at, const tarn__param *param) {
  return is_block(param) &&
         (at->frozen == TARN_FROZEN_YES || (at->frozen == TARN_FROZEN_MATRICES && !is_vector(param)));
}

// Whether the mixer keeps some of its matrices frozen though the kind is trained.
static bool is_partly_frozen(const place *at, const fixture *f) {
  const tarn_kind *kind = &f->config->kinds[1];
  return at->frozen == TARN_FROZEN_NO && at->mixer->partly_frozen && at->mixer->partly_frozen(kind->mixer.keys);
}

// Sentences [first, last) of a batch, as a batch of its own.
typedef struct packed {
  int32_t offsets[SENTENCES + 1], positions[ROWS], ids[ROWS], out[ROWS];
  tarn__packed view;
} packed;

static void pack(packed *p, const int32_t *ids, const int32_t *offsets, int first, int last, bool target) {
  int64_t rows = offsets[last] - offsets[first];
  for (int s = first; s <= last; s++) p->offsets[s - first] = offsets[s] - offsets[first];
  memcpy(p->out, ids + offsets[first], (size_t)rows * sizeof *ids);
  for (int s = 0; s < last - first; s++)
    for (int32_t r = p->offsets[s]; r < p->offsets[s + 1]; r++)
      p->ids[r] = !target ? p->out[r] : r == p->offsets[s] ? EOS : p->out[r - 1];
  tarn__packed_positions(p->positions, p->offsets, last - first);
  p->view = (tarn__packed){.sentences = last - first,
                           .rows = rows,
                           .longest = rows,
                           .ids = p->ids,
                           .positions = p->positions,
                           .offsets = p->offsets};
}

// Loss of packed sentences, and in training their gradients.
static void run_packed(fixture *f, const tarn__device *device, const packed *source, const packed *target,
                       bool training, double smoothing) {
  tarn__graph graph = {0};
  tarn__graph_begin(&graph, device, f->model->dtype, training, THREADS);
  const tarn__batch batch = {
      .source = source->view, .target = target->view, .predictions = target->view.rows, .targets = target->out};
  tarn__tensor *loss = tarn__model_build_loss(f->model, &graph, &batch, NULL, smoothing, f->scale, NULL);
  if (training && !f->forward) tarn__graph_differentiate(&graph, loss);
  must(tarn__graph_plan(&graph));
  if (graph.workspace_bytes != f->workspace_bytes) {
    tarn__free(f->workspace);
    f->workspace = take(graph.workspace_bytes, 1);
    f->workspace_bytes = graph.workspace_bytes;
  }
  // Full of NaNs, so that nothing may rely on what it finds there. A step without gradients is run many times: once is
  // enough.
  if (!f->forward || !f->filled) memset(f->workspace, 0xFF, graph.workspace_bytes);
  f->filled = f->forward;
  tarn__graph_bind(&graph, f->workspace);
  tarn__exec exec = {.threads = THREADS, .seed = 9, .step = 4};
  must(tarn__graph_run(&graph, &exec));
  f->loss = ((const double *)loss->data)[0];
  f->nll = ((const double *)loss->data)[1];
  tarn__graph_close(&graph);
}

static void run_sentences(fixture *f, const tarn__device *device, int first, int last, bool training) {
  packed source, target;
  pack(&source, source_ids, source_offsets, first, last, false);
  pack(&target, target_out, target_offsets, first, last, true);
  run_packed(f, device, &source, &target, training, 0.1);
}

static void forget_gradients(fixture *f) {
  for (size_t i = 0; i < f->model->param_count; i++) f->model->params[i]->training.grad_written = false;
}

static void run_step(fixture *f, const tarn__device *device) {
  forget_gradients(f);
  run_sentences(f, device, 0, SENTENCES, true);
}

static double grad_at(const tarn__param *param, int64_t i) {
  return param->dtype == TARN__F64 ? ((const double *)param->training.grad)[i]
                                   : (double)((const float *)param->training.grad)[i];
}

static double rms_of_gradient(const tarn__param *param) {
  double sum = 0.0;
  int64_t n = param->rows * param->cols;
  for (int64_t i = 0; i < n; i++) sum += grad_at(param, i) * grad_at(param, i);
  return sqrt(sum / (double)n);
}

// The reference in double, with dropout, along a random direction of every trained parameter: all of its elements take
// part, each with a sign of its own, and together they go as far as one would.
static void gradients_are_differences(const place *at) {
  // As a sample, every fourth parameter is tried.
  const bool sample = getenv("TARN_SAMPLE") != NULL;
  static const double step[] = {1.0, -1.0, 2.0, -2.0}, weight[] = {8.0, -8.0, -1.0, 1.0};
  const double h = 1e-7;  // small, so that few differences straddle a kink of ReLU
  fixture f;
  open_model(&f, at, TARN__F64, 0.15, true);
  run_step(&f, &tarn__device_reference);
  f.forward = true;
  tarn__random random;
  tarn__random_init(&random, at->seed, 3);
  for (size_t p = 0; p < f.model->param_count; p++) {
    tarn__param *param = f.model->params[p];
    if (!param->trained) continue;
    assert_true(param->training.grad_written);
    if (sample && p % 4 != 0) continue;
    const size_t n = (size_t)(param->rows * param->cols);
    double *value = param->value, *kept = take(n, sizeof *kept), *direction = take(n, sizeof *direction);
    double found = 0.0, expected = 0.0;
    memcpy(kept, value, n * sizeof *kept);
    for (size_t i = 0; i < n; i++) {
      direction[i] = (tarn__random_below(&random, 2) ? 1.0 : -1.0) / sqrt((double)n);
      found += direction[i] * grad_at(param, (int64_t)i);
    }
    for (int k = 0; k < 4; k++) {
      for (size_t i = 0; i < n; i++) value[i] = kept[i] + step[k] * h * direction[i];
      run_sentences(&f, &tarn__device_reference, 0, SENTENCES, true);
      expected += weight[k] * f.loss / (12.0 * h);
    }
    memcpy(value, kept, n * sizeof *kept);
    if (!(fabs(found - expected) <= 1e-5 * (1.0 + fabs(expected) + rms_of_gradient(param))))
      fail_msg("%s: the derivative by %s is %.9g, expected %.9g", at->name, param->name, found, expected);
    tarn__free(kept);
    tarn__free(direction);
  }
  close_model(&f);
}

// The parameter whose gradients differ most, and by how much.
static double farthest(const fixture *a, const fixture *b, const tarn__param **where) {
  double worst = -1.0;
  for (size_t p = 0; p < a->model->param_count; p++) {
    const tarn__param *x = a->model->params[p], *y = b->model->params[p];
    if (!x->trained) continue;
    double sum = 0.0, rms = rms_of_gradient(y);
    int64_t n = x->rows * x->cols;
    for (int64_t i = 0; i < n; i++) sum += pow(grad_at(x, i) - grad_at(y, i), 2.0);
    // Gradients that vanish, such as that of a key's bias, are compared with what is usual.
    double off = sqrt(sum / (double)n) / (rms + 0.1);
    if (off <= worst) continue;
    worst = off;
    *where = x;
    if (isnan(off)) break;
  }
  return worst;
}

static void same_gradients(const place *at, const fixture *a, const fixture *b, double tolerance) {
  const tarn__param *where = NULL;
  double off = farthest(a, b, &where);
  if (!(off <= tolerance))
    fail_msg("%s: the gradient of %s is off by %g, allowed is %g", at->name, where->name, off, tolerance);
}

// In so small a model a rounding that takes one ReLU across its kink moves gradients by a tenth, whatever the mixer is:
// one of a few models must be free of that.
static void bf16_is_the_reference(place at) {
  double least = INFINITY;
  for (at.seed = 5; at.seed < 11 && !(least <= 0.25); at.seed++) {
    fixture exact, fast;
    const tarn__param *where = NULL;
    open_model(&exact, &at, TARN__F64, 0.15, true);
    run_step(&exact, &tarn__device_reference);
    open_model(&fast, &at, TARN__BF16, 0.15, true);
    run_step(&fast, &tarn__device_cpu);
    assert_true(fabs(fast.loss / exact.loss - 1.0) < 0.03);
    double off = farthest(&fast, &exact, &where);
    assert_true(off <= 1.0);
    if (off < least) least = off;
    close_model(&fast);
    close_model(&exact);
  }
  if (!(least <= 0.25)) fail_msg("%s: gradients in bf16 are off by %g at least", at.name, least);
}

static void kernels_are_the_reference(const place *at) {
  fixture exact, fast;
  open_model(&exact, at, TARN__F64, 0.15, true);
  run_step(&exact, &tarn__device_reference);
  open_model(&fast, at, TARN__F32, 0.15, true);
  run_step(&fast, &tarn__device_reference);
  assert_true(fabs(fast.loss / exact.loss - 1.0) < 1e-5);
  same_gradients(at, &fast, &exact, 1e-4);
  run_step(&fast, &tarn__device_cpu);
  assert_true(fabs(fast.loss / exact.loss - 1.0) < 1e-5);
  same_gradients(at, &fast, &exact, 1e-4);
  close_model(&fast);
  close_model(&exact);
  bf16_is_the_reference(*at);
}

// Two optimiser steps: what is frozen has no gradient, no master copy and equal bits; all the rest moves.
static void frozen_stays(const place *at, tarn__dtype dtype) {
  fixture f;
  open_model(&f, at, dtype, 0.1, true);
  tarn__model *model = f.model;
  tarn__model_size size;
  tarn__model_measure(model, &size);
  void *before = take(size.frozen_bytes, 1);
  memcpy(before, model->storage[TARN__MEMORY_FROZEN], size.frozen_bytes);
  const bool partly = is_partly_frozen(at, &f);
  bool block_seen = false;
  for (size_t p = 0; p < model->param_count; p++) {
    tarn__param *param = model->params[p];
    block_seen |= is_block(param);
    if (!partly || !is_block(param) || is_vector(param)) assert_int_equal(param->trained, !is_frozen(at, param));
    assert_int_equal(param->training.grad != NULL, param->trained);
    assert_int_equal(param->training.master != NULL, param->trained);
    assert_int_equal(param->uses, is_block(param) ? 2 : 1);
    if (!param->trained) continue;
    size_t n = (size_t)(param->rows * param->cols);
    param->training.moment1 = take(n, sizeof(float));
    param->training.moment2 = take(n, sizeof(float));
  }
  assert_true(block_seen);
  assert_int_equal(at->frozen != TARN_FROZEN_NO || partly, size.frozen > 0);
  tarn__adam_options options = {.learning_rate = 0.01, .beta1 = 0.9, .beta2 = 0.98, .epsilon = 1e-8};
  double losses[2];
  for (int step = 1; step <= 2; step++) {
    run_step(&f, &tarn__device_cpu);
    losses[step - 1] = f.loss;
    for (size_t p = 0; p < model->param_count; p++)
      assert_int_equal(model->params[p]->training.grad_written, model->params[p]->trained);
    step_list(&tarn__device_cpu, model->params, model->param_count, &options, step, 1.0, THREADS);
  }
  assert_true(losses[0] != losses[1]);
  assert_memory_equal(before, model->storage[TARN__MEMORY_FROZEN], size.frozen_bytes);
  for (size_t p = 0; p < model->param_count; p++) {
    tarn__free(model->params[p]->training.moment1);
    tarn__free(model->params[p]->training.moment2);
  }
  tarn__free(before);
  close_model(&f);
}

// Whether positions are shifted at random in training: a sentence's shift depends on its place in the batch.
static bool shifts_positions(const place *at) {
  bool any = false;
  for (int i = 0; i < at->position->option_count; i++) any |= at->position->options[i].random;
  return any;
}

// Loss and gradients of a packed batch are the sums over its sentences, each computed alone.
static void packed_is_one_by_one(const place *at) {
  fixture together, alone;
  if (shifts_positions(at)) return;
  open_model(&together, at, TARN__F32, 0.0, true);
  open_model(&alone, at, TARN__F32, 0.0, true);
  run_step(&together, &tarn__device_cpu);
  double loss = 0.0, nll = 0.0;
  forget_gradients(&alone);
  for (int s = 0; s < SENTENCES; s++) {
    run_sentences(&alone, &tarn__device_cpu, s, s + 1, true);
    loss += alone.loss;
    nll += alone.nll;
  }
  assert_true(fabs(together.loss - loss) < 1e-5 * loss);
  assert_true(fabs(together.nll - nll) < 1e-5 * nll);
  same_gradients(at, &together, &alone, 1e-5);
  close_model(&together);
  close_model(&alone);
}

static void checkpoint_comes_back(const place *at) {
  fixture f, again = {.scale = 1.0};
  tarn_vocab *vocab = make_vocab(VOCAB);
  assert_int_equal(tarn_vocab_size(vocab), VOCAB);
  open_model(&f, at, TARN__F32, 0.1, false);
  run_sentences(&f, &tarn__device_cpu, 0, SENTENCES, false);
  tarn__checkpoint_extra extra = {.source = vocab, .target = vocab, .update = 3};
  must(tarn__checkpoint_save("block", f.model, &extra));
  tarn__checkpoint *checkpoint;
  must(tarn__checkpoint_open(&checkpoint, "block", TARN__F32));
  again.model = checkpoint->model;
  run_sentences(&again, &tarn__device_cpu, 0, SENTENCES, false);
  assert_true(again.loss == f.loss && again.nll == f.nll);
  for (size_t p = 0; p < f.model->param_count; p++) {
    const tarn__param *a = f.model->params[p], *b = again.model->params[p];
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->trained, b->trained);
    assert_memory_equal(a->value, b->value, (size_t)(a->rows * a->cols) * sizeof(float));
  }
  tarn__free(again.workspace);
  tarn__checkpoint_close(&checkpoint);
  must(tarn_checkpoint_export("exported", "block"));
  must(tarn__checkpoint_open(&checkpoint, "exported", TARN__F32));
  again = (fixture){.scale = 1.0, .model = checkpoint->model};
  run_sentences(&again, &tarn__device_cpu, 0, SENTENCES, false);
  // A structured matrix is written out, and multiplied as any other.
  assert_true(fabs(again.loss - f.loss) <= 1e-5 * f.loss);
  tarn__free(again.workspace);
  tarn__checkpoint_close(&checkpoint);
  tarn_vocab_close(&vocab);
  close_model(&f);
}

// The log-probability that the search found step by step is that of the whole decoder.
static void incremental_is_full(const place *at, tarn__dtype dtype, const tarn__device *device, double tolerance) {
  fixture f;
  open_model(&f, at, dtype, 0.1, false);
  tarn__translator_options options;
  tarn__translator_default(&options);
  options.beam = options.n_best = 3;
  options.max_len_a = 0.0;
  options.max_len_b = 7;
  options.threads = THREADS;
  f.model->device = device;
  tarn__translator *translator;
  tarn__translation translations[SENTENCES];
  int64_t offsets[SENTENCES + 1];
  for (int s = 0; s <= SENTENCES; s++) offsets[s] = source_offsets[s];
  must(tarn__translator_open(&translator, f.model, EOS, &options));
  must(tarn__translator_run(translator, translations, source_ids, offsets, SENTENCES));
  for (int s = 0; s < SENTENCES; s++)
    for (int64_t h = 0; h < translations[s].count; h++) {
      const tarn__hypothesis *found = &translations[s].hypotheses[h];
      const int32_t whole[2] = {0, (int32_t)found->length};
      packed source, target;
      pack(&source, source_ids, source_offsets, s, s + 1, false);
      pack(&target, found->ids, whole, 0, 1, true);
      run_packed(&f, device, &source, &target, false, 0.0);
      if (!(fabs(f.nll + found->log_probability) <= tolerance * (double)found->length))
        fail_msg("%s: log-probability %g step by step, %g at once", at->name, found->log_probability, -f.nll);
    }
  tarn__translator_close(&translator);
  close_model(&f);
}

// A frozen layer with nothing trained below it has no backward pass and keeps nothing but its result.
static void bottom_needs_no_backward(const place *at) {
  if (at->frozen != TARN_FROZEN_YES || at->decoder) return;
  static const double scale = 1.0;
  fixture f;
  open_model(&f, at, TARN__F32, 0.1, true);
  f.model->weights.source_table->trained = false;
  if (f.model->source_positions) f.model->source_positions->trained = false;
  if (f.model->encoder.biases) f.model->encoder.biases->trained = false;
  const char *bottom = f.model->encoder.layers[0].label;
  packed source, target;
  pack(&source, source_ids, source_offsets, 0, SENTENCES, false);
  pack(&target, target_out, target_offsets, 0, SENTENCES, true);
  tarn__graph graph = {0};
  tarn__graph_begin(&graph, &tarn__device_cpu, TARN__F32, true, THREADS);
  const tarn__batch batch = {
      .source = source.view, .target = target.view, .predictions = target.view.rows, .targets = target.out};
  tarn__tensor *loss = tarn__model_build_loss(f.model, &graph, &batch, NULL, 0.1, scale, NULL);
  tarn__graph_differentiate(&graph, loss);
  must(tarn__graph_plan(&graph));
  int forward = 0, kept = 0;
  for (size_t n = 0; n < graph.node_count; n++) {
    const tarn__node *node = graph.nodes[n];
    if (strcmp(node->label, bottom) != 0) continue;
    forward++;
    assert_true(n < graph.forward_count);
    for (int k = 0; k < TARN__MAX_OUTPUTS; k++) {
      if (!node->out[k]) continue;
      const tarn__tensor *memory = tarn__tensor_owner(node->out[k]);
      kept += memory->first == (int)n && memory->last >= (int)graph.forward_count;
    }
  }
  assert_true(forward > 0);
  assert_in_range(kept, 0, 1);
  tarn__graph_close(&graph);
  close_model(&f);
}

// A proof at the places of a block. As a sample, at every fifth of them, counted on from proof to proof: each proof
// meets each mixer at four places (of the encoder and the decoder, pre- and post-norm), and the next proof at the next
// ones; any other part is met by most proofs, and each place by every proof.
static void at_places(void (*proof)(const place *at), const place *parts, int places, int step) {
  static int taken;
  for (int bits = 0; bits < places; bits += step) {
    if (taken++ % sample_step(5) != 0) continue;
    // Trained weights forget their initialiser.
    place at = *parts;
    at.decoder = bits & 1;
    at.pre = bits & 2;
    // A Hadamard matrix of so few columns may add up just what a norm has made zero, at the kink of a ReLU.
    at.seed = at.mixer == &tarn__mixer_evolved_conv ? 7 : 5;
    if (at.decoder && !at.mixer->causal) continue;  // it is refused there
    at.frozen = bits < 4 ? TARN_FROZEN_NO : bits < 12 ? TARN_FROZEN_YES : TARN_FROZEN_MATRICES;
    const bool structured = bits >= 4 && bits / 4 % 2 == 0;
    at.init = structured ? "hadamard" : at.frozen == TARN_FROZEN_NO ? "xavier" : at.decoder ? "normal" : "orthogonal";
    snprintf(at.name, sizeof at.name, "%s, %s, %s, %s, %s, %s, %s-norm, frozen: %s, %s", at.mixer->part.word,
             at.channel->word, at.norm->word, at.position->word, at.activation->word,
             at.decoder ? "decoder" : "encoder",
             at.order ? at.order
             : at.pre ? "pre"
                      : "post",
             frozen_words[at.frozen], at.init);
    proof(&at);
  }
}

// One proof at every place of every mixer, and of every other channel mixer, norm, position scheme, activation and
// order of norms with attention; the orders with gates, where they may have them.
static void everywhere(void (*proof)(const place *at)) {
  const place plain = {.mixer = &tarn__mixer_attention,
                       .channel = tarn__part_at(TARN__TABLE_CHANNEL, 0),
                       .norm = tarn__part_at(TARN__TABLE_NORM, 0),
                       .position = tarn__part_at(TARN__TABLE_POSITION, 0),
                       .activation = tarn__part_at(TARN__TABLE_ACTIVATION, 0)};
  const tarn__part *part;
  place at = plain;
  for (int i = 0; (part = tarn__part_at(TARN__TABLE_MIXER, i)) != NULL; i++) {
    at.mixer = (const tarn__mixer_entry *)(const void *)part;
    at_places(proof, &at, 20, 1);
  }
  for (at = plain; (part = tarn__part_at(TARN__TABLE_CHANNEL, ++at.index)) != NULL;) {
    at.channel = part;
    at_places(proof, &at, 8, 3);
  }
  for (at = plain; (part = tarn__part_at(TARN__TABLE_NORM, ++at.index)) != NULL;) {
    at.norm = part;
    at_places(proof, &at, 8, 3);
  }
  for (at = plain; (part = tarn__part_at(TARN__TABLE_POSITION, ++at.index)) != NULL;) {
    at.position = part;
    at_places(proof, &at, 8, 3);
  }
  for (at = plain; (part = tarn__part_at(TARN__TABLE_ACTIVATION, ++at.index)) != NULL;) {
    at.activation = part;
    at_places(proof, &at, 8, 3);
  }
  static const char *const orders[] = {"post", "pre", "none", "b2t", "deepnorm", "fixup"};
  for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
    at = plain;
    at.order = orders[i];
    at_places(proof, &at, 20, 7);
  }
}

static void test_gradients(void **state) {
  (void)state;
  everywhere(gradients_are_differences);
}

static void test_kernels(void **state) {
  (void)state;
  everywhere(kernels_are_the_reference);
}

static void frozen_stays_in_both(const place *at) {
  frozen_stays(at, TARN__F32);
  frozen_stays(at, TARN__BF16);
}

static void test_frozen(void **state) {
  (void)state;
  everywhere(frozen_stays_in_both);
}

static void test_packed(void **state) {
  (void)state;
  everywhere(packed_is_one_by_one);
}

static void test_checkpoints(void **state) {
  (void)state;
  everywhere(checkpoint_comes_back);
}

static void incremental_in_all(const place *at) {
  incremental_is_full(at, TARN__F64, &tarn__device_reference, 1e-6);
  incremental_is_full(at, TARN__F32, &tarn__device_cpu, 1e-5);
  incremental_is_full(at, TARN__BF16, &tarn__device_cpu, 0.05);
}

static void test_incremental(void **state) {
  (void)state;
  everywhere(incremental_in_all);
}

static void test_bottom(void **state) {
  (void)state;
  everywhere(bottom_needs_no_backward);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_gradients), cmocka_unit_test(test_kernels),     cmocka_unit_test(test_frozen),
      cmocka_unit_test(test_packed),    cmocka_unit_test(test_checkpoints), cmocka_unit_test(test_incremental),
      cmocka_unit_test(test_bottom),
  };
  return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
