// Loss and every gradient against PyTorch's (make_transformer.py): Models 0, 2 and 4 of the light Reservoir
// Transformer, pre- and post-norm, FFN reservoirs, recurrences and convolutions, frozen and shared layers in the
// decoder, and all ways of sharing embeddings; norms and gates of branches (make_norms.py); mixers across tokens
// (make_tokens.py); HyperMixer and the Synthesizers (make_synth.py); factorised embeddings, sets that encoder and
// decoder share, ALBERT, mixtures of softmaxes (make_embeddings.py); vocabularies in bands (make_adaptive.py); relative
// biases and fewer heads of keys and values (make_attention.py); masked language models (make_masked.py); experts,
// noisy gating, memories (make_experts.py); Universal Transformers
// (make_universal.py); Transparent attention, branches of a Weighted Transformer (make_transparent.py);
// Funnel-Transformers (make_funnel.py); decoder-only translation (make_prefix.py); conditional masked language models
// (make_cmlm.py); the policies of a Levenshtein Transformer (make_levenshtein.py). Gradients of the reference kernels
// in double are compared with sums of PyTorch's (golden_parameters.h), and are then what those of the fast kernels in
// fp32 and bf16 and of the reference kernels in float are compared with, element by element. On the shadow device the
// bits are those of the fast kernels.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/threads.h"
#include "device/devices.h"
#include "golden/golden_parameters.h"
#include "model/model.h"
#include "shadow_device.h"

// A way of computing, and how far a gradient may be from PyTorch's: the largest difference over the largest element, in
// double of the sums, or for bf16 the norm of the difference over the norm. The loss is held to `loss`, relative. The
// batch is taken `copies` times, which changes nothing in the loss per token and its gradients, but lets products have
// many tiles and threads many sentences.
typedef struct bounds {
  const char *name;
  const tarn__device *device;
  tarn__dtype dtype;
  int copies, threads;
  double loss, gradient;
  bool by_norm;
} bounds;

static bounds ways[] = {
    {"reference fp64", &tarn__device_reference, TARN__F64, 1, 1, 1e-12, 1e-11, false},
    {"fast fp32", &tarn__device_cpu, TARN__F32, 1, 2, 1e-6, 1e-4, false},
    {"shadow fp32", &shadow_device, TARN__F32, 1, 2, 1e-6, 1e-4, false},
    {"fast fp32, 40 times", &tarn__device_cpu, TARN__F32, 40, 3, 1e-6, 1e-4, false},
    {"fast fp32, 40 times, one thread", &tarn__device_cpu, TARN__F32, 40, 1, 1e-6, 1e-4, false},
    {"reference fp32", &tarn__device_reference, TARN__F32, 1, 1, 1e-6, 1e-4, false},
    {"fast bf16", &tarn__device_cpu, TARN__BF16, 1, 2, 1e-2, 0.2, true},
    {"shadow bf16", &shadow_device, TARN__BF16, 1, 2, 1e-2, 0.2, true},
    {"fast bf16, 40 times", &tarn__device_cpu, TARN__BF16, 40, 2, 1e-2, 0.2, true},
};

