// Images: how they are cut, their shards and batches, and that drawn ones are the same everywhere.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the three above.
#include <cmocka.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "data/batch.h"
#include "data/shard_format.h"
#include "data/shard_sections.h"
#include "data/shard_writer.h"
#include "sandbox.h"
#include "tarn/lab/drawings.h"
#include "text/patches.h"

static void must(tarn_status status) {
  if (status != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

enum { HEIGHT = 4, WIDTH = 6, BYTES = HEIGHT * WIDTH * 3, IMAGES = 7 };
static const tarn__image_size size = {HEIGHT, WIDTH, 3};

// Byte of image i at y, x, c.
static uint8_t byte_at(int64_t i, int y, int x, int c) { return (uint8_t)(i * 31 + y * 40 + x * 5 + c); }

static void fill(uint8_t *pixels, int64_t i) {
  for (int y = 0; y < HEIGHT; y++)
    for (int x = 0; x < WIDTH; x++)
      for (int c = 0; c < 3; c++) *pixels++ = byte_at(i, y, x, c);
}

// The patch in row p of the second dimension of patches: [channels, patch, patch].
static void check_patch(const uint8_t *patch, int64_t image, int p) {
  for (int c = 0; c < 3; c++)
    for (int y = 0; y < 2; y++)
      for (int x = 0; x < 2; x++) assert_int_equal(*patch++, byte_at(image, p / 3 * 2 + y, p % 3 * 2 + x, c));
}

static void cut(void **state) {
  (void)state;
  uint8_t image[BYTES], patches[BYTES];
  fill(image, 2);
  assert_int_equal(tarn__image_patches(size, 2), 6);
  assert_int_equal(tarn__patch_bytes(size, 2), 12);
  tarn__image_cut(patches, image, size, 2);
  for (int p = 0; p < 6; p++) check_patch(patches + (ptrdiff_t)p * 12, 2, p);
}

static void sizes(void **state) {
  (void)state;
  assert_true(tarn__image_size_fits(1, 1, 1) && tarn__image_size_fits(8192, 682, 3));
  assert_true(tarn__image_size_fits(8192, 2048, 1) && tarn__image_size_fits(2048, 8192, 1));
  assert_false(tarn__image_size_fits(8192, 2049, 1) || tarn__image_size_fits(8192, 683, 3));
  assert_false(tarn__image_size_fits(8193, 1, 1) || tarn__image_size_fits(1, 8193, 1));
  assert_false(tarn__image_size_fits(0, 1, 1) || tarn__image_size_fits(1, -1, 1));
  assert_false(tarn__image_size_fits(INT64_MAX, INT64_MAX, 3));
  assert_false(tarn__image_size_fits(1, 1, 2) || tarn__image_size_fits(1, 1, 0));
}

static void write_shard(void) {
  static const char *const names[] = {"a", "b", "c"};
  static const int32_t labels[IMAGES] = {0, 1, 2, 0, 1, 2, 0};
  const tarn__shard_labels l = {.names = names, .classes = 3, .labels = labels};
  tarn__shard_writer *writer;
  tarn_vocab *vocab;
  uint8_t image[BYTES];
  must(tarn_vocab_open(&vocab, TARN__PATCHES_NAME));
  assert_int_equal(tarn_vocab_size(vocab), TARN__PATCH_TOKENS);
  assert_string_equal(tarn_vocab_kind(vocab), "patches");
  assert_string_equal(tarn_vocab_piece(vocab, TARN__PATCH_CLS), "<cls>");
  must(tarn__shard_writer_open(&writer, "images", NULL, vocab));
  tarn__shard_writer_images(writer, size);
  for (int i = 0; i < IMAGES; i++) {
    fill(image, i);
    must(tarn__shard_writer_put_image(writer, image));
  }
  tarn__shard_writer_label(writer, &l);
  must(tarn__shard_writer_commit(&writer));
  tarn_vocab_close(&vocab);
}

static void batches(void **state) {
  (void)state;
  tarn__shard shard;
  tarn__batcher *batcher;
  tarn__batch batch;
  bool seen[IMAGES] = {false};
  write_shard();
  must(tarn__shard_open(&shard, "images"));
  assert_int_equal(shard.pairs, IMAGES);
  assert_int_equal(shard.target_tokens, IMAGES * BYTES);
  tarn__shard_cut(&shard, 2);
  assert_int_equal(shard.target_tokens, IMAGES * 6);
  tarn__batcher_options options;
  tarn__batcher_default(&options);
  options.rows = TARN__ROWS_WHOLE;
  options.first = TARN__PATCH_CLS;
  options.max_tokens = 15;  // two images of a class token and six patches
  must(tarn__batcher_open(&batcher, &shard, &options));
  assert_int_equal(tarn__batcher_batches(batcher), 4);
  for (int b = 0; b < 4; b++) {
    tarn__batcher_next(batcher, &batch);
    const uint8_t *pixels = (const uint8_t *)batch.target.pixels;
    assert_int_equal(batch.target.rows, batch.target.sentences * 7);
    for (int64_t s = 0; s < batch.target.sentences; s++) {
      const int64_t row = batch.target.offsets[s], image = batch.index[s];
      assert_false(seen[image]);
      seen[image] = true;
      assert_int_equal(batch.target.ids[row], TARN__PATCH_CLS);
      for (int i = 0; i < 12; i++) assert_int_equal(pixels[row * 12 + i], 0);
      for (int p = 0; p < 6; p++) {
        assert_int_equal(batch.target.ids[row + 1 + p], TARN__PATCH);
        check_patch(pixels + (row + 1 + p) * 12, image, p);
      }
    }
  }
  tarn__batcher_close(&batcher);
  tarn__shard_close(&shard);
}

// A whole image as its only patch has rows of one token.
static void single_patches(void **state) {
  (void)state;
  static const tarn__image_size square = {4, 4, 1};
  static const char *const names[] = {"a", "b"};
  static const int32_t labels[3] = {0, 1, 0};
  const tarn__shard_labels l = {.names = names, .classes = 2, .labels = labels};
  tarn__shard shard;
  tarn__shard_writer *writer;
  tarn__batcher *batcher;
  tarn__batch batch;
  tarn_vocab *vocab;
  const uint8_t image[16] = {1, 2, 3};
  must(tarn_vocab_open(&vocab, TARN__PATCHES_NAME));
  must(tarn__shard_writer_open(&writer, "square", NULL, vocab));
  tarn__shard_writer_images(writer, square);
  for (int i = 0; i < 3; i++) must(tarn__shard_writer_put_image(writer, image));
  tarn__shard_writer_label(writer, &l);
  must(tarn__shard_writer_commit(&writer));
  tarn_vocab_close(&vocab);
  must(tarn__shard_open(&shard, "square"));
  tarn__shard_cut(&shard, 4);
  tarn__batcher_options options;
  tarn__batcher_default(&options);
  options.rows = TARN__ROWS_WHOLE;
  must(tarn__batcher_open(&batcher, &shard, &options));
  tarn__batcher_next(batcher, &batch);
  assert_int_equal(batch.target.sentences, 3);
  assert_int_equal(batch.target.rows, 3);
  tarn__batcher_close(&batcher);
  tarn__shard_close(&shard);
}

// Writes the shard with other values in its headers and right hashes, and expects a line about it.
static void refuse(const char *line, void (*change)(tarn__shard_header *, tarn__shard_rows *)) {
  char *bytes;
  size_t count;
  tarn__shard shard;
  must(tarn__file_read("images.tarn", &bytes, &count));
  tarn__shard_header header;
  tarn__shard_rows rows;
  memcpy(&header, bytes, sizeof header);
  memcpy(&rows, bytes + sizeof header, sizeof rows);
  change(&header, &rows);
  tarn__shard_seal(&header, &rows);
  memcpy(bytes, &header, sizeof header);
  memcpy(bytes + sizeof header, &rows, sizeof rows);
  must(tarn__file_write("damaged.tarn", bytes, count));
  tarn__free(bytes);
  assert_int_equal(tarn__shard_open(&shard, "damaged"), TARN_STATUS_DATA);
  if (!strstr(tarn_error_message(), line)) fail_msg("no \"%s\" in: %s", line, tarn_error_message());
}

static void taller(tarn__shard_header *header, tarn__shard_rows *rows) {
  (void)header;
  rows->height = HEIGHT * 2;
}
static void negative(tarn__shard_header *header, tarn__shard_rows *rows) {
  (void)header;
  rows->width = -WIDTH;
}
static void huge(tarn__shard_header *header, tarn__shard_rows *rows) {
  (void)header;
  rows->height = rows->width = INT32_MAX;
}
// A side that no description may say, so that no model of such images could be opened again.
static void high(tarn__shard_header *header, tarn__shard_rows *rows) {
  (void)header;
  rows->height = TARN__IMAGE_SIDE + 1;
}
static void two_channels(tarn__shard_header *header, tarn__shard_rows *rows) {
  (void)header;
  rows->channels = 2;
}
static void sentences(tarn__shard_header *header, tarn__shard_rows *rows) {
  (void)header;
  rows->flags = TARN__SHARD_CLASSES;
}
static void windows(tarn__shard_header *header, tarn__shard_rows *rows) {
  (void)header;
  rows->flags |= TARN__SHARD_CONTINUES;
}
static void older(tarn__shard_header *header, tarn__shard_rows *rows) {
  (void)rows;
  header->version = TARN__SHARD_VERSION_ROWS;
}
static void wide_ids(tarn__shard_header *header, tarn__shard_rows *rows) {
  (void)rows;
  header->id_bytes = 2;
}

static void damaged(void **state) {
  (void)state;
  write_shard();
  refuse("image 0 has 72 bytes", taller);
  refuse("images of 4 x -6 pixels", negative);
  refuse("images of 2147483647 x 2147483647 pixels", huge);
  refuse("images of 8193 x 6 pixels", high);
  refuse("with 2 channels", two_channels);
  refuse("flags 2 of 1 sides", sentences);
  refuse("flags 67 of 1 sides", windows);
  refuse("ids of 1 bytes", older);
  refuse("ids of 2 bytes", wide_ids);
}

static void hash_file(char text[TARN__HASH_TEXT], const char *path) {
  char *bytes;
  size_t count;
  must(tarn__file_read(path, &bytes, &count));
  tarn__hash(text, bytes, count);
  tarn__free(bytes);
}

static void drawings(void **state) {
  (void)state;
  static const char *const wanted[2] = {"c6d5cf5bb72ce06c757b5526770c4efe", "af76532462b9ccd909cdf47c48d6547d"};
  for (int what = 0; what < 2; what++) {
    char text[TARN__HASH_TEXT];
    tarn_drawings_options options;
    tarn_drawings_default(&options);
    options.output = "drawn";
    options.what = (tarn_drawings_what)what;
    options.images = 50;
    options.held_out = 1;
    must(tarn_drawings_write(&options));
    hash_file(text, "drawn/train-images.idx");
    assert_string_equal(text, wanted[what]);
  }
  tarn_drawings_options options;
  tarn_drawings_default(&options);
  options.output = "drawn";
  options.size = 8;
  assert_int_equal(tarn_drawings_write(&options), TARN_STATUS_USAGE);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(cut),     cmocka_unit_test(sizes),
                                     cmocka_unit_test(batches), cmocka_unit_test(single_patches),
                                     cmocka_unit_test(damaged), cmocka_unit_test(drawings)};
  return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
