// The functions around the work: process.h, output files of text.h, and work_queue.h.
#include <semaphore.h>

#include "api.h"
#include "golden/import_check.h"
#include "sandbox.h"
#include "tarn/checkpoint.h"
#include "tarn/process.h"
#include "tarn/text.h"
#include "tarn/work_queue.h"

// A sandbox with a vocabulary and the file "model" of a frozen and a trained layer.
static int open_all(void **state) {
  if (open_with_bytes(state, false) != 0) return -1;
  save_model("model", "model: { d_model: 16 }\ndecoder: { layers: R L }\n" KINDS, "bytes");
  sandbox_write("text", "one\ntwo\n", 8);
  return 0;
}

static void use_tarn_limits_default(void) {
  tarn_limits limits;
  memset(&limits, 0xff, sizeof limits);
  tarn_limits_default(&limits);
  assert_true(limits.max_operations == TARN_LIMITS_OPERATIONS && limits.max_memory == TARN_LIMITS_MEMORY);
  assert_null(limits.on_progress);
  assert_null(limits.user);
}

static void use_tarn_limits_set(void) {
  tarn_limits limits;
  works(tarn_checkpoint_export("dense", "model"));
  tarn_limits_default(&limits);
  limits.max_operations = 1;
  tarn_limits_set(&limits);
  refuses(tarn_checkpoint_export("never", "model"), TARN_STATUS_DATA,
          "model: computing its frozen weights again takes");
  limits.max_operations = 0;
  limits.max_memory = 1;
  tarn_limits_set(&limits);
  refuses(tarn_checkpoint_export("never", "model"), TARN_STATUS_MEMORY, "more than the 1 of --max-memory");
  limits.max_memory = 0;
  tarn_limits_set(&limits);
  works(tarn_checkpoint_export("dense", "model"));
  tarn_limits_default(&limits);
  tarn_limits_set(&limits);
  assert_int_not_equal(access("never", F_OK), 0);
}

static void use_tarn_device_set(void) {
  works(tarn_device_set("reference"));
  works(tarn_checkpoint_export("by-reference", "model"));
  works(tarn_device_set("cpu"));
  refuses(tarn_device_set("cpus"), TARN_STATUS_USAGE,
          "there is no device \"cpus\" in this program; did you mean \"cpu\"");
  refuses(tarn_device_set("quantum"), TARN_STATUS_USAGE, "there are cpu, cuda, reference");
  refuses(tarn_device_set(""), TARN_STATUS_USAGE, "there is no device \"\"");
  works(tarn_device_set(NULL));
}

static void use_tarn_device_name(void) {
  size_t count = 0;
  assert_string_equal(tarn_device_name(0), "cpu");
  for (const char *name; (name = tarn_device_name(count)); count++) {
    const tarn_status status = tarn_device_set(name);
    // A machine may have no card.
    if (strcmp(name, "cuda") != 0 || status != TARN_STATUS_UNSUPPORTED) works(status);
  }
  assert_null(tarn_device_name(SIZE_MAX));
  works(tarn_device_set(NULL));
}

typedef struct reports {
  int count;
  char what[32], unit[32];
  double done;
} reports;

static void take_report(void *user, const tarn_progress *progress) {
  reports *seen = user;
  seen->count++;
  seen->done = progress->done;
  snprintf(seen->what, sizeof seen->what, "%s", progress->what);
  snprintf(seen->unit, sizeof seen->unit, "%s", progress->unit);
}

static tarn_status drop(void *user, const tarn_vocab_ids *ids) {
  (void)user, (void)ids;
  return TARN_STATUS_OK;
}

static void use_tarn_progress_set(void) {
  tarn_vocab *vocab;
  int64_t replaced;
  reports seen = {0};
  works(tarn_vocab_open(&vocab, "bytes"));
  tarn_progress_set(take_report, &seen);
  works(tarn_vocab_encode_file(vocab, &replaced, "text", false, drop, NULL));
  assert_true(seen.count >= 2);
  assert_string_equal(seen.what, "encoding");
  assert_string_equal(seen.unit, "lines");
  const int before = seen.count;
  tarn_progress_set(NULL, NULL);
  works(tarn_vocab_encode_file(vocab, &replaced, "text", false, drop, NULL));
  assert_int_equal(seen.count, before);
  tarn_vocab_close(&vocab);
}

