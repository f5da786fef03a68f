// Import of a Marian model of Hugging Face, and the way back of what was imported; and of one of PyTorch's
// nn.Transformer.
#include "foreign/torch_format.h"
#include "fuzz/hf_model.h"
#include "tarn/lab/foreign.h"

void fuzz_prepare(void) { hf_prepare(false); }

static tarn_status import(const char *output, const char *folder, const char *vocab) {
  return tarn_checkpoint_import_marian(output, folder, vocab, NULL);
}

static tarn_status import_torch(const char *output, const char *folder, const char *vocab) {
  return tarn__torch_import(output, folder, vocab, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (hf_import(import_torch, data, size)) return 0;
  if (!hf_import(import, data, size)) return 0;
  fuzz_must(tarn_checkpoint_export_marian("back", "out"));
  fuzz_must(tarn_checkpoint_import_marian("again", "back", "bytes", NULL));
  return 0;
}
