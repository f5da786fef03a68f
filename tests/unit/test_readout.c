// The output layer in closed form: ridge regression on classes, the scale of its outputs, a run of it, and what it
// refuses. Expected numbers are those of tests/golden/make_readout.py.
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>
#include <jansson.h>

#include "base/file.h"
#include "data/shard.h"
#include "device/devices.h"
#include "optim/ridge.h"
#include "store/checkpoint.h"
#include "tarn/data.h"
#include "tarn/lm.h"
#include "tiny_run.h"
#include "train/features/readout.h"
#include "train/trainer.h"

static void must(tarn_status status) {
  if (status != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

static void near(double value, double expected, double tolerance) {
  if (!(fabs(value - expected) <= tolerance)) fail_msg("%.12g, expected %.12g", value, expected);
}

// --- regression on classes
enum { N = 3, V = 4, T = 14 };
static const double weights[N + 1][V] = {
    {0, -0.0622493619384998, 0.1532142165084039, -0.0909648545699041},
    {0, 0.1284129905366635, -0.0437187100775205, -0.084694280459143},
    {0, 0.0090614597521048, 0.1393077144205097, -0.1483691741726146},
    {0, 0.4695932649028834, 0.3592231068034459, 0.1711836282936707}};  // the last row is the bias

static int32_t sample(float x[N], int t) {
  for (int i = 0; i < N; i++) x[i] = (float)((t * 7 + i * 5 + t * i) % 11) / 4.0f - 1.0f;
  return t == 5 ? 3 : (t * t + 1) % V;
}

static void classes_are_those_of_numpy(void **state) {
  (void)state;
  tarn__ridge sums[3];  // all, and two halves
  for (int k = 0; k < 3; k++) must(tarn__ridge_open_classes(&sums[k], &tarn__device_cpu, N, V));
  for (int t = 0; t < T; t++) {
    float x[N];
    int32_t word = sample(x, t);
    must(tarn__ridge_add_rows(&sums[0], x, TARN__F32, 0, 1, &word));
    must(tarn__ridge_add_rows(&sums[t < T / 2 ? 1 : 2], x, TARN__F32, 0, 1, &word));
  }
  must(tarn__ridge_merge(&sums[1], &sums[2]));
  for (int k = 0; k < 2; k++) {
    double w[N * V], b[V], used;
    must(tarn__ridge_solve(w, b, &used, &sums[k], 0.5));
    assert_true(used == 0.5);
    for (int i = 0; i < N * V; i++) near(w[i], weights[i / V][i % V], 1e-14);
    for (int v = 0; v < V; v++) near(b[v], weights[N][v], 1e-14);
  }
  assert_int_equal(sums[1].count, T);
  for (int k = 0; k < 3; k++) tarn__ridge_close(&sums[k]);
}

// More inputs than a tile has, so that all parts of the kernels take part: a class is a row of zeros with a one.
static void a_class_is_a_row_with_a_one(void **state) {
  (void)state;
  enum { INPUTS = 151, WORDS = 7, SAMPLES = 1000 };
  tarn__ridge classes, rows;
  tarn__random random;
  tarn__random_init(&random, 3, 1);
  must(tarn__ridge_open_classes(&classes, &tarn__device_cpu, INPUTS, WORDS));
  must(tarn__ridge_open(&rows, &tarn__device_cpu, INPUTS, WORDS));
  for (int t = 0; t < SAMPLES; t++) {
    float x[INPUTS];
    double wide[INPUTS], y[WORDS] = {0};
    for (int i = 0; i < INPUTS; i++) wide[i] = x[i] = (float)tarn__random_normal(&random);
    int32_t word = (int32_t)tarn__random_below(&random, WORDS);
    y[word] = 1;
    must(tarn__ridge_add_rows(&classes, x, TARN__F32, 0, 1, &word));
    must(tarn__ridge_add(&rows, wide, y));
  }
  static double w[2][INPUTS * WORDS], b[2][WORDS];
  double used;
  must(tarn__ridge_solve(w[0], b[0], &used, &classes, 1));
  must(tarn__ridge_solve(w[1], b[1], &used, &rows, 1));
  for (int i = 0; i < INPUTS * WORDS; i++) near(w[0][i], w[1][i], 1e-13);
  for (int v = 0; v < WORDS; v++) near(b[0][v], b[1][v], 1e-13);
  tarn__ridge_close(&classes);
  tarn__ridge_close(&rows);
}

static void the_scale_is_the_likeliest(void **state) {
  (void)state;
  static const tarn__calibration expected[] = {{0.75, 1.279017777, 0.7556284012, 0.7556284012},
                                               {0.75, 1.159581265, 0.8848292005, 0.7571400117}};
  double gaps[T * V], shares[V] = {0}, log_shares[V];
  int32_t targets[T];
  for (int t = 0; t < T; t++) {
    float x[N];
    shares[targets[t] = sample(x, t)] += 1.0 / T;
  }
  for (int t = 0; t < T; t++)
    for (int v = 0; v < V; v++) {
      float x[N];
      sample(x, t);
      gaps[t * V + v] = weights[N][v] - shares[v];
      for (int i = 0; i < N; i++) gaps[t * V + v] += (double)x[i] * weights[i][v];
    }
  for (int v = 0; v < V; v++) log_shares[v] = log(fmax(shares[v], 0.5 / T));
  tarn__calibration_data data = {gaps, log_shares, targets, T, V, 0};
  for (int s = 0; s < 2; s++) {
    tarn__calibration found;
    data.smoothing = 0.1 * s;
    must(tarn__calibrate(&found, &data));
    near(found.power, expected[s].power, 0);
    near(found.scale, expected[s].scale, 1e-6);
    near(found.loss, expected[s].loss, 1e-9);
    near(found.nll, expected[s].nll, 1e-7);
  }
  // Outputs that are never wrong have no likeliest scale.
  tarn__calibration found;
  const double sure[] = {0.5, -0.5, -0.5, 0.5}, even[] = {log(0.5), log(0.5)};
  must(tarn__calibrate(&found, &(tarn__calibration_data){sure, even, (int32_t[]){0, 1}, 2, 2, 0}));
  assert_true(isfinite(found.loss) && found.scale <= 1e6);
  data.rows = 0;
  assert_int_equal(tarn__calibrate(&found, &data), TARN_STATUS_DATA);
  data.rows = T;
  gaps[3] = NAN;
  assert_int_equal(tarn__calibrate(&found, &data), TARN_STATUS_NUMERIC);
}

// --- runs
static const char config[] =
    "model: { d_model: 40, dropout: 0, embeddings: none, frozen_embeddings: decoder, output_bias: yes,\n"
    "         embedding_std: 1, embedding_scale: no, positions: none, max_length: 40 }\n"
    "decoder: { layers: E }\n"
    "kinds:\n"
    "  E: { mixer: esn, input: direct, residual: no, frozen: yes }\n"
    "data: { vocab: vocab, train: cycle, valid: cycle_valid }\n"
    "train: { optimiser: ridge, ridge: 0.001, max_tokens: 300, threads: 2, label_smoothing: 0 }\n";

static void prepare(const char *prefix) {
  tarn_prepare_options options;
  tarn_prepare_default(&options);
  options.vocab = "vocab";
  options.text = "lines";
  options.output = prefix;
  options.max_tokens = 20000;
  tarn_prepare_result result;
  must(tarn_prepare_run(&result, &options));
}

// A text in which every word but the first follows from the one before it.
static void write_cycles(const char *prefix, int sentences, int first) {
  char text[16384];
  int used = 0;
  for (int s = 0; s < sentences; s++) {
    int word = (s * 11 + first) % 40;
    for (int k = 0; k < 4 + s % 16; k++, word = (word * 3 + 1) % 40)
      used += sprintf(text + used, "%sw%d", k ? " " : "", 3 + word);
    text[used++] = '\n';
  }
  sandbox_write("lines", text, (size_t)used);
  prepare(prefix);
}

static int open_all(void **state) {
  if (tiny_open(state) != 0) return -1;
  write_cycles("cycle", 150, 0);
  write_cycles("cycle_valid", 30, 5);
  sandbox_write("ridge.yaml", config, strlen(config));
  return 0;
}

static json_t *record_of(const char *run, const char *kind) {
  char path[64];
  char *text;
  size_t size;
  snprintf(path, sizeof path, "%s/log.jsonl", run);
  must(tarn__file_read(path, &text, &size));
  json_t *found = NULL;
  for (char *line = strtok(text, "\n"); line && !found; line = strtok(NULL, "\n")) {
    json_t *record = json_loads(line, 0, NULL);
    if (strcmp(json_string_value(json_object_get(record, "kind")), kind) == 0) found = json_incref(record);
    json_decref(record);
  }
  tarn__free(text);
  assert_non_null(found);
  return found;
}

static double number_of(const json_t *record, const char *key) {
  return json_number_value(json_object_get(record, key));
}

// The states of all sentences by the reference kernels in double, and what regression on them gives.
static void regress(double *w, double *b, double *shares, const char *run, int64_t width) {
  tarn__checkpoint *c;
  tarn__shard shard;
  tarn__ridge sums;
  double used;
  must(tarn__checkpoint_open(&c, run, TARN__F64));
  must(tarn__shard_open(&shard, "cycle"));
  must(tarn__ridge_open(&sums, &tarn__device_cpu, width, TINY_VOCAB));
  memset(shares, 0, TINY_VOCAB * sizeof *shares);
  for (int64_t k = 0; k < shard.pairs; k++) {
    int32_t out[40], in[40], positions[40], offsets[2] = {0, (int32_t)tarn__shard_target_length(&shard, k)};
    tarn__shard_target(&shard, k, out);
    in[0] = 2;
    memcpy(in + 1, out, (size_t)(offsets[1] - 1) * sizeof *in);
    tarn__packed_positions(positions, offsets, 1);
    tarn__packed packed = {.sentences = 1,
                           .rows = offsets[1],
                           .longest = offsets[1],
                           .ids = in,
                           .positions = positions,
                           .offsets = offsets};
    tarn__graph graph = {0};
    tarn__graph_begin(&graph, &tarn__device_reference, TARN__F64, false, 1);
    tarn__tensor *states = tarn__model_build_states(c->model, &graph, &packed, NULL);
    must(tarn__graph_plan(&graph));
    void *room;
    must(tarn__alloc(&room, TARN__MEMORY_OTHER, graph.workspace_bytes, 1));
    tarn__graph_bind(&graph, room);
    tarn__exec exec = {.threads = 1};
    must(tarn__graph_run(&graph, &exec));
    for (int32_t i = 0; i < offsets[1]; i++) {
      double y[TINY_VOCAB] = {0};
      y[out[i]] = 1;
      shares[out[i]] += 1.0 / (double)shard.target_tokens;
      must(tarn__ridge_add(&sums, (const double *)states->data + i * width, y));
    }
    tarn__free(room);
    tarn__graph_close(&graph);
  }
  must(tarn__ridge_solve(w, b, &used, &sums, 0.001));
  for (int v = 0; v < TINY_VOCAB; v++) shares[v] = fmax(shares[v], 0.5 / (double)shard.target_tokens);
  tarn__ridge_close(&sums);
  tarn__shard_close(&shard);
  tarn__checkpoint_close(&c);
}

// W_out and b_out are log p + s (W h + b - p) / p^a of the regression on all sentences.
static void a_run_is_the_regression(void **state) {
  (void)state;
  enum { WIDTH = 40 };
  static double w[WIDTH * TINY_VOCAB], b[TINY_VOCAB], shares[TINY_VOCAB];
  must(tiny_train("ridge.yaml", "run", NULL, 0, NULL, NULL, NULL));
  json_t *record = record_of("run", "train");
  const double scale = number_of(record, "scale"), power = number_of(record, "power");
  assert_true(number_of(record, "ridge") == 0.001);
  assert_true(number_of(record, "held") > 0);
  json_decref(record);
  regress(w, b, shares, "run", WIDTH);
  tarn__checkpoint *c;
  must(tarn__checkpoint_open(&c, "run", TARN__F32));
  const float *table = c->model->weights.output_table->value, *bias = c->model->weights.output_bias->value;
  for (int v = 0; v < TINY_VOCAB; v++) {
    const double factor = scale * pow(shares[v], -power);
    const bool occurs = b[v] != 0;
    near((double)bias[v], log(shares[v]) + (occurs ? factor * (b[v] - shares[v]) : 0), 2e-3);
    for (int i = 0; i < WIDTH; i++) near((double)table[v * WIDTH + i], factor * w[i * TINY_VOCAB + v], 2e-3);
  }
  tarn__checkpoint_close(&c);
  // A word follows from the one before it, so most tokens are known: far from the 3.7 of 41 words.
  record = record_of("run", "valid");
  assert_true(number_of(record, "valid_nll") < 1.8);
  json_decref(record);
}

static void compare_checkpoints(const char *a, const char *b) {
  tarn__checkpoint *first, *second;
  must(tarn__checkpoint_open(&first, a, TARN__F32));
  must(tarn__checkpoint_open(&second, b, TARN__F32));
  for (size_t i = 0; i < first->model->param_count; i++) {
    const tarn__param *x = first->model->params[i], *y = second->model->params[i];
    assert_memory_equal(x->value, y->value, (size_t)(x->rows * x->cols) * sizeof(float));
  }
  tarn__checkpoint_close(&first);
  tarn__checkpoint_close(&second);
}

static void threads_and_pieces_change_no_bit(void **state) {
  (void)state;
  const char *one[] = {"train.threads=1", "train.ridge=0.001"};
  must(tiny_train("ridge.yaml", "one", one, 2, NULL, NULL, NULL));
  compare_checkpoints("run/checkpoint_best.safetensors", "one/checkpoint_best.safetensors");
  // Stopped before its pass, and after it.
  volatile sig_atomic_t stop = 1;
  assert_int_equal(tiny_train("ridge.yaml", "pieces", NULL, 0, NULL, NULL, &stop), TARN_STATUS_INTERRUPTED);
  must(tiny_train(NULL, "pieces", NULL, 0, NULL, NULL, NULL));
  must(tiny_train(NULL, "pieces", NULL, 0, NULL, NULL, NULL));
  compare_checkpoints("run/checkpoint_best.safetensors", "pieces/checkpoint_best.safetensors");
  compare_checkpoints("run/checkpoint_last.safetensors", "pieces/checkpoint_last.safetensors");
  char *text;
  size_t size;
  must(tarn__file_read("pieces/result.json", &text, &size));
  assert_non_null(strstr(text, "\"end\": \"pass\""));
  tarn__free(text);
}

// One of several seeds goes on with all of them. The pass is called by itself: a stop that is set before a run is
// found before the pass.
static void names_the_folder_of_all_seeds(void **state) {
  (void)state;
  volatile sig_atomic_t stop = 1;
  tarn_train_options options;
  tarn_train_default(&options);
  options.config = "ridge.yaml";
  options.run = "all/seed-1";
  options.folder = "all";
  options.stop = &stop;
  tarn_train *train;
  tarn__train_update_result result;
  must(tarn_train_open(&train, &options));
  assert_int_equal(tarn__features_make_update(&train->features, &result), TARN_STATUS_INTERRUPTED);
  assert_string_equal(strstr(tarn_error_message(), "anew with"), "anew with: tarn train --resume all");
  tarn_train_close(&train);
}

static void other_forms_run(void **state) {
  (void)state;
  // bf16; a limit of time, which ends the pass after its first batch; smoothing; no validation.
  const char *bf16[] = {"train.precision=bf16"};
  must(tiny_train("ridge.yaml", "bf16", bf16, 1, NULL, NULL, NULL));
  json_t *record = record_of("bf16", "valid");
  assert_true(number_of(record, "valid_nll") < 1.8);
  json_decref(record);
  const char *brief[] = {"train.max_minutes=0.0000001", "train.label_smoothing=0.1", "data.valid="};
  must(tiny_train("ridge.yaml", "brief", brief, 3, NULL, NULL, NULL));
  record = record_of("brief", "train");
  assert_true(number_of(record, "target_tokens") <= 300);
  assert_true(number_of(record, "epoch") < 1);
  assert_true(number_of(record, "loss") > number_of(record, "nll"));
  json_decref(record);
}

// Sentences that are longer than all that may be kept out: their beginnings are.
static void long_sentences_find_a_scale(void **state) {
  (void)state;
  enum { WORDS = TARN__READOUT_HELD + 500, SENTENCES = 2 };
  static char text[SENTENCES * (WORDS * 4 + 1)];
  int used = 0;
  for (int s = 0; s < SENTENCES; s++) {
    for (int w = 0; w < WORDS; w++) used += sprintf(text + used, "w%d ", 3 + (w + s) % 40);
    text[used++] = '\n';
  }
  sandbox_write("lines", text, (size_t)used);
  prepare("long");
  const char *set[] = {"data.train=long", "data.valid=", "model.max_length=20000", "train.max_tokens=20000",
                       "model.d_model=24"};
  must(tiny_train("ridge.yaml", "long_run", set, 5, NULL, NULL, NULL));
  json_t *record = record_of("long_run", "train");
  assert_int_equal(json_integer_value(json_object_get(record, "held")), TARN__READOUT_HELD);
  assert_true(number_of(record, "scale") > 1);
  assert_true(number_of(record, "nll") < 1);  // that of the words' shares is log 40 = 3.7
  json_decref(record);
}

static void refuses(void **state) {
  (void)state;
  static const struct {
    const char *set;
    const char *words;
  } cases[] = {
      {"train.lr=0.1", "train.lr: train.optimiser: ridge makes no steps"},
      {"train.warmup=0", "train.warmup: train.optimiser: ridge makes no steps"},
      {"train.schedule=cosine", "train.schedule: train.optimiser: ridge makes no steps"},
      {"train.clip_norm=1", "train.clip_norm"},
      {"train.freeze={ decoder: 3 }", "train.freeze"},
      {"train.ridge=-1", "train.ridge: -1 is out of range"},
      {"train.optimiser=adam", "train.ridge: only train.optimiser: ridge"},
      {"model.dropout=0.1", "model.embedding_dropout: it is 0.1"},
      {"kinds.E.dropout=0.2", "kinds.E.dropout: it is 0.2"},
      {"decoder.layerdrop=0.2", "decoder.layerdrop: it is 0.2"},
      {"model.output_bias=no", "model.output_bias: train.optimiser: ridge computes it"},
      {"model.output_rank=4", "model.output_rank: train.optimiser: ridge computes one matrix"},
      {"model.frozen_embeddings=none", "alone, but embeddings.input.weight is trained"},
      {"kinds.E.frozen=no", "alone, but decoder.layer1."},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    // A kind that is trained needs something to train.
    const char *set[] = {cases[i].set, "kinds.E.input=projection"};
    size_t count = strstr(cases[i].set, "kinds.E.frozen") ? 2 : 1;
    if (tiny_train("ridge.yaml", "refused", set, count, NULL, NULL, NULL) != TARN_STATUS_USAGE)
      fail_msg("%s is not refused", cases[i].set);
    if (!strstr(tarn_error_message(), cases[i].words)) fail_msg("%s: %s", cases[i].set, tarn_error_message());
    assert_false(tarn__file_exists("refused"));
  }
  const char *tied[] = {"model.embeddings=decoder", "model.frozen_embeddings=none"};
  assert_int_equal(tiny_train("ridge.yaml", "refused", tied, 2, NULL, NULL, NULL), TARN_STATUS_USAGE);
  assert_non_null(strstr(tarn_error_message(), "model.embeddings: train.optimiser: ridge computes the output layer"));
  const char *pairs[] = {"train.optimiser=ridge"};
  assert_int_equal(tiny_train("tiny.yaml", "refused", pairs, 1, NULL, NULL, NULL), TARN_STATUS_USAGE);
  assert_non_null(strstr(tarn_error_message(), "this is a translation model"));
  const char *wild[] = {"kinds.E.spectral_radius=900"};
  assert_int_equal(tiny_train("ridge.yaml", "wild", wild, 1, NULL, NULL, NULL), TARN_STATUS_NUMERIC);
  assert_non_null(strstr(tarn_error_message(), "spectral_radius is too large"));
}

static void plans(void **state) {
  (void)state;
  tarn_config *c;
  tarn_plan plan;
  must(tarn_config_read(&c, "ridge.yaml", NULL, 0));
  tarn_plan_options options = {.threads = 1};
  must(tarn_plan_make(&plan, c, &options));
  assert_true(plan.optimiser_bytes > tarn__ridge_bytes(&tarn__device_cpu, 40, TINY_VOCAB));
  tarn_plan_close(&plan);
  options.source_vocab = options.target_vocab = 20000;
  assert_int_equal(tarn_plan_make(&plan, c, &options), TARN_STATUS_USAGE);
  assert_non_null(strstr(tarn_error_message(), "vocabularies of at most 16384 tokens, not 20000"));
  tarn_plan_close(&plan);
  tarn_config_close(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(classes_are_those_of_numpy),
      cmocka_unit_test(a_class_is_a_row_with_a_one),
      cmocka_unit_test(the_scale_is_the_likeliest),
      cmocka_unit_test(a_run_is_the_regression),
      cmocka_unit_test(threads_and_pieces_change_no_bit),
      cmocka_unit_test(names_the_folder_of_all_seeds),
      cmocka_unit_test(other_forms_run),
      cmocka_unit_test(long_sentences_find_a_scale),
      cmocka_unit_test(refuses),
      cmocka_unit_test(plans),
  };
  return cmocka_run_group_tests(tests, open_all, sandbox_close);
}