static const char *const cases[] = {"model0_post",
                                    "model0_pre",
                                    "model2_post",
                                    "model2_pre",
                                    "model4_post",
                                    "model4_pre",
                                    "reservoirs_post",
                                    "reservoirs_pre",
                                    "bigru_post",
                                    "bigru_pre",
                                    "conv_post",
                                    "conv_pre",
                                    "recurrent_post",
                                    "recurrent_pre",
                                    "masked_post",
                                    "masked_pre",
                                    "cmlm_post",
                                    "cmlm_conv_pre",
                                    "channels_post",
                                    "channels_pre",
                                    "norms_scale",
                                    "norms_rezero",
                                    "norms_b2t",
                                    "norms_deepnorm",
                                    "norms_fixup",
                                    "embeddings_decoder",
                                    "embeddings_all",
                                    "embeddings_encoder_output",
                                    "embeddings_albert",
                                    "embeddings_mixture",
                                    "embeddings_mixture_tied",
                                    "embeddings_mixture_rank",
                                    "adaptive_none",
                                    "adaptive_decoder",
                                    "adaptive_all",
                                    "adaptive_input",
                                    "adaptive_softmax",
                                    "linear_post",
                                    "linear_pre",
                                    "tokens_post",
                                    "tokens_pre",
                                    "synth_post",
                                    "synth_pre",
                                    "performer_post",
                                    "performer_pre",
                                    "linformer_post",
                                    "linformer_pre",
                                    "layerwise_post",
                                    "layerwise_pre",
                                    "relative_post",
                                    "relative_pre",
                                    "swish_post",
                                    "swish_pre",
                                    "shaw_post",
                                    "shaw_pre",
                                    "shaw_keys",
                                    "grouped_post",
                                    "grouped_pre",
                                    "experts_post",
                                    "experts_pre",
                                    "noisy_post",
                                    "noisy_pre",
                                    "memory_post",
                                    "memory_pre",
                                    "universal_steps",
                                    "universal_act",
                                    "universal_both",
                                    "transparent_post",
                                    "transparent_pre",
                                    "branched_post",
                                    "branched_pre",
                                    "funnel_post",
                                    "funnel_pre",
                                    "prefix_post",
                                    "prefix_pre",
                                    "evolved_post",
                                    "evolved_pre",
                                    "head_width_post",
                                    "head_width_pre",
                                    "levenshtein_post",
                                    "levenshtein_pre"};

enum { WAYS = sizeof ways / sizeof *ways, CASES = sizeof cases / sizeof *cases };

// With TARN_DEVICE, the device that it names takes the place of all others but the reference in double. Returns the
// number of ways.
static size_t choose_ways(void) {
  const char *name = getenv("TARN_DEVICE");
  const tarn__device *device;
  if (name == NULL) return WAYS;
  if (tarn__device_find(&device, name) != TARN_STATUS_OK) {
    fprintf(stderr, "%s\n", tarn_error_message());
    exit(1);
  }
  unsetenv("TARN_DEVICE");  // no default for the model that is compared in double
  const bounds named[] = {{"device fp32", device, TARN__F32, 1, 2, 1e-6, 1e-4, false},
                          {"device bf16", device, TARN__BF16, 1, 2, 1e-2, 0.2, true},
                          {"device fp32, 40 times", device, TARN__F32, 40, 2, 1e-6, 1e-4, false},
                          {"device bf16, 40 times", device, TARN__BF16, 40, 2, 1e-2, 0.2, true}};
  memcpy(ways + 1, named, sizeof named);
  return getenv("TARN_SAMPLE") ? 3 : 1 + sizeof named / sizeof *named;  // a sample has no copies of the batch
}

typedef struct golden_case {
  const char *name;
  const bounds *bounds;
  size_t model;  // which of `cases`
} golden_case;

// The noise of gating would be another in each copy. A sample has rows for a few tiles instead of many.
static int copies_of(const golden_case *golden) {
  const int copies = golden->bounds->copies, most = getenv("TARN_SAMPLE") ? 8 : copies;
  return strncmp(golden->name, "noisy", 5) == 0 ? 1 : copies < most ? copies : most;
}

enum { MOST_ROWS = 4096, MOST_SENTENCES = 512 };

// The stored sentences, `copies` times.
typedef struct side {
  int32_t ids[MOST_ROWS], targets[MOST_ROWS], positions[MOST_ROWS], offsets[MOST_SENTENCES];
  tarn__packed packed;
} side;

