// Event files for TensorBoard, read back as their readers do: framing, checksums, Protocol Buffers.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glob.h>
#include <math.h>

#include "base/crc32c.h"
#include "base/file.h"
#include "base/memory.h"
#include "run/event_file.h"
#include "tiny_run.h"

// One scalar, or the start of a session (no name).
typedef struct scalar {
  int64_t step;
  char name[64];
  float value;
} scalar;

typedef struct scalars {
  scalar items[4096];
  size_t count;
  int files;
} scalars;

// A reader of Protocol Buffers: the next field of a message.
typedef struct fields {
  const uint8_t *at, *end;
} fields;

typedef struct field {
  int number, wire;
  uint64_t varint;
  const uint8_t *data;
  size_t size;
} field;

static uint64_t read_varint(fields *f) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    assert_true(f->at < f->end && shift < 64);
    value |= (uint64_t)(*f->at & 0x7F) << shift;
    if (!(*f->at++ & 0x80)) return value;
  }
}

static bool next_field(fields *f, field *out) {
  if (f->at == f->end) return false;
  uint64_t key = read_varint(f);
  *out = (field){.number = (int)(key >> 3), .wire = (int)(key & 7)};
  assert_true(out->wire == 0 || out->wire == 1 || out->wire == 2 || out->wire == 5);
  if (out->wire == 0) {
    out->varint = read_varint(f);
    return true;
  }
  out->size = out->wire == 1 ? 8 : out->wire == 5 ? 4 : (size_t)read_varint(f);
  assert_true(out->size <= (size_t)(f->end - f->at));
  out->data = f->at;
  f->at += out->size;
  return true;
}

// What values with metadata hold, for plugins of TensorBoard: all bytes one after the other.
typedef struct plugin_bytes {
  char data[1 << 16];
  size_t size;
} plugin_bytes;
static plugin_bytes plugins;

static bool is_plain(const field *value) {
  fields f = {value->data, value->data + value->size};
  field part;
  while (next_field(&f, &part))
    if (part.number == 9) return false;
  return true;
}

static void read_value(scalars *s, int64_t step, const field *value) {
  fields f = {value->data, value->data + value->size};
  field part;
  if (!is_plain(value)) {
    assert_true(plugins.size + value->size < sizeof plugins.data);
    memcpy(plugins.data + plugins.size, value->data, value->size);
    plugins.size += value->size;
    return;
  }
  scalar *out = &s->items[s->count++];
  assert_true(s->count < 4096);
  *out = (scalar){.step = step, .value = NAN};
  while (next_field(&f, &part)) {
    assert_true(part.number == 1 ? part.wire == 2 && part.size < sizeof out->name : part.number == 2 && part.wire == 5);
    memcpy(part.number == 1 ? (void *)out->name : (void *)&out->value, part.data, part.size);
  }
  assert_true(*out->name && !isnan(out->value));
}

static void read_event(scalars *s, const uint8_t *data, size_t size, size_t index) {
  fields f = {data, data + size};
  field part;
  field value;
  int64_t step = 0;
  double wall = 0;
  while (next_field(&f, &part)) {
    fields below = {part.data, part.data ? part.data + part.size : NULL};  // numbers have no bytes
    if (part.number == 1) memcpy(&wall, part.data, sizeof wall);
    if (part.number == 2) step = (int64_t)part.varint;
    if (part.number == 3) {
      assert_int_equal(index, 0);
      assert_int_equal(part.size, 13);
      assert_memory_equal(part.data, "brain.Event:2", 13);
    }
    if (part.number == 5)
      while (next_field(&below, &value)) read_value(s, step, &value);
    if (part.number == 7) {
      assert_true(next_field(&below, &value) && value.number == 1 && value.varint == 1);
      s->items[s->count++] = (scalar){.step = step};
    }
  }
  assert_true(wall > 1.5e9);
}

static void read_file(scalars *s, const char *path) {
  char *text;
  size_t size;
  assert_int_equal(tarn__file_read(path, &text, &size), TARN_STATUS_OK);
  const uint8_t *data = (const uint8_t *)text;
  size_t index = 0;
  for (size_t at = 0; at < size; index++) {
    uint64_t length;
    uint32_t sums[2];
    assert_true(size - at >= 16);
    memcpy(&length, data + at, 8);
    memcpy(&sums[0], data + at + 8, 4);
    assert_int_equal(sums[0], tarn__crc32c_masked(data + at, 8));
    assert_true(length <= size - at - 16);
    memcpy(&sums[1], data + at + 12 + length, 4);
    assert_int_equal(sums[1], tarn__crc32c_masked(data + at + 12, length));
    read_event(s, data + at + 12, length, index);
    at += 16 + length;
  }
  tarn__free(text);
}

