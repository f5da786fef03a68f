// The file of a sweep with its base: an archive of sweep.yaml and base.yaml, next to existing data; and the folder
// "out" of the sweep, if the archive has it, with runs in any state.
#include <string.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "make_shard.h"
#include "tarn/lab/sweep.h"

enum { VOCAB = 12 };

void fuzz_prepare(void) {
  tarn_vocab *vocab = make_vocab(VOCAB);
  size_t size;
  const void *bytes = tarn_vocab_bytes(vocab, &size);
  fuzz_write("vocab", bytes, size);
  tarn_vocab_close(&vocab);
  make_shard("train", 8, VOCAB, VOCAB, 5);
  make_shard("valid", 4, VOCAB, VOCAB, 6);
  make_text_shard("text", 8, VOCAB, 7);
  fuzz_write("test.de", "w0 w1\nw2\n", 9);
  fuzz_write("test.en", "w0 w1\nw2\n", 9);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tarn_sweep *sweep;
  tarn_sweep_options options;
  if (fuzz_unpack("in", data, size) == 0) return 0;
  tarn_sweep_default(&options);
  options.file = "in/sweep.yaml";
  options.program = "/bin/false";
  if (access("in/out", F_OK) == 0) options.folder = "in/out";
  if (!fuzz_good(tarn_sweep_open(&sweep, &options))) return 0;
  for (size_t i = 0; i < sweep->run_count; i++) FUZZ_REQUIRE(sweep->runs[i].variant < sweep->variant_count);
  FUZZ_REQUIRE(sweep->baseline < sweep->variant_count);
  (void)tarn_sweep_training_left(sweep, 1);
  tarn_sweep_close(&sweep);
  return 0;
}