// Only the frozen layer is left, which is worth a warning.
static void use_tarn_log_set(void) {
  const tarn_prune prune = {.decoder_layers_to_keep = "1"};
  warning_count = 0;
  tarn_log_set(keep_warning, NULL);
  works(tarn_checkpoint_prune("pruned", "model", &prune));
  tarn_log_set(NULL, NULL);
  assert_int_equal(warning_count, 1);
  assert_string_equal(warnings, "no trained layer of the decoder is left");
  works(tarn_checkpoint_prune("pruned", "model", &prune));
  assert_int_equal(warning_count, 1);
}

static void use_tarn_mapped_fault(void) {
  tarn_checkpoint_info *info;
  size_t param = 0;
  const int here = 0;
  assert_false(tarn_mapped_fault(NULL));
  assert_false(tarn_mapped_fault(&here));
  works(tarn_checkpoint_info_open(&info, "model"));
  while (!tarn_checkpoint_info_mapped(info, param)) assert_true(++param < info->param_count);
  const float *mapped = tarn_checkpoint_info_mapped(info, param);
  const tarn_checkpoint_param *p = &info->params[param];
  assert_true(tarn_mapped_fault(mapped));
  // From here on the file is lost, and who reads it hears of that.
  float *room = calloc((size_t)(p->rows * p->cols), sizeof *room);
  assert_non_null(room);
  refuses(tarn_checkpoint_info_values(info, param, room), TARN_STATUS_IO,
          "model: it was cut off or overwritten while it was in use");
  free(room);
  tarn_checkpoint_info_close(&info);
  assert_false(tarn_mapped_fault(mapped));
}

static void holds(const char *path, const char *expected) {
  char text[64] = "";
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  assert_in_range(fread(text, 1, sizeof text - 1, file), 0, sizeof text - 1);
  fclose(file);
  assert_string_equal(text, expected);
}

static void use_tarn_output_file_open(void) {
  tarn_output_file *output;
  works(tarn_output_file_open(&output, "output"));
  assert_int_not_equal(access("output", F_OK), 0);
  fprintf(tarn_output_file_stream(output), "new\n");
  works(tarn_output_file_commit(&output));
  holds("output", "new\n");
  assert_int_equal(mkdir("folder", 0700), 0);
  static const struct {
    const char *path, *line;
  } bad[] = {{"folder", "folder: cannot write: is a folder"},
             {"missing/output", "missing/output: cannot write: No such file"},
             {"text/output", "text/output: cannot write: Not a directory"},
             {"", "cannot write"}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    refuses(tarn_output_file_open(&output, bad[i].path), TARN_STATUS_IO, bad[i].line);
    assert_null(output);
    tarn_output_file_abort(&output);
  }
}

static void use_tarn_output_file_stream(void) {
  tarn_output_file *output;
  works(tarn_output_file_open(&output, "stream"));
  assert_true(fputs("text", tarn_output_file_stream(output)) >= 0);
  works(tarn_output_file_commit(&output));
  holds("stream", "text");
}

static void use_tarn_output_file_temporary(void) {
  tarn_output_file *output;
  works(tarn_output_file_open(&output, "beside"));
  const char *temporary = tarn_output_file_temporary(output);
  assert_non_null(strstr(temporary, "beside.tmp."));
  assert_int_equal(access(temporary, F_OK), 0);
  tarn_output_file_abort(&output);
  works(tarn_output_file_open(&output, "/dev/null"));
  assert_null(tarn_output_file_temporary(output));
  tarn_output_file_abort(&output);
}

static void use_tarn_output_file_commit(void) {
  tarn_output_file *output;
  works(tarn_output_file_open(&output, "committed"));
  works(tarn_output_file_commit(&output));
  assert_null(output);
  holds("committed", "");
  // A device that is always full.
  works(tarn_output_file_open(&output, "/dev/full"));
  fprintf(tarn_output_file_stream(output), "lost");
  refuses(tarn_output_file_commit(&output), TARN_STATUS_IO, "/dev/full: cannot write: No space left on device");
  assert_null(output);
}

static void use_tarn_output_file_abort(void) {
  tarn_output_file *output = NULL;
  tarn_output_file_abort(&output);
  assert_null(output);
  sandbox_write("kept", "old", 3);
  works(tarn_output_file_open(&output, "kept"));
  fprintf(tarn_output_file_stream(output), "new");
  tarn_output_file_abort(&output);
  assert_null(output);
  tarn_output_file_abort(&output);
  holds("kept", "old");
}

