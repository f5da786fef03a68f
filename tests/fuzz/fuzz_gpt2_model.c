// Import of a GPT-2 model of Hugging Face.
#include "fuzz/hf_model.h"
#include "tarn/lab/foreign.h"

void fuzz_prepare(void) { hf_prepare(false); }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  hf_import(tarn_checkpoint_import_gpt2, data, size);
  return 0;
}
