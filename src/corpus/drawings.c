#include "tarn/lab/drawings.h"

#include <limits.h>
#include <stdio.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/work.h"
#include "corpus/strokes.h"

enum { MOST_IMAGES = 1000000, MOST_HELD_OUT = 100000, LEAST_SIZE = 16, MOST_SIZE = 128, STREAM = 0x64726177 };
enum { SPLITS = 3, IMAGES = 0, LABELS = 1 };

void tarn_drawings_default(tarn_drawings_options *options) {
  *options = (tarn_drawings_options){.seed = 1, .images = 20000, .held_out = 2000, .size = 28};
}

// The header of an IDX file (data/idx.h).
static tarn_status put_head(tarn__writer *file, int64_t count, int size) {
  const int64_t numbers[3] = {count, size, size};
  const int used = size > 0 ? 3 : 1;
  uint8_t bytes[16] = {0, 0, 0x08, (uint8_t)used};
  for (int i = 0; i < used; i++)
    for (int b = 0; b < 4; b++) bytes[4 + 4 * i + b] = (uint8_t)(numbers[i] >> (24 - 8 * b));
  return tarn__writer_put(file, bytes, (size_t)(4 + 4 * used));
}

static tarn_status open_split(tarn__writer *files[2], const tarn_drawings_options *o, const char *split) {
  static const char *const kinds[2] = {"images", "labels"};
  for (int k = 0; k < 2; k++) {
    char path[PATH_MAX];
    const int wanted = snprintf(path, sizeof path, "%s/%s-%s.idx", o->output, split, kinds[k]);
    TARN_REQUIRE(wanted < (int)sizeof path, IO, "%s: the path is too long", o->output);
    TARN_TRY(tarn__writer_open(&files[k], path));
  }
  return TARN_STATUS_OK;
}

typedef struct artist {
  tarn__random random;
  tarn__work work;
  uint8_t *pixels;
  int64_t drawn, wanted;
} artist;

static tarn_status put_split(artist *a, tarn__writer *files[2], const tarn_drawings_options *o, int64_t count) {
  const int classes = tarn__strokes_classes(o->what);
  TARN_TRY(put_head(files[IMAGES], count, o->size));
  TARN_TRY(put_head(files[LABELS], count, 0));
  for (int64_t i = 0; i < count; i++, a->drawn++) {
    const uint8_t label = (uint8_t)tarn__random_below(&a->random, (uint64_t)classes);
    tarn__strokes_draw(a->pixels, o->size, o->what, label, &a->random);
    TARN_TRY(tarn__writer_put(files[IMAGES], a->pixels, (size_t)o->size * (size_t)o->size));
    TARN_TRY(tarn__writer_put(files[LABELS], &label, 1));
    tarn__work_at(&a->work, (double)a->drawn, (double)a->drawn / (double)a->wanted);
  }
  return TARN_STATUS_OK;
}

static tarn_status write_splits(artist *a, tarn__writer *files[SPLITS][2], const tarn_drawings_options *o) {
  static const char *const names[SPLITS] = {"valid", "test", "train"};
  const int64_t counts[SPLITS] = {o->held_out, o->held_out, o->images};
  for (int s = 0; s < SPLITS; s++) TARN_TRY(open_split(files[s], o, names[s]));
  for (int s = 0; s < SPLITS; s++) TARN_TRY(put_split(a, files[s], o, counts[s]));
  // Everything is written before the first file is replaced: images and labels belong together.
  for (int s = 0; s < SPLITS; s++)
    for (int k = 0; k < 2; k++) TARN_TRY(tarn__writer_commit(&files[s][k]));
  return TARN_STATUS_OK;
}

static tarn_status write_all(artist *a, const tarn_drawings_options *o) {
  tarn__writer *files[SPLITS][2] = {{NULL}};
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)o->size, (size_t)o->size));
  a->pixels = memory;
  a->wanted = o->images + 2 * o->held_out;
  TARN_TRY(tarn__mkdir(o->output));
  tarn__work_begin(&a->work, "drawing", "images");
  const tarn_status status = write_splits(a, files, o);
  tarn__work_end(&a->work);
  for (int s = 0; s < SPLITS; s++)
    for (int k = 0; k < 2; k++) tarn__writer_abort(&files[s][k]);
  return status;
}

tarn_status tarn_drawings_write(const tarn_drawings_options *options) {
  const tarn_drawings_options *o = options;
  TARN_REQUIRE(o->output, USAGE, "an output folder is needed");
  TARN_REQUIRE((int)o->what == TARN_DRAWINGS_DIGITS || (int)o->what == TARN_DRAWINGS_SHAPES, USAGE,
               "there are no drawings of kind %d", (int)o->what);
  TARN_REQUIRE(o->images >= 1 && o->images <= MOST_IMAGES, USAGE, "the number of images is 1 to %d, not %lld",
               MOST_IMAGES, (long long)o->images);
  TARN_REQUIRE(o->held_out >= 1 && o->held_out <= MOST_HELD_OUT, USAGE,
               "the number of held-out images is 1 to %d, not %lld", MOST_HELD_OUT, (long long)o->held_out);
  TARN_REQUIRE(o->size >= LEAST_SIZE && o->size <= MOST_SIZE, USAGE, "images have %d to %d pixels a side, not %d",
               LEAST_SIZE, MOST_SIZE, o->size);
  artist a = {.drawn = 0};
  tarn__random_init(&a.random, o->seed, STREAM);
  const tarn_status status = write_all(&a, o);
  tarn__free(a.pixels);
  return status;
}