static void pack(side *s, const tarn__safetensors *file, const char *ids, const char *targets, const char *offsets,
                 int copies) {
  const tarn__stored *stored = need(file, "batch", offsets);
  const int32_t *first = stored->data;
  int64_t sentences = stored->shape[0] - 1;
  int64_t rows = first[sentences];
  assert_true(rows * copies <= MOST_ROWS && sentences * copies < MOST_SENTENCES);
  tarn__packed *packed = &s->packed;
  *packed = (tarn__packed){.sentences = sentences * copies,
                           .rows = rows * copies,
                           .ids = s->ids,
                           .positions = s->positions,
                           .offsets = s->offsets};
  for (int c = 0; c < copies; c++) {
    memcpy(s->ids + c * rows, need(file, "batch", ids)->data, (size_t)rows * sizeof *s->ids);
    memcpy(s->targets + c * rows, need(file, "batch", targets)->data, (size_t)rows * sizeof *s->targets);
    for (int64_t i = 0; i < sentences; i++) s->offsets[c * sentences + i] = (int32_t)(c * rows) + first[i];
  }
  s->offsets[packed->sentences] = (int32_t)packed->rows;
  for (int64_t i = 0; i < sentences; i++)
    if (first[i + 1] - first[i] > packed->longest) packed->longest = first[i + 1] - first[i];
  tarn__packed_positions(s->positions, s->offsets, packed->sentences);
}

// The batch of a masked language model: whole sentences, and the rows that are predicted from. Only an encoder alone
// has segments.
static void pack_masked(side *s, tarn__batch *batch, const tarn__safetensors *file, int copies) {
  static int32_t segments[MOST_ROWS], selected[MOST_ROWS];
  const tarn__stored *rows = need(file, "batch", "selected");
  pack(s, file, "target_in", "target_in", "target_offsets", copies);
  const int64_t count = rows->shape[0], all = s->packed.rows / copies;
  for (int c = 0; c < copies; c++) {
    if (find(file, "batch", "segments"))
      memcpy(segments + c * all, need(file, "batch", "segments")->data, (size_t)all * sizeof *segments);
    memcpy(s->targets + c * count, need(file, "batch", "targets")->data, (size_t)count * sizeof *s->targets);
    for (int64_t i = 0; i < count; i++) selected[c * count + i] = (int32_t)(c * all) + ((const int32_t *)rows->data)[i];
  }
  s->packed.segments = segments;
  *batch =
      (tarn__batch){.target = s->packed, .predictions = count * copies, .selected = selected, .targets = s->targets};
}

// Rows of stored sentences, in every copy of them; `all` rows of a copy.
static int64_t copy_rows(int32_t *rows, const tarn__stored *stored, int64_t all, int copies) {
  const int64_t count = stored->shape[0];
  for (int c = 0; c < copies; c++)
    for (int64_t i = 0; i < count; i++) rows[c * count + i] = (int32_t)(c * all) + ((const int32_t *)stored->data)[i];
  return count * copies;
}

// The batch of a Levenshtein Transformer: the target with placeholders, and without.
static void pack_edits(side *source, side *target, tarn__batch *batch, const tarn__safetensors *file, int copies) {
  static int32_t selected[MOST_ROWS], targets[MOST_ROWS], gaps[MOST_ROWS];
  static side kept;
  pack(source, file, "source_ids", "source_ids", "source_offsets", copies);
  pack(target, file, "target_in", "target_in", "target_offsets", copies);
  pack(&kept, file, "kept_ids", "kept_ids", "kept_offsets", copies);
  const int64_t holes = copy_rows(selected, need(file, "batch", "selected"), target->packed.rows / copies, copies);
  copy_rows(targets, need(file, "batch", "targets"), 0, copies);
  copy_rows(gaps, need(file, "batch", "gaps"), 0, copies);
  *batch = (tarn__batch){.source = source->packed,
                         .target = target->packed,
                         .predictions = holes,
                         .selected = selected,
                         .targets = targets,
                         .kept = kept.packed,
                         .gaps = gaps};
}

// Of the losses and gradients of the case that ran before this one, and of this one.
static uint64_t bits_before, bits;

// Gradients of parameters that are one number: much may cancel in one of them, so they are taken together.
static double number_squares, number_differences;

// What the reference kernels found in double.
static golden_exact exact;

