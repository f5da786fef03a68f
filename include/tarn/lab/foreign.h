// Models of other programs: Hugging Face's transformers (GPT-2, BERT, RoBERTa, Marian) and CTranslate2.
#ifndef TARN_LAB_FOREIGN_H
#define TARN_LAB_FOREIGN_H

#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// GPT-2: a folder with config.json and model.safetensors (F32, F16 or BF16), and vocab.json and merges.txt.
//
// Import writes a checkpoint of such a folder. vocab: a vocabulary to use instead of the folder's; NULL: the folder's.
// Fails with IO, MEMORY, or DATA: a key of config.json that is missing or has an unsupported value; a tensor that is
// missing, unexpected, not finite, or of the wrong shape or type; a vocabulary of another size or end of sentence.
//
// Export writes such a folder in F32, creating it if necessary; vocab.json and merges.txt only for a vocabulary of
// GPT-2's kind. Fails with USAGE for a model that the format cannot express.
TARN_API tarn_status tarn_checkpoint_import_gpt2(const char *output, const char *folder,
                                                 const char *vocab) TARN_CHECKED;
TARN_API tarn_status tarn_checkpoint_export_gpt2(const char *folder, const char *path) TARN_CHECKED;

// BERT and RoBERTa: a folder with config.json ("model_type": bert or roberta), model.safetensors, and vocab.txt (BERT)
// or vocab.json and merges.txt (RoBERTa).
//
// Import turns a file for sequence classification into a classifier or a regression model, and any other into a masked
// language model. The head of another task is dropped with a warning; if there is no head of a masked language model, a
// random one is drawn, with a warning. `vocab` NULL: the folder's. Fails like the import of GPT-2, and with DATA for a
// vocabulary without a token that begins a row or without a mask token.
//
// Export writes such a folder in F32, and the vocabulary's files if it is WordPiece or of GPT-2's or RoBERTa's kind. A
// model without segments gets one zero segment embedding. Fails with USAGE for a model that the format cannot express.
typedef enum tarn_bert_format { TARN_BERT_FORMAT_BERT, TARN_BERT_FORMAT_ROBERTA } tarn_bert_format;
TARN_API tarn_status tarn_checkpoint_import_bert(const char *output, const char *folder,
                                                 const char *vocab) TARN_CHECKED;
TARN_API tarn_status tarn_checkpoint_export_bert(const char *folder, const char *path,
                                                 tarn_bert_format format) TARN_CHECKED;

// Marian models (the OPUS-MT family): a folder with config.json ("model_type": marian), model.safetensors, and the
// vocabulary as vocab.json, source.spm and target.spm (tarn_vocab_import_marian()); generation_config.json is optional.
// The generation settings of these files become the section `translate` of the checkpoint's description. vocab,
// target_vocab: vocabularies to use instead of the folder's; `vocab` alone is for both sides; NULL: the folder's. Fails
// like the import of GPT-2.
TARN_API tarn_status tarn_checkpoint_import_marian(const char *output, const char *folder, const char *vocab,
                                                   const char *target_vocab) TARN_CHECKED;
// Writes such a folder in F32, with the vocabularies if they are SentencePiece models or of Marian's kind. Frozen and
// shared layers are written as ordinary matrices. Fails with USAGE for a model that the format cannot express.
TARN_API tarn_status tarn_checkpoint_export_marian(const char *folder, const char *path) TARN_CHECKED;

// Writes a translation model as a folder for CTranslate2: model.bin in F32, config.json, and the tokens of the
// vocabularies as shared_vocabulary.json, or source_vocabulary.json and target_vocabulary.json. CTranslate2 itself adds
// the end of sentence to a source. The bias of a padding token is -10000, so it is never generated. Fails with USAGE
// for a model that the format cannot express.
TARN_API tarn_status tarn_checkpoint_export_ctranslate2(const char *folder, const char *path) TARN_CHECKED;

#ifdef __cplusplus
}
#endif
#endif
