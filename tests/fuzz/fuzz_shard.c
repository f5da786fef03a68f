// A shard: opening, every sentence with what is said of it, and an epoch of batches.
#include "fuzz/shard_use.h"

void fuzz_prepare(void) {}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tarn__shard shard;
  fuzz_write("data.tarn", data, size);
  if (!fuzz_good(tarn__shard_open(&shard, "data"))) return 0;
  shard_use(&shard);
  tarn__shard_close(&shard);
  return 0;
}