// What the callbacks of a queue see; its thread waits for `go` before each batch, and tells when it begins.
typedef struct kitchen {
  sem_t begun, go;
  size_t items, batches;
} kitchen;

static void cook(void *user, void *const *items, size_t count) {
  kitchen *k = user;
  (void)items;
  sem_post(&k->begun);
  while (sem_wait(&k->go) != 0) continue;
  k->items += count;
  k->batches++;
}

static tarn_status no_model(void *user) {
  tarn_vocab *vocab;
  (void)user;
  return tarn_vocab_open(&vocab, "missing");
}

static tarn_work_queue *open_queue(kitchen *k, int64_t capacity) {
  tarn_work_queue *queue;
  tarn_work_queue_options options;
  tarn_work_queue_default(&options);
  *k = (kitchen){0};
  sem_init(&k->begun, 0, 0);
  sem_init(&k->go, 0, 0);
  options.work = cook;
  options.user = k;
  options.capacity = capacity;
  works(tarn_work_queue_open(&queue, &options));
  return queue;
}

// Adds an item, and returns when the queue's thread works on it.
static void add_first(tarn_work_queue *queue, kitchen *k) {
  assert_true(tarn_work_queue_add(queue, k, 1));
  while (sem_wait(&k->begun) != 0) continue;
}

static void close_queue(tarn_work_queue *queue, kitchen *k) {
  for (int i = 0; i < 10; i++) sem_post(&k->go);
  tarn_work_queue_close(&queue);
  assert_null(queue);
  sem_destroy(&k->begun);
  sem_destroy(&k->go);
}

static void use_tarn_work_queue_default(void) {
  tarn_work_queue_options options;
  memset(&options, 0xff, sizeof options);
  tarn_work_queue_default(&options);
  assert_true(!options.work && !options.start && !options.together && !options.user);
  assert_int_equal(options.capacity, 1024);
  assert_int_equal(options.max_cost, 16384);
  assert_int_equal(options.max_items, 256);
  assert_true(options.wait == 0.003);
}

static void refuses_queue(tarn_work_queue_options options, tarn_status status, const char *line) {
  tarn_work_queue *queue;
  refuses(tarn_work_queue_open(&queue, &options), status, line);
  assert_null(queue);
}

static void use_tarn_work_queue_open(void) {
  const tarn_status usage = TARN_STATUS_USAGE;
  kitchen k;
  close_queue(open_queue(&k, 1), &k);
  assert_int_equal(k.items, 0);
  tarn_work_queue_options good, o;
  tarn_work_queue_default(&good);
  refuses_queue(good, usage, "a queue needs a function `work`");
  good.work = cook;
  refuses_queue((o = good, o.capacity = 0, o), usage, "the capacity must be from 1 to 1000000, not 0");
  refuses_queue((o = good, o.capacity = 1000001, o), usage, "not 1000001");
  refuses_queue((o = good, o.max_cost = 0, o), usage, "the greatest cost of a batch must be 1 or more, not 0");
  refuses_queue((o = good, o.max_items = -1, o), usage, "the most items of a batch must be 1 or more, not -1");
  refuses_queue((o = good, o.wait = -0.5, o), usage, "a batch waits from 0 to 10 seconds, not -0.5");
  refuses_queue((o = good, o.wait = 11, o), usage, "a batch waits from 0 to 10 seconds, not 11");
  refuses_queue((o = good, o.start = no_model, o), TARN_STATUS_IO, "missing: there is no such file");
}

static void use_tarn_work_queue_add(void) {
  kitchen k;
  tarn_work_queue *queue = open_queue(&k, 2);
  add_first(queue, &k);
  assert_true(tarn_work_queue_add(queue, &k, 0));
  assert_true(tarn_work_queue_add(queue, NULL, INT64_MAX));
  assert_false(tarn_work_queue_add(queue, &k, 1));  // two are waiting
  tarn_work_queue_stop(queue);
  assert_false(tarn_work_queue_add(queue, &k, 1));
  close_queue(queue, &k);
  assert_int_equal(k.items, 3);
}

static void use_tarn_work_queue_waiting(void) {
  kitchen k;
  tarn_work_queue *queue = open_queue(&k, 2);
  assert_int_equal(tarn_work_queue_waiting(queue), 0);
  add_first(queue, &k);
  assert_int_equal(tarn_work_queue_waiting(queue), 0);
  assert_true(tarn_work_queue_add(queue, &k, 1));
  assert_int_equal(tarn_work_queue_waiting(queue), 1);
  close_queue(queue, &k);
}