// All event files of a run by name, as TensorBoard reads them: a session drops what came before from its step on.
static void read_run(scalars *s, const char *run) {
  char pattern[128];
  glob_t found;
  *s = (scalars){0};
  plugins.size = 0;
  snprintf(pattern, sizeof pattern, "%s/events.out.tfevents.*", run);
  assert_int_equal(glob(pattern, 0, NULL, &found), 0);
  s->files = (int)found.gl_pathc;
  for (size_t i = 0; i < found.gl_pathc; i++) read_file(s, found.gl_pathv[i]);
  globfree(&found);
  size_t kept = 0;
  for (size_t i = 0; i < s->count; i++) {
    if (*s->items[i].name) {
      s->items[kept++] = s->items[i];
      continue;
    }
    size_t before = kept;
    kept = 0;
    for (size_t k = 0; k < before; k++)
      if (s->items[k].step < s->items[i].step) s->items[kept++] = s->items[k];
  }
  s->count = kept;
}

static void sums_are_right(void **state) {
  (void)state;
  // RFC 3720, B.4.
  uint8_t data[32] = {0};
  assert_int_equal(tarn__crc32c(data, 32), 0x8A9136AAu);
  memset(data, 0xFF, 32);
  assert_int_equal(tarn__crc32c(data, 32), 0x62A8AB43u);
  for (int i = 0; i < 32; i++) data[i] = (uint8_t)i;
  assert_int_equal(tarn__crc32c(data, 32), 0x46DD794Eu);
  assert_int_equal(tarn__crc32c("123456789", 9), 0xE3069283u);
  assert_int_equal(tarn__crc32c(data, 0), 0);
}

static double find(const scalars *s, const char *name, int64_t step) {
  double value = NAN;
  for (size_t i = 0; i < s->count; i++) {
    if (strcmp(s->items[i].name, name) != 0 || s->items[i].step != step) continue;
    assert_true(isnan(value));  // once
    value = s->items[i].value;
  }
  return value;
}

static void records_become_scalars(void **state) {
  (void)state;
  static scalars s;
  tarn__event_file file;
  json_t *record = json_pack("{s:s, s:I, s:f, s:f, s:f, s:{s:f}, s:b, s:s}", "kind", "valid", "step",
                             (json_int_t)1234567890123, "time", 2.0, "valid_nll", 1.5, "valid_bleu", 30.25, "cosine",
                             "encoder 3 R", 0.5, "best", 1, "signature", "x");
  assert_int_equal(tarn__mkdir("one"), TARN_STATUS_OK);
  bool none;
  assert_int_equal(tarn__event_file_none(&none, "one"), TARN_STATUS_OK);
  assert_true(none);
  assert_int_equal(tarn__event_file_open(&file, "one", 0, NULL), TARN_STATUS_OK);
  assert_int_equal(tarn__event_file_add(&file, record), TARN_STATUS_OK);
  tarn__event_file_close(&file);
  json_object_set_new(record, "checkpoint", json_string("average"));
  assert_int_equal(tarn__event_file_open(&file, "one", 5, NULL), TARN_STATUS_OK);  // in the same second
  assert_int_equal(tarn__event_file_add(&file, record), TARN_STATUS_OK);
  assert_int_equal(json_object_del(record, "kind"), 0);
  assert_int_equal(tarn__event_file_add(&file, record), TARN_STATUS_DATA);
  tarn__event_file_close(&file);
  json_decref(record);
  read_run(&s, "one");
  assert_int_equal(s.files, 2);
  assert_true(find(&s, "average/bleu", 1234567890123) == 30.25);
  assert_true(isnan(find(&s, "valid/bleu", 1234567890123)));  // dropped
  assert_true(fabs(find(&s, "average/ppl", 1234567890123) - exp(1.5)) < 1e-5);
  assert_true(find(&s, "average/cosine/encoder 3 R", 1234567890123) == 0.5);
}

static size_t count_bytes(const char *part, size_t size) {
  size_t count = 0;
  for (size_t i = 0; i + size <= plugins.size; i++) count += memcmp(plugins.data + i, part, size) == 0;
  return count;
}

// A field of a hyper-parameter: a key, and a number (8 bytes), a word or yes and no.
static void has_hparam(const char *key, const void *value, size_t size) {
  char entry[256];
  const size_t length = strlen(key);
  entry[0] = 0x0A, entry[1] = (char)length;
  memcpy(entry + 2, key, length);
  entry[2 + length] = 0x12, entry[3 + length] = (char)size;
  memcpy(entry + 4 + length, value, size);
  if (count_bytes(entry, 4 + length + size) == 0) fail_msg("no hyper-parameter %s", key);
}