// The distance of a gradient from the one in double, as `bounds` says.
static double distance(const float *gradient, const double *wanted, int64_t count, bool by_norm) {
  double worst = 0, largest = 0, square = 0, difference = 0;
  for (int64_t i = 0; i < count; i++) {
    const double d = (double)gradient[i] - wanted[i];
    worst = golden_worse(worst, d);
    largest = golden_worse(largest, wanted[i]);
    difference += d * d;
    square += wanted[i] * wanted[i];
  }
  if (count == 1) {
    number_squares += square;
    number_differences += difference;
    return 0.0;
  }
  return by_norm ? sqrt(difference / square) : worst / largest;
}

static double gradient_distance(const tarn__param *param, size_t i, const golden_parameter *wanted, bool by_norm) {
  const int64_t count = param->rows * param->cols;
  const size_t bytes = (size_t)count * (param->dtype == TARN__F64 ? sizeof(double) : sizeof(float));
  tarn__host_room room = {0};
  void *gradient;
  must(tarn__device_read(param->device, &gradient, param->training.grad, bytes, &room));
  bits = tarn__hash64(gradient, bytes, bits);
  const double d = param->dtype == TARN__F64 ? golden_exact_keep(&exact, i, wanted, gradient)
                                             : distance(gradient, exact.gradients[i], count, by_norm);
  tarn__host_room_close(&room);
  return d;
}

static void compare_gradients(const tarn__model *model, const golden_parameters *list, const golden_case *golden) {
  double worst = 0;
  const char *worst_name = "";
  number_squares = number_differences = 0.0;
  for (size_t i = 0; i < model->param_count; i++) {
    const tarn__param *param = model->params[i];
    const golden_parameter *wanted = golden_find(list, param->name);
    assert_int_equal(param->trained, wanted->trained);
    if (!param->trained) {
      assert_null(param->training.grad);
      assert_null(param->training.master);
      continue;
    }
    assert_true(param->training.grad_written);
    const double d = gradient_distance(param, i, wanted, golden->bounds->by_norm);
    if (!isnan(worst) && !(d <= worst)) {
      worst = d;
      worst_name = param->name;
    }
  }
  const double numbers = number_squares > 0.0 ? sqrt(number_differences / number_squares) : 0.0;
  if (!(numbers <= worst)) {
    worst = numbers;
    worst_name = "the parameters of one number";
  }
  print_message("%s, %s: worst gradient %s, %.2e\n", golden->name, golden->bounds->name, worst_name, worst);
  // Product keys choose the greatest scores, and rounding makes some choices others.
  const bool chooses = golden->bounds->by_norm && strncmp(golden->name, "memory", 6) == 0;
  const double most = (chooses ? 1.5 : 1.0) * golden->bounds->gradient;
  if (!(worst <= most)) fail_msg("gradient of %s is off by %.3e, more than %.1e", worst_name, worst, most);
}

static void compare_losses(const double *sums, const tarn__safetensors *file, const golden_case *golden) {
  static const char *const names[] = {"loss", "nll"};
  for (int i = 0; i < 2; i++) {
    double wanted = *(const double *)need(file, "result", names[i])->data * copies_of(golden);
    if (!(fabs(sums[i] - wanted) <= golden->bounds->loss * fabs(wanted)))
      fail_msg("%s is %.9f, PyTorch's is %.9f", names[i], sums[i], wanted);
  }
}

// Sizes of the vocabularies of source and target: as the file says, or those of its tables.
static void find_words(int64_t words[2], const tarn__safetensors *file, const golden_parameters *list) {
  const char *text = tarn__safetensors_text(file, "words");
  char *end;
  if (text) {
    words[0] = strtoll(text, &end, 10);
    words[1] = strtoll(end, NULL, 10);
    return;
  }
  const golden_parameter *source_table = golden_find(list, "embeddings.weight");
  if (!source_table) source_table = golden_find(list, "embeddings.input.weight");
  if (!source_table) source_table = golden_find(list, "embeddings.source.weight");
  assert_non_null(source_table);
  const golden_parameter *target_table = golden_find(list, "embeddings.target.weight");
  words[0] = source_table->rows;
  words[1] = target_table ? target_table->rows : words[0];
}

