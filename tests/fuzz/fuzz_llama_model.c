// Import of a model of LLaMA's kind of Hugging Face, and its way back.
#include "fuzz/hf_model.h"
#include "tarn/lab/foreign.h"

void fuzz_prepare(void) { hf_prepare(false); }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (!hf_import(tarn_checkpoint_import_llama, data, size)) return 0;
  for (int format = 0; format <= TARN_LLAMA_FORMAT_QWEN2; format++)
    (void)fuzz_good(tarn_checkpoint_export_llama("back", "out", (tarn_llama_format)format));
  fuzz_must(tarn_checkpoint_export_llama("back", "out", TARN_LLAMA_FORMAT_LLAMA));
  fuzz_must(tarn_checkpoint_import_llama("again", "back", "bytes"));
  return 0;
}
