// Import of a BERT or RoBERTa model of Hugging Face, and the way back of what was imported.
#include "fuzz/hf_model.h"
#include "tarn/lab/foreign.h"

void fuzz_prepare(void) { hf_prepare(true); }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (!hf_import(tarn_checkpoint_import_bert, data, size)) return 0;
  fuzz_must(tarn_checkpoint_export_bert("back", "out", TARN_BERT_FORMAT_ROBERTA));
  fuzz_must(tarn_checkpoint_import_bert("again", "back", "bytes"));
  return 0;
}