// Steps of a case: a second one must overwrite the gradients of the first. A sample is taken where a step takes many
// times as long (under sanitizers, and on the card whose threads are fibres): in one way of each model alone it makes
// two.
static int rounds_of(const golden_case *golden) {
  const size_t way = (size_t)(golden->bounds - ways);
  return getenv("TARN_SAMPLE") == NULL || way == 1 + golden->model % 2 ? 2 : 1;
}

// One step of training without the optimiser, or two.
static void run_case(void **state) {
  const golden_case *golden = *state;
  const bounds *way = golden->bounds;
  const int copies = copies_of(golden);
  static golden_parameters list;
  char path[512];
  if (way->dtype == TARN__F64)
    golden_exact_close(&exact);
  else if (!exact.name || strcmp(exact.name, golden->name) != 0)
    fail_msg("%s has not been compared in double", golden->name);
  snprintf(path, sizeof path, "%s/tests/golden/%s.safetensors", TARN_SOURCE_DIR, golden->name);
  tarn__safetensors file = {0};
  must(tarn__safetensors_open(&file, path));
  golden_list(&list, &file);
  const char *text = tarn__safetensors_text(&file, "config");
  assert_non_null(text);
  tarn_config *config;
  must(tarn_config_parse(&config, golden->name, text, strlen(text), NULL, 0));
  tarn__model *model;
  int64_t words[2];
  find_words(words, &file, &list);
  must(tarn__model_open(&model, config, words[0], words[1], way->dtype, true));
  model->device = way->device;
  must(tarn__model_allocate(model));
  golden_set(model, &list);

  static side source, target;
  tarn__batch batch;
  if (find(&file, "batch", "kept_ids")) {
    pack_edits(&source, &target, &batch, &file, copies);
  } else if (find(&file, "batch", "selected")) {
    pack_masked(&target, &batch, &file, copies);
    if (find(&file, "batch", "source_ids")) {
      pack(&source, &file, "source_ids", "source_ids", "source_offsets", copies);
      batch.source = source.packed;
    }
  } else {
    pack(&source, &file, "source_ids", "source_ids", "source_offsets", copies);
    pack(&target, &file, "target_in", "target_out", "target_offsets", copies);
    batch = (tarn__batch){
        .source = source.packed, .target = target.packed, .predictions = target.packed.rows, .targets = target.targets};
  }
  double smoothing = strtod(tarn__safetensors_text(&file, "label_smoothing"), NULL);
  double grad_scale = 1.0 / (double)batch.predictions;
  tarn__graph graph = {0};
  tarn__graph_begin(&graph, way->device, way->dtype, true, way->threads);
  tarn__tensor *loss = tarn__model_build_loss(model, &graph, &batch, NULL, smoothing, grad_scale, NULL);
  tarn__graph_differentiate(&graph, loss);
  must(tarn__graph_plan(&graph));
  void *workspace;
  must(tarn__device_allocate(way->device, &workspace, TARN__MEMORY_ACTIVATION, graph.workspace_bytes, 1));
  tarn__graph_bind(&graph, workspace);
  tarn__exec exec = {.threads = way->threads, .seed = 1, .step = 1};
  tarn__host_room room = {0};
  for (int round = 0, rounds = rounds_of(golden); round < rounds; round++) {
    // Not numbers: nothing may be read that was not written.
    must(tarn__device_fill(way->device, workspace, 0xFF, graph.workspace_bytes));
    bits = 0;
    for (size_t i = 0; i < model->param_count; i++) model->params[i]->training.grad_written = false;
    must(tarn__graph_run(&graph, &exec));
    void *sums;
    must(tarn__graph_read(&graph, &sums, loss, &room));
    bits = tarn__hash64(sums, 2 * sizeof(double), bits);
    compare_losses(sums, &file, golden);
    compare_gradients(model, &list, golden);
  }
  // The way before the shadow is the same on the processor.
  if (way->device == &shadow_device) assert_true(bits == bits_before);
  bits_before = bits;
  if (way->dtype == TARN__F64) exact.name = golden->name;
  tarn__host_room_close(&room);
  tarn__graph_close(&graph);
  tarn__device_free(way->device, workspace);
  tarn__model_close(&model);
  tarn_config_close(&config);
  tarn__safetensors_close(&file);
}

