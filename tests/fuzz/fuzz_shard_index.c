// An index of shards with its parts: opening, and all that is done with a shard. It is prepared over as well, which
// removes no file but parts of the set. The files follow one another: a byte with the length of the name, the name, two
// bytes with the size, little-endian, and the contents.
#include <sys/stat.h>

#include "base/file.h"
#include "data/parts_writer.h"
#include "fuzz/shard_use.h"

static const char BYTES[] = "tarn-vocab byte 1\n";
static tarn_vocab *vocab;

void fuzz_prepare(void) { fuzz_must(tarn_vocab_open_memory(&vocab, BYTES, sizeof BYTES - 1)); }

// Names are of letters, digits, "_-.".
static void write_file(const uint8_t *name, size_t length, const uint8_t *data, size_t size) {
  static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  char path[300] = "set/";
  memcpy(path + 4, name, length);
  if (length > 0 && path[4] != '.' && strspn(path + 4, good) == length) fuzz_write(path, data, size);
}

static void unpack(const uint8_t *data, size_t size) {
  mkdir("set", 0777);
  while (size > 0) {
    const size_t length = data[0];
    if (size < length + 3) return;
    const uint8_t *name = data + 1, *contents = name + length + 2;
    size_t bytes = name[length] + 256u * name[length + 1];
    if (bytes > size - length - 3) bytes = size - length - 3;
    write_file(name, length, contents, bytes);
    data += length + 3 + bytes;
    size -= length + 3 + bytes;
  }
}

static void prepare_over(void) {
  static const int32_t ids[] = {70, 71};
  tarn__parts_writer *writer;
  fuzz_write("set/other", "other", 5);
  if (!fuzz_good(tarn__parts_writer_open(&writer, "set/data", NULL, vocab, TARN__SET_SENTENCES, 1000))) return;
  fuzz_good(tarn__parts_writer_put(writer, NULL, 0, ids, 2));
  fuzz_good(tarn__parts_writer_commit(&writer));
  FUZZ_REQUIRE(tarn__file_exists("set/other"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tarn__shard shard;
  unpack(data, size);
  if (fuzz_good(tarn__shard_open(&shard, "set/data"))) {
    shard_use(&shard);
    tarn__shard_close(&shard);
    prepare_over();
  }
  fuzz_remove("set");
  return 0;
}