// Items are numbers; even ones and odd ones do not go together. The first batch lets others join it.
typedef struct joining {
  tarn_work_queue *queue;
  kitchen k;
  intptr_t joined[8];
  size_t count;
} joining;

static bool both_even(void *user, const void *first, const void *item) {
  (void)user;
  return ((intptr_t)first & 1) == ((intptr_t)item & 1);
}

static void join_all(void *user, void *const *items, size_t count) {
  joining *j = user;
  cook(&j->k, items, count);
  for (void *item; j->k.batches == 1 && (item = tarn_work_queue_join(j->queue, items[0]));)
    j->joined[j->count++] = (intptr_t)item;
}

static void use_tarn_work_queue_join(void) {
  static const intptr_t given[] = {2, 4, 7, 6, 8, 10, 12};
  joining j = {.count = 0};
  tarn_work_queue_options options;
  tarn_work_queue_default(&options);
  sem_init(&j.k.begun, 0, 0);
  sem_init(&j.k.go, 0, 0);
  options.work = join_all;
  options.together = both_even;
  options.user = &j;
  options.max_items = 2;
  works(tarn_work_queue_open(&j.queue, &options));
  for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
    assert_true(tarn_work_queue_add(j.queue, (void *)given[i], 1));
    if (i == 0)
      while (sem_wait(&j.k.begun) != 0) continue;
  }
  close_queue(j.queue, &j.k);
  // 4 passes nobody; 6 and 8 pass 7, and no more may.
  assert_int_equal(j.count, 3);
  assert_true(j.joined[0] == 4 && j.joined[1] == 6 && j.joined[2] == 8);
  assert_int_equal(j.k.items, 4);  // 2; 7; 10 and 12
}

static void use_tarn_work_queue_stop(void) {
  kitchen k;
  tarn_work_queue *queue = open_queue(&k, 2);
  add_first(queue, &k);
  assert_true(tarn_work_queue_add(queue, &k, 1));
  tarn_work_queue_stop(queue);
  tarn_work_queue_stop(queue);
  assert_false(tarn_work_queue_add(queue, &k, 1));
  close_queue(queue, &k);
  assert_int_equal(k.items, 2);
}

static void use_tarn_work_queue_finish(void) {
  kitchen k;
  tarn_work_queue *queue = open_queue(&k, 2);
  sem_post(&k.go);
  assert_true(tarn_work_queue_add(queue, &k, 1));
  tarn_work_queue_finish(queue);
  assert_int_equal(k.items, 1);
  tarn_work_queue_finish(queue);
  assert_false(tarn_work_queue_add(queue, &k, 1));
  assert_int_equal(tarn_work_queue_waiting(queue), 0);
  close_queue(queue, &k);
}

static void use_tarn_work_queue_close(void) {
  kitchen k;
  tarn_work_queue *queue = NULL;
  tarn_work_queue_close(&queue);
  assert_null(queue);
  queue = open_queue(&k, 1);
  tarn_work_queue_close(&queue);
  assert_null(queue);
  tarn_work_queue_close(&queue);
  assert_null(queue);
  sem_destroy(&k.begun);
  sem_destroy(&k.go);
}

int main(void) {
  static const char *const headers[] = {"process.h", "text.h", "work_queue.h", NULL};
  static const api_use uses[] = {
      USE(tarn_limits_default),        USE(tarn_limits_set),         USE(tarn_device_set),
      USE(tarn_device_name),           USE(tarn_progress_set),       USE(tarn_log_set),
      USE(tarn_mapped_fault),          USE(tarn_output_file_open),   USE(tarn_output_file_stream),
      USE(tarn_output_file_temporary), USE(tarn_output_file_commit), USE(tarn_output_file_abort),
      USE(tarn_work_queue_default),    USE(tarn_work_queue_open),    USE(tarn_work_queue_add),
      USE(tarn_work_queue_waiting),    USE(tarn_work_queue_join),    USE(tarn_work_queue_stop),
      USE(tarn_work_queue_finish),     USE(tarn_work_queue_close),
  };
  return api_main(headers, uses, sizeof uses / sizeof *uses, open_all, sandbox_close);
}