static int close_exact(void **state) {
  (void)state;
  golden_exact_close(&exact);
  return 0;
}

// What may be wrong with a gradient of ROWS by COLS.
enum { ROWS = 30, COLS = 17, NUMBERS = ROWS * COLS };

static void change(double *g, int what) {
  const double copy = g[COLS + 3];
  if (what == 0) g[COLS + 3] += 1e-9;                              // an element, by little
  if (what == 1) g[COLS + 3] = g[COLS + 4], g[COLS + 4] = copy;    // two exchanged
  if (what == 2) g[COLS + 3] += 1e-3, g[COLS + 4] -= 1e-3;         // two whose sum stays
  if (what == 3) memcpy(g, g + COLS, COLS * sizeof *g);            // a row in another's place
  if (what == 4) memset(g + NUMBERS - COLS, 0, COLS * sizeof *g);  // a last row that is missing
  if (what == 5) memmove(g, g + 1, (NUMBERS - 1) * sizeof *g);     // all moved on
  if (what == 6) g[NUMBERS - 1] = NAN;                             // no number
  for (int i = 0; i < NUMBERS; i++) {
    if (what == 7) g[i] *= 1 + 1e-8;             // the scale
    if (what == 8 && i % COLS == 5) g[i] *= -1;  // the sign of a column
  }
}

// Whatever is wrong shows in the sums, and nothing does where nothing is.
static void sums_tell(void **state) {
  (void)state;
  enum { CHANGES = 9 };
  float drawn[NUMBERS];
  double numbers[GOLDEN_NUMBERS], gradient[NUMBERS];
  golden_draw(drawn, NUMBERS, "any 0", "gradient", 0, 1.0 / 65536);
  for (int what = 0; what <= CHANGES; what++) {
    for (int i = 0; i < NUMBERS; i++) gradient[i] = (double)drawn[i];
    if (what == 0) golden_sums(numbers, "any", gradient, NUMBERS);
    change(gradient, what);
    const double d = golden_sums_distance(numbers, "any", gradient, NUMBERS);
    if (what < CHANGES ? d <= ways[0].gradient : d != 0) fail_msg("change %d makes a distance of %g", what, d);
  }
}

// Whether a sample leaves this case out: of the ways with copies of the batch, which take most of the time, each model
// meets one, and the next model the next one; of the two ways of a device by TARN_DEVICE likewise.
static bool left_out(const golden_case *golden) {
  static size_t taken;
  const size_t way = (size_t)(golden->bounds - ways);
  if (getenv("TARN_SAMPLE") == NULL) return false;
  if (strncmp(golden->bounds->name, "device", 6) == 0) return way != 1 + golden->model % 2;
  if (golden->bounds->copies == 1) return false;
  return (taken++ + golden->model) % 3 != 0;
}

int main(void) {
  static golden_case all[CASES * WAYS];
  static char names[CASES * WAYS][96];
  struct CMUnitTest tests[CASES * WAYS + 1];
  tarn__threads_set(3);
  const size_t count = choose_ways();
  size_t taken = 0;
  for (size_t i = 0; i < CASES * count; i++) {
    all[taken] = (golden_case){cases[i / count], &ways[i % count], i / count};
    if (left_out(&all[taken])) continue;
    snprintf(names[taken], sizeof names[taken], "%s, %s", all[taken].name, all[taken].bounds->name);
    tests[taken] = (struct CMUnitTest){names[taken], run_case, NULL, NULL, &all[taken]};
    taken++;
  }
  const char *filter = getenv("TARN_TEST_FILTER");  // such as model0_post*
  if (filter != NULL) cmocka_set_test_filter(filter);
  tests[taken++] = (struct CMUnitTest)cmocka_unit_test(sums_tell);
  return _cmocka_run_group_tests("golden", tests, taken, NULL, close_exact);
}
