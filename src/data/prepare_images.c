#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/work.h"
#include "data/class_names.h"
#include "data/image_source.h"
#include "data/parts_writer.h"
#include "data/shard.h"
#include "data/shard_format.h"
#include "tarn/images.h"
#include "tarn/text.h"
#include "text/patches.h"

void tarn_images_default(tarn_images_options *options) { *options = (tarn_images_options){.channels = 0}; }

typedef struct task {
  const tarn_images_options *options;
  tarn_images_result *result;
  tarn_vocab *vocab;
  tarn__image_source source;
  tarn__class_names classes;
  tarn__parts_writer *writer;
  int32_t *labels;
  size_t labels_room;
  tarn__work work;
} task;

static tarn_status check_options(const tarn_images_options *o) {
  TARN_REQUIRE(o->images, USAGE, "images are needed");
  TARN_REQUIRE(o->output, USAGE, "an output prefix is needed");
  TARN_REQUIRE(o->channels == 0 || o->channels == 1 || o->channels == 3, USAGE,
               "images have 1 channel (grey) or 3 (colour), not %d", o->channels);
  return TARN_STATUS_OK;
}

static tarn_status take_classes(task *t) {
  tarn__shard shard;
  if (!t->options->labels_from) return TARN_STATUS_OK;
  TARN_TRY(tarn__shard_open(&shard, t->options->labels_from));
  tarn_status status = TARN_STATUS_OK;
  if (!shard.classes) status = tarn__fail(TARN_STATUS_DATA, "%s: its rows have no classes", shard.path);
  for (int32_t c = 0; c < shard.classes && status == TARN_STATUS_OK; c++)
    status = tarn__class_names_add(&t->classes, shard.names[c], strlen(shard.names[c]));
  status = tarn__shard_judge(&shard, status);
  tarn__shard_close(&shard);
  return status;
}

static tarn_status open_all(task *t) {
  const tarn_images_options *o = t->options;
  const tarn__image_options source = {.images = o->images,
                                      .labelled = true,
                                      .labels = o->labels,
                                      .table = o->table,
                                      .header = o->header,
                                      .delimiter = o->delimiter,
                                      .channels = o->channels};
  TARN_TRY(tarn_vocab_open(&t->vocab, TARN__PATCHES_NAME));
  TARN_TRY(tarn__image_source_open(&t->source, &source));
  TARN_TRY(take_classes(t));
  return tarn__parts_writer_open(&t->writer, o->output, NULL, t->vocab, TARN__SET_SENTENCES, INT64_MAX);
}

static tarn_status fail_class(const task *t) {
  const tarn__image_source *s = &t->source;
  char word[TARN__SHARD_NAME_LONGEST + 1];
  snprintf(word, sizeof word, "%.*s", (int)s->label_length, s->label);
  const char *nearest =
      tarn_text_nearest(word, (const char *const *)(const void *)t->classes.names, (size_t)t->classes.count);
  return tarn__fail(TARN_STATUS_DATA, "%s: image %lld: \"%s\" is none of the %d classes of %s%s \"%s\"", s->name,
                    (long long)s->number, word, t->classes.count, t->options->labels_from,
                    nearest ? "; the nearest is" : ", such as", nearest ? nearest : t->classes.names[0]);
}

static tarn_status put_label(task *t) {
  const tarn__image_source *s = &t->source;
  const size_t row = (size_t)t->result->images;
  TARN_TRY(tarn__grow(&t->labels, &t->labels_room, row + 1, sizeof *t->labels));
  t->labels[row] = tarn__class_names_find(&t->classes, s->label, s->label_length);
  if (t->labels[row] >= 0) return TARN_STATUS_OK;
  if (t->options->labels_from) return fail_class(t);
  t->labels[row] = t->classes.count;
  const tarn_status status = tarn__class_names_add(&t->classes, s->label, s->label_length);
  return status == TARN_STATUS_OK ? status : tarn__fail_prefix(status, "%s: ", s->name);
}

static tarn_status add_all(task *t) {
  tarn__image_source *s = &t->source;
  for (;;) {
    TARN_TRY(tarn__image_source_next(s));
    if (s->ended) return TARN_STATUS_OK;
    if (s->number == 1) tarn__parts_writer_images(t->writer, s->image.size);
    TARN_TRY(put_label(t));
    TARN_TRY(tarn__parts_writer_put_image(t->writer, s->image.pixels));
    t->result->images++;
    tarn__work_at(&t->work, (double)t->result->images, s->share);
  }
}

// Numbers the classes by their names, also in the labels, and counts the most frequent one.
static tarn_status number_classes(task *t) {
  tarn_images_result *r = t->result;
  void *memory;
  const size_t count = (size_t)t->classes.count;
  TARN_REQUIRE(count >= 2, DATA, "%s: all %lld labels are \"%s\", but there must be two classes at least",
               t->options->table ? t->options->table : t->options->images, (long long)r->images, t->classes.names[0]);
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, count, sizeof(int32_t) + sizeof(int64_t)));
  int64_t *of_class = memory;
  int32_t *rank = (int32_t *)(void *)(of_class + count);
  const tarn_status status = tarn__class_names_sort(&t->classes, rank);
  for (int64_t i = 0; i < r->images && status == TARN_STATUS_OK; i++) {
    t->labels[i] = rank[t->labels[i]];
    if (++of_class[t->labels[i]] > r->most) r->most = of_class[t->labels[i]];
  }
  r->classes = t->classes.count;
  tarn__free(memory);
  return status;
}

static tarn_status run(task *t) {
  tarn_images_result *r = t->result;
  TARN_TRY(open_all(t));
  TARN_TRY(add_all(t));
  TARN_REQUIRE(r->images > 0, DATA, "%s: it lists no images", t->options->table);
  TARN_TRY(number_classes(t));
  r->skipped = t->source.skipped;
  r->height = t->source.image.size.height;
  r->width = t->source.image.size.width;
  r->channels = t->source.image.size.channels;
  const tarn__shard_labels labels = {
      .names = (const char *const *)(const void *)t->classes.names, .classes = t->classes.count, .labels = t->labels};
  tarn__parts_writer_label(t->writer, &labels);
  return tarn__parts_writer_commit(&t->writer);
}

tarn_status tarn_images_prepare(tarn_images_result *result, const tarn_images_options *options) {
  *result = (tarn_images_result){0};
  TARN_TRY(check_options(options));
  task t = {.options = options, .result = result};
  tarn__work_begin(&t.work, "preparing", "images");
  const tarn_status status = run(&t);
  tarn__work_end(&t.work);
  tarn__parts_writer_abort(&t.writer);
  tarn__image_source_close(&t.source);
  tarn__class_names_close(&t.classes);
  tarn__free(t.labels);
  tarn_vocab_close(&t.vocab);
  return status;
}
