// Images in IDX with their labels, or one in PNG beside a sound one in a folder, that become a shard, which then has to
// be whole. The first byte says which, and how many bytes of the rest are the labels.
#include "base/file.h"
#include "fuzz/shard_use.h"
#include "tarn/images.h"

// An image of one black pixel.
static const uint8_t SOUND[] = {0x89, 'P',  'N',  'G',  '\r', '\n', 0x1A, '\n', 0,    0,    0,    0x0D, 'I',  'H',
                                'D',  'R',  0,    0,    0,    1,    0,    0,    0,    1,    8,    0,    0,    0,
                                0,    0x3A, 0x7E, 0x9B, 0x55, 0,    0,    0,    0x0A, 'I',  'D',  'A',  'T',  0x78,
                                0x9C, 0x63, 0x60, 0,    0,    0,    2,    0,    1,    0x48, 0xAF, 0xA4, 0x71, 0,
                                0,    0,    0,    'I',  'E',  'N',  'D',  0xAE, 0x42, 0x60, 0x82};

void fuzz_prepare(void) {
  fuzz_must(tarn__mkdir("set/a"));
  fuzz_must(tarn__mkdir("set/b"));
  fuzz_write("set/a/1.png", SOUND, sizeof SOUND);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tarn_images_options options;
  tarn_images_result result;
  tarn__shard shard;
  const unsigned how = size ? data[0] : 0;
  const uint8_t *bytes = data + (size > 0);
  const size_t count = size - (size > 0), labels = how / 2 < count ? how / 2 : count;
  tarn_images_default(&options);
  options.output = "data";
  if (how & 1) {
    fuzz_write("set/b/2.png", bytes, count);
    options.images = "set";
    options.channels = how & 2 ? 3 : how & 4 ? 1 : 0;
  } else {
    fuzz_write("labels.idx", bytes, labels);
    fuzz_write("images.idx", bytes + labels, count - labels);
    options.images = "images.idx";
    options.labels = "labels.idx";
  }
  if (!fuzz_good(tarn_images_prepare(&result, &options))) return 0;
  fuzz_must(tarn__shard_open(&shard, "data"));
  FUZZ_REQUIRE(shard.pairs == result.images && shard.classes == result.classes && shard.image.height == result.height);
  shard_use(&shard);
  tarn__shard_close(&shard);
  return 0;
}