static void descriptions_reach_tensorboard(void **state) {
  (void)state;
  static scalars s;
  char number[9];
  tiny_files();
  assert_int_equal(tiny_train("tiny.yaml", "described", NULL, 0, NULL, NULL, NULL), TARN_STATUS_OK);
  read_run(&s, "described");
#define HAS(text) assert_int_equal(count_bytes(text, sizeof(text) - 1), 1)
  HAS("_hparams_/session_start_info");
  HAS("\x0A\x07hparams");
  HAS("description/text_summary");
  HAS("\x0A\x04text");
  HAS("\n    train:\n");  // as Markdown shows lines that stay as they are
  number[0] = 0x11;
  memcpy(number + 1, &(double){12}, 8);
  has_hparam("train.max_updates", number, 9);
  has_hparam("kinds.R.frozen", "\x20\x01", 2);
  has_hparam("kinds.L.mixer",
             "\x1A\x09"
             "attention",
             11);
  // A session that goes on says it again.
  const char *more[] = {"train.max_updates=14"};
  assert_int_equal(tiny_train(NULL, "described", more, 1, NULL, NULL, NULL), TARN_STATUS_OK);
  read_run(&s, "described");
  assert_int_equal(count_bytes("description/text_summary", 24), 2);
  memcpy(number + 1, &(double){14}, 8);
  has_hparam("train.max_updates", number, 9);
}

static volatile sig_atomic_t stop;

static void stop_at(void *user, const tarn_train_event *e) {
  if (e->kind == TARN_TRAIN_EVENT_UPDATE && e->update == *(const int64_t *)user) stop = 1;
}

static void same_scalars(const char *a, const char *b) {
  static scalars x;
  static scalars y;
  read_run(&x, a);
  read_run(&y, b);
  size_t compared = 0;
  for (size_t i = 0; i < x.count; i++) {
    const scalar *one = &x.items[i];
    double other = find(&y, one->name, one->step);
    if (strcmp(one->name, "train/tokens_per_second") == 0) continue;
    assert_true(other == (double)one->value);
    compared++;
  }
  assert_int_equal(x.count, y.count);
  assert_true(compared > 50);
}

static void resumed_runs_show_each_point_once(void **state) {
  (void)state;
  static scalars s;
  const char *no[] = {"train.tensorboard=no"};
  int64_t at = 7;
  tiny_files();
  assert_int_equal(tiny_train("tiny.yaml", "whole", NULL, 0, NULL, NULL, NULL), TARN_STATUS_OK);
  read_run(&s, "whole");
  assert_int_equal(s.files, 1);
  assert_false(isnan(find(&s, "train/loss", 2)) || isnan(find(&s, "valid/bleu", 12)) ||
               isnan(find(&s, "average/loss", 12)));
  stop = 0;
  assert_int_equal(tiny_train("tiny.yaml", "stopped", NULL, 0, stop_at, &at, &stop), TARN_STATUS_INTERRUPTED);
  assert_int_equal(tiny_train(NULL, "stopped", NULL, 0, NULL, NULL, NULL), TARN_STATUS_OK);
  same_scalars("whole", "stopped");
  // After a kill the run goes on from an older checkpoint.
  stop = 0;
  assert_int_equal(tiny_train("tiny.yaml", "killed", NULL, 0, stop_at, &at, &stop), TARN_STATUS_INTERRUPTED);
  assert_int_equal(system("cp killed/checkpoint_last.safetensors half.safetensors"), 0);
  assert_int_equal(tiny_train(NULL, "killed", NULL, 0, NULL, NULL, NULL), TARN_STATUS_OK);
  assert_int_equal(system("cp half.safetensors killed/checkpoint_last.safetensors"), 0);
  assert_int_equal(tiny_train(NULL, "killed", NULL, 0, NULL, NULL, NULL), TARN_STATUS_OK);
  same_scalars("whole", "killed");
  // Without event files the whole log is written again.
  assert_int_equal(system("rm killed/events.*; cp half.safetensors killed/checkpoint_last.safetensors"), 0);
  assert_int_equal(tiny_train(NULL, "killed", NULL, 0, NULL, NULL, NULL), TARN_STATUS_OK);
  same_scalars("whole", "killed");
  assert_int_equal(tiny_train("tiny.yaml", "silent", no, 1, NULL, NULL, NULL), TARN_STATUS_OK);
  assert_int_not_equal(system("ls silent/events.* 2>/dev/null"), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sums_are_right),
      cmocka_unit_test(records_become_scalars),
      cmocka_unit_test(descriptions_reach_tensorboard),
      cmocka_unit_test(resumed_runs_show_each_point_once),
  };
  return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
