// Text that may be packed by gzip, xz or zstd: read in pieces of two sizes, which must give the same bytes or failure.
#include <string.h>

#include "base/input.h"
#include "fuzz/fuzz.h"

enum { MOST = 1 << 20 };  // bytes that are looked at

void fuzz_prepare(void) {}

static tarn_status read_all(tarn__input *input, uint8_t *bytes, size_t *size, size_t piece) {
  for (;;) {
    size_t got;
    const size_t room = MOST - *size < piece ? MOST - *size : piece;
    if (room == 0) return TARN_STATUS_OK;
    tarn_status status = tarn__input_read(input, bytes + *size, room, &got);
    if (status != TARN_STATUS_OK || got == 0) return status;
    FUZZ_REQUIRE(got <= room);
    *size += got;
  }
}

static tarn_status read_file(uint8_t *bytes, size_t *size, size_t piece) {
  tarn__input input;
  *size = 0;
  fuzz_must(tarn__input_open(&input, "text"));
  const tarn_status status = read_all(&input, bytes, size, piece);
  tarn__input_close(&input);
  return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static uint8_t large[MOST], small[MOST];
  size_t large_size, small_size;
  fuzz_write("text", data, size);
  const bool good = fuzz_good(read_file(large, &large_size, 1 << 16));
  const bool same = fuzz_good(read_file(small, &small_size, 1 + fuzz_choice(data, size) % 99));
  FUZZ_REQUIRE(good == same);
  FUZZ_REQUIRE(!good || (large_size == small_size && memcmp(large, small, large_size) == 0));
  return 0;
}
