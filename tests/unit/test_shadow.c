// What runs on a device whose memory the host cannot touch has the bits that it has on the processor: trainings of all
// kinds of layers, whole, stopped and resumed, with validation, averaging and every way of freezing; translation,
// generation and scores. Whatever the host reads or writes behind the device's back ends the test with a fault.
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "same_run.h"
#include "shadow_device.h"
#include "tarn/lm.h"
#include "tarn/translate.h"

static void must(tarn_status status) {
  if (status != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

// The signal that ends a process which touches the memory; 0: none does.
static int signal_of(char *memory, bool write) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    signal(SIGSEGV, SIG_DFL);
    volatile char *at = memory;
    if (write)
      *at = 1;
    else
      (void)*at;
    _exit(0);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

// The proof that the other tests can fail.
static void host_access_faults(void **state) {
  (void)state;
  void *memory;
  float in[3] = {1, 2, 3}, out[3] = {0};
  must(tarn__device_allocate(&shadow_device, &memory, TARN__MEMORY_OTHER, 3, sizeof *in));
  assert_int_equal(signal_of(memory, false), SIGSEGV);
  assert_int_equal(signal_of(memory, true), SIGSEGV);
  must(tarn__device_put(&shadow_device, memory, in, sizeof in));
  must(tarn__device_get(&shadow_device, out, memory, sizeof out));
  assert_memory_equal(in, out, sizeof in);
  assert_int_equal(signal_of(memory, false), SIGSEGV);
  shadow_enter();
  assert_int_equal(signal_of(memory, true), 0);
  shadow_leave();
  assert_int_equal(signal_of(memory, true), SIGSEGV);
  tarn__device_free(&shadow_device, memory);
}

// A training on the processor and the same on the device: checkpoints and logs must agree, and all memory be given
// back. As a sample, every second one that stops and goes on does so.
static void assert_same_training(const char *name, const char *const *overrides, size_t count, int64_t pieces) {
  char cpu[64], apart[64];
  snprintf(cpu, sizeof cpu, "%s-cpu", name);
  snprintf(apart, sizeof apart, "%s-shadow", name);
  run_through(cpu, overrides, count);
  shadow.most = 0;
  shadow.sums = shadow.means = 0;
  tarn__device_use(&shadow_device);
  static int stopping;
  if (pieces > 0 && (getenv("TARN_SAMPLE") == NULL || stopping++ % 2 == 0))
    run_in_pieces(apart, pieces, overrides, count);
  else
    run_through(apart, overrides, count);
  tarn__device_use(NULL);
  assert_true(shadow.most > 0);
  assert_int_equal(shadow.now, 0);
  assert_true(shadow.means > 0);  // train.average: 2
  assert_int_equal(shadow.sums > 0, strcmp(name, "autofreeze") == 0);
  assert_same_run(cpu, apart);
}

typedef struct training {
  const char *name;
  const char *overrides[6];
  int64_t pieces;  // updates between a stop and the next; 0: in one go
} training;

static const training trainings[] = {
    {"plain", {NULL}, 0},
    {"resumed", {NULL}, 3},
    {"initialised", {"train.init_from=plain-cpu", NULL}, 0},
    {"feedback",
     {"encoder.layers=L R L R", "kinds.R.backskip={method: feedback, refresh: 4}", "train.precision=bf16", NULL},
     5},
    {"bf16", {"train.precision=bf16", NULL}, 5},
    {"moments", {"train.precision=bf16", "train.moments=bf16", NULL}, 5},
    {"at_once", {"train.clip_norm=0", "train.moments=fp8", "model.embeddings=none", NULL}, 5},
    {"bleu", {"valid.bleu=yes", "valid.metric=bleu", "train.accumulate=2", NULL}, 0},
    {"recomputed", {"train.recompute=block", "encoder.layerdrop=0.5", "model.positions=alibi", NULL}, 0},
    {"cached",
     {"train.cache_frozen=yes", "model.dropout=0", "model.embeddings=none", "model.frozen_embeddings=encoder", NULL},
     4},
    {"parts",
     {"encoder.layers=P R1 L1", "kinds.P={mixer: pooling, window: 3, ffn: 32}", "model.norm_type=rms",
      "model.positions=rotary", NULL},
     5},
    {"autofreeze", {"train.autofreeze=3", NULL}, 4},
    {"predictor", {"encoder.layers=L R L R", "kinds.R.backskip={method: predictor, refresh: 3}", NULL}, 4},
};

static void training_is_the_same(void **state) {
  const training *t = *state;
  size_t count = 0;
  while (t->overrides[count]) count++;
  assert_same_training(t->name, t->overrides, count, t->pieces);
}

// All kinds of caches that a language model keeps.
static const char text_config[] =
    "model: { d_model: 16, dropout: 0.2, output_bias: yes, max_length: 20 }\n"
    "decoder: { layers: L G C R }\n"
    "kinds:\n"
    "  L: { mixer: attention, heads: 2, ffn: 32 }\n"
    "  R: { mixer: attention, heads: 2, ffn: 32, frozen: yes, init: hadamard }\n"
    "  G: { mixer: gru, ffn: 0 }\n"
    "  C: { mixer: light_conv, heads: 2, kernel: 3, ffn: 32 }\n"
    "data: { vocab: vocab, train: text }\n"
    "train: { max_updates: 5, lr: 0.05, warmup: 2, max_tokens: 400, threads: 2 }\n";

// And the other parts, those without caches of their own among them.
static const char parts_config[] =
    "model: { d_model: 16, dropout: 0.2, norm_type: rms, positions: rotary, max_length: 20 }\n"
    "decoder: { layers: L P E T }\n"
    "kinds:\n"
    "  L: { mixer: attention, heads: 2, ffn: 32 }\n"
    "  P: { mixer: pooling, window: 3, ffn: 32 }\n"
    "  E: { mixer: esn, hidden: 24, ffn: 0 }\n"
    "  T: { mixer: lstm, ffn: 0 }\n"
    "data: { vocab: vocab, train: text }\n"
    "train: { max_updates: 5, lr: 0.05, warmup: 2, max_tokens: 400, threads: 2 }\n";

static const char *const lines[] = {"w3 w4 w5 w6",       "w3 w4 w9",          "w7 w8",
                                    "w10 w11 w12 w3 w3", "w10 w11 w12 w3 w4", "w59 w58 w57 w56 w55 w54 w3 w4 w5 w6"};
enum { LINES = sizeof lines / sizeof *lines };

static void lengths_of(size_t lengths[LINES]) {
  for (int i = 0; i < LINES; i++) lengths[i] = strlen(lines[i]);
}

static void translate(FILE *out, tarn_translate_precision precision) {
  tarn_translator_options options;
  tarn_translator_default(&options);
  options.beam = options.n_best = 4;
  options.precision = precision;
  tarn_translator *translator;
  tarn_translate_result results[LINES];
  size_t lengths[LINES];
  lengths_of(lengths);
  must(tarn_translator_open(&translator, "pairs-cpu", &options));
  must(tarn_translator_lines(translator, results, lines, lengths, LINES));
  for (int i = 0; i < LINES; i++)
    for (int64_t k = 0; k < results[i].count; k++)
      fprintf(out, "%s %a %a\n", results[i].hypotheses[k].text, results[i].hypotheses[k].log_probability,
              results[i].hypotheses[k].score);
  tarn_translator_close(&translator);
}

static void generate(FILE *out, const char *run, tarn_generator_method method, tarn_translate_precision precision) {
  tarn_generator_options options;
  tarn_generator_default(&options);
  options.method = method;
  options.precision = precision;
  options.max_tokens = 12;
  options.number = method == TARN_GENERATOR_METHOD_GREEDY ? 1 : 3;
  tarn_generator *generator;
  tarn_generator_result results[LINES];
  size_t lengths[LINES];
  lengths_of(lengths);
  must(tarn_generator_open(&generator, run, &options));
  must(tarn_generator_lines(generator, results, lines, lengths, LINES));
  for (int i = 0; i < LINES; i++)
    for (int64_t k = 0; k < results[i].count; k++) {
      const tarn_generator_text *text = &results[i].texts[k];
      for (int64_t t = 0; t < text->tokens; t++)
        fprintf(out, "%d %a ", text->ids[t], (double)text->log_probabilities[t]);
      fprintf(out, "%a\n", text->score);
    }
  tarn_generator_close(&generator);
}

static void score(FILE *out, const char *run, tarn_translate_precision precision) {
  tarn_lm_options options;
  tarn_lm_default(&options);
  options.precision = precision;
  tarn_lm *lm;
  tarn_lm_line scores[LINES];
  size_t lengths[LINES];
  lengths_of(lengths);
  must(tarn_lm_open(&lm, run, &options));
  must(tarn_lm_score(lm, scores, lines, lengths, LINES));
  for (int i = 0; i < LINES; i++)
    for (int64_t t = 0; t < scores[i].tokens; t++) fprintf(out, "%a ", scores[i].log_probabilities[t]);
  tarn_minimal_pairs_result *result;
  must(tarn_minimal_pairs_run(&result, lm, "minimal", NULL, NULL));
  fprintf(out, "%s %a\n", result->paradigms[0].answers, result->overall.accuracy);
  tarn_minimal_pairs_close(&result);
  tarn_lm_close(&lm);
}

// All that the models of the trainings are used for, as text.
static char *use_models(void) {
  static const char *const runs[] = {"text-cpu", "parts-text-cpu"};
  char *text;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  for (int p = 0; p < TARN_TRANSLATE_PRECISION_COUNT; p++) {
    translate(out, (tarn_translate_precision)p);
    for (size_t r = 0; r < sizeof runs / sizeof *runs; r++) {
      score(out, runs[r], (tarn_translate_precision)p);
      generate(out, runs[r], TARN_GENERATOR_METHOD_GREEDY, (tarn_translate_precision)p);
      generate(out, runs[r], TARN_GENERATOR_METHOD_BEAM, (tarn_translate_precision)p);
      generate(out, runs[r], TARN_GENERATOR_METHOD_SAMPLE, (tarn_translate_precision)p);
    }
  }
  fclose(out);
  return text;
}

static void use_is_the_same(void **state) {
  (void)state;
  static const char pairs[] =
      "{\"sentence_good\": \"w3 w4 w5\", \"sentence_bad\": \"w3 w4 w6\", \"field\": \"a\"}\n"
      "{\"sentence_good\": \"w9 w8\", \"sentence_bad\": \"w7 w8\", \"field\": \"a\"}\n";
  assert_int_equal(mkdir("minimal", 0777), 0);
  sandbox_write("minimal/one.jsonl", pairs, sizeof pairs - 1);
  run_through("pairs-cpu", NULL, 0);
  make_text_shard("text", 120, TINY_VOCAB, 5);
  sandbox_write("text.yaml", text_config, sizeof text_config - 1);
  must(tiny_train("text.yaml", "text-cpu", NULL, 0, NULL, NULL, NULL));
  sandbox_write("parts.yaml", parts_config, sizeof parts_config - 1);
  must(tiny_train("parts.yaml", "parts-text-cpu", NULL, 0, NULL, NULL, NULL));
  char *cpu = use_models();
  shadow.most = 0;
  tarn__device_use(&shadow_device);
  char *apart = use_models();
  tarn__device_use(NULL);
  assert_true(shadow.most > 0);
  assert_int_equal(shadow.now, 0);
  assert_true(strlen(cpu) > 5000);
  assert_string_equal(cpu, apart);
  free(cpu);
  free(apart);
}

// The rows lie in the memory of the device, and their classes in the host's. The first 80 are of the second sum.
static void add_classes(tarn__ridge sums[2], const tarn__device *device, const float *rows, const int32_t *words,
                        int64_t n, int64_t count) {
  void *there;
  const size_t bytes = (size_t)(n * count) * sizeof *rows;
  must(tarn__device_allocate(device, &there, TARN__MEMORY_OTHER, bytes, 1));
  must(tarn__device_put(device, there, rows, bytes));
  must(tarn__ridge_add_rows(&sums[1], there, TARN__F32, 0, 3, words));
  must(tarn__ridge_add_rows(&sums[1], there, TARN__F32, 3, 77, words + 3));
  must(tarn__ridge_add_rows(&sums[0], there, TARN__F32, 80, count - 80, words + 80));
  tarn__device_free(device, there);
}

// Ridge regression of values and of classes, of two sums that are merged: the bits of the processor's, and near those
// of the reference.
static void ridge_is_the_same(void **state) {
  (void)state;
  enum { N = 21, M = 3, T = 150, DEVICES = 3 };
  static const tarn__device *const on[DEVICES] = {&tarn__device_cpu, &shadow_device, &tarn__device_reference};
  for (int classes = 0; classes < 2; classes++) {
    static float rows[T][N];
    int32_t words[T];
    double w[DEVICES][N * M], b[DEVICES][M], used;
    for (int d = 0; d < DEVICES; d++) {
      tarn__ridge sums[2];
      for (int k = 0; k < 2; k++)
        must(classes ? tarn__ridge_open_classes(&sums[k], on[d], N, M) : tarn__ridge_open(&sums[k], on[d], N, M));
      for (int t = 0; t < T; t++) {
        float x[N];
        double wide[N], y[M];
        for (int i = 0; i < N; i++) wide[i] = x[i] = (float)sin(1.0 + t * (i + 1.3) + i * i);
        for (int o = 0; o < M; o++) y[o] = cos(t * (o + 0.7));
        if (!classes) must(tarn__ridge_add(&sums[t < 80], wide, y));
        memcpy(rows[t], x, sizeof x);
        words[t] = t * 7 % M;
      }
      if (classes) add_classes(sums, on[d], rows[0], words, N, T);
      must(tarn__ridge_merge(&sums[0], &sums[1]));
      must(tarn__ridge_solve(w[d], b[d], &used, &sums[0], 0.1));
      assert_true(used == 0.1);
      for (int k = 0; k < 2; k++) tarn__ridge_close(&sums[k]);
    }
    assert_memory_equal(w[0], w[1], sizeof w[0]);
    assert_memory_equal(b[0], b[1], sizeof b[0]);
    for (int i = 0; i < N * M; i++) assert_true(fabs(w[0][i] - w[2][i]) < 1e-10);
    for (int o = 0; o < M; o++) assert_true(fabs(b[0][o] - b[2][o]) < 1e-10);
  }
  assert_int_equal(shadow.now, 0);
}

// One pass over a text, whose states are summed and solved for on the device.
static const char ridge_config[] =
    "model: { d_model: 16, embeddings: none, dropout: 0, output_bias: yes, frozen_embeddings: decoder }\n"
    "decoder: { layers: R }\n"
    "kinds: { R: { mixer: esn, sparsity: 0.5, ffn: 0, norm: none, frozen: yes } }\n"
    "data: { vocab: vocab, train: ridge_text, valid: ridge_text }\n"
    "train: { optimiser: ridge, max_tokens: 200, threads: 2 }\n";

static void ridge_training_is_the_same(void **state) {
  (void)state;
  static const char *const runs[] = {"ridge-cpu", "ridge-shadow"};
  static const char *const precisions[] = {"train.precision=fp32", "train.precision=bf16"};
  make_text_shard("ridge_text", 120, TINY_VOCAB, 7);
  sandbox_write("ridge.yaml", ridge_config, strlen(ridge_config));
  for (size_t p = 0; p < 2; p++) {
    char names[2][32];
    for (int apart = 0; apart < 2; apart++) {
      snprintf(names[apart], sizeof names[apart], "%s-%zu", runs[apart], p);
      shadow.most = 0;
      shadow.taken = 0;
      tarn__device_use(apart ? &shadow_device : NULL);
      must(tiny_train("ridge.yaml", names[apart], &precisions[p], 1, NULL, NULL, NULL));
      tarn__device_use(NULL);
      assert_int_equal(shadow.most > 0, apart);
      assert_int_equal(shadow.taken > 0, apart);
      assert_int_equal(shadow.now, 0);
    }
    assert_same_tensors(names[0], names[1], TARN__CHECKPOINT_LAST);
  }
}

// What a kernel is told by an address would not reach the device.
static void addresses_in_attributes_are_found(void **state) {
  (void)state;
  if (!SHADOW_TELLS_ADDRESSES) skip();
  static const double number = 0.5;
  static const tarn__op op = {.id = TARN__OP_ADD, .name = "told"};
  struct {
    double scale;
    int32_t rows, cols;
    const double *at;
  } attr = {1.0 / 3, 17, 4096, NULL};
  const tarn__node node = {.op = &op, .attr = &attr, .attr_bytes = sizeof attr};
  must(shadow_check_attributes(&node));
  attr.at = &number;
  assert_int_equal(shadow_check_attributes(&node), TARN_STATUS_INTERNAL);
}

// Each of the two matrices takes 17 MB.
static const char wide_config[] =
    "model: { d_model: 512, dropout: 0 }\n"
    "decoder: { layers: W }\n"
    "kinds: { W: { mixer: none, ffn: 8192 } }\n"
    "data: { vocab: vocab, train: wide_text }\n"
    "train: { max_updates: 2, max_tokens: 200, threads: 2, save_every: 1, keep_last: 2 }\n";

// Whatever goes between files and the device does so in pieces: no second copy of a model, nor of its largest matrix,
// which no plan counts. It comes first, because the most that was ever taken is what is looked at, and trains in a
// process of its own, because first values are made by the host.
static void files_come_and_go_in_pieces(void **state) {
  (void)state;
  make_text_shard("wide_text", 20, TINY_VOCAB, 5);
  sandbox_write("wide.yaml", wide_config, sizeof wide_config - 1);
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) _exit(tiny_train("wide.yaml", "wide", NULL, 0, NULL, NULL, NULL) == TARN_STATUS_OK ? 0 : 1);
  int status = 1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  static const char *const files[] = {"wide/checkpoint_1.safetensors", "wide/checkpoint_2.safetensors"};
  tarn__device_use(&shadow_device);
  must(tarn__checkpoint_average("wide.mean", files, 2, &shadow_device, NULL, 0));
  tarn__checkpoint *checkpoint;
  must(tarn__checkpoint_open(&checkpoint, "wide.mean", TARN__BF16));
  tarn__checkpoint_close(&checkpoint);
  tarn_train_options options;
  tarn_train_default(&options);
  options.run = "wide";
  options.resume = true;
  tarn_train *train;
  must(tarn_train_open(&train, &options));
  tarn_train_close(&train);
  tarn__device_use(NULL);
  assert_int_equal(shadow.now, 0);
  const size_t most = tarn__memory_peak(TARN__MEMORY_OTHER);
  if (most >= 12000000) fail_msg("the host took %zu bytes beside", most);
}

// A device that answers at once and fails later: the processor, of whose updates the third fails.
static int updates_left;

static tarn_status lose(const tarn__device *device, tarn__device_stream *stream, void *to, const void *from,
                        size_t bytes) {
  if (bytes == sizeof(tarn__step_numbers) && --updates_left == 0)
    return tarn__fail(TARN_STATUS_IO, "the device is lost");
  return tarn__device_cpu.type->copy_out(device, stream, to, from, bytes);
}

static tarn_status no_pack(const tarn__device *device, void *packed, const tarn__device_weight *weight, int threads) {
  (void)device;
  (void)packed;
  (void)weight;
  (void)threads;
  return tarn__fail(TARN_STATUS_IO, "the device is lost");
}

static void lose_third_update(const tarn__device *device, const char *run, const char *clip_norm) {
  updates_left = 3;
  tarn_train_options options;
  tarn_train_default(&options);
  options.config = "tiny.yaml";
  options.run = run;
  options.overrides = &clip_norm;
  options.override_count = 1;
  tarn_train *train;
  tarn_train_result result;
  tarn__device_use(device);
  must(tarn_train_open(&train, &options));
  assert_int_equal(tarn_train_run(train, &result), TARN_STATUS_IO);
  assert_non_null(strstr(tarn_error_message(), "the device is lost"));
  const int64_t updates = tarn_train_update(train);
  tarn_train_close(&train);
  assert_int_equal(updates, 2);
}

// Whether updates come at the end or at once.
static void what_a_device_loses_is_told(void **state) {
  (void)state;
  tarn__device_type type = *tarn__device_cpu.type;
  const tarn__device device = {.type = &type, .name = "weak"};
  type.copy_out = lose;
  sandbox_write("tiny.yaml", tiny_config, strlen(tiny_config));
  lose_third_update(&device, "lost", "train.clip_norm=1");
  lose_third_update(&device, "lost-at-once", "train.clip_norm=0");
  type = *tarn__device_cpu.type;
  type.pack = no_pack;
  tarn_translator *translator;
  tarn_translator_options translating;
  tarn_translator_default(&translating);
  assert_int_equal(tarn_translator_open(&translator, "plain-cpu", &translating), TARN_STATUS_IO);
  assert_non_null(strstr(tarn_error_message(), "the device is lost"));
  tarn__device_use(NULL);
}

static int open_sandbox(void **state) {
  if (tiny_open(state) != 0) return -1;
  return 0;
}

int main(void) {
  enum { TRAININGS = sizeof trainings / sizeof *trainings };
  struct CMUnitTest tests[TRAININGS + 7] = {
      cmocka_unit_test(files_come_and_go_in_pieces), cmocka_unit_test(addresses_in_attributes_are_found),
      cmocka_unit_test(host_access_faults),          cmocka_unit_test(use_is_the_same),
      cmocka_unit_test(ridge_is_the_same),           cmocka_unit_test(ridge_training_is_the_same)};
  for (int i = 0; i < TRAININGS; i++)
    tests[6 + i] =
        (struct CMUnitTest){trainings[i].name, training_is_the_same, NULL, NULL, (void *)(uintptr_t)&trainings[i]};
  tests[6 + TRAININGS] = (struct CMUnitTest)cmocka_unit_test(what_a_device_loses_is_told);
  return cmocka_run_group_tests(tests, open_sandbox, sandbox_close);
}
