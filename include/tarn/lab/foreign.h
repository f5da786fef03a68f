// Models of other programs: Hugging Face's transformers (GPT-2, LLaMA, Mistral, Qwen2, BERT, RoBERTa, Marian),
// llama.cpp (GGUF), Marian and CTranslate2. Weights of transformers may be in several files, which
// model.safetensors.index.json names. Pickles, such as pytorch_model.bin, are refused: they are programs.
#ifndef TARN_LAB_FOREIGN_H
#define TARN_LAB_FOREIGN_H

#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Writes a checkpoint of a model of one of the kinds below, by what `path` is: a GGUF file, a folder whose config.json
// has one of their words as "model_type", or a folder of Marian's own files. vocab and target_vocab as for the import
// of that kind; the latter only for translation models. Fails like that import, and with DATA for another model.
TARN_API tarn_status tarn_checkpoint_import(const char *output, const char *path, const char *vocab,
                                            const char *target_vocab) TARN_CHECKED;

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

// Models of LLaMA's kind: a folder with config.json ("model_type": llama, mistral or qwen2), model.safetensors, and
// tokenizer.json (tarn_vocab_import_tokenizer()) or tokenizer.model, a SentencePiece model. A text is read behind
// "bos_token_id" (model.decoder_start). Of rotary positions there are the types default, linear and llama3. Attention
// to a window of tokens limits model.max_length to it.
//
// Import fails like that of GPT-2. Export writes such a folder in F32, with tokenizer.json for a
// vocabulary that was read from one, and GPT-2's files for one of that kind. Biases of the model that are all 0 are
// left out; others need "attention_bias" and "mlp_bias" of llama, or are those of qwen2. Fails with USAGE for a model
// that the format cannot express.
typedef enum tarn_llama_format {
  TARN_LLAMA_FORMAT_LLAMA,
  TARN_LLAMA_FORMAT_MISTRAL,
  TARN_LLAMA_FORMAT_QWEN2
} tarn_llama_format;
TARN_API tarn_status tarn_checkpoint_import_llama(const char *output, const char *folder,
                                                  const char *vocab) TARN_CHECKED;
TARN_API tarn_status tarn_checkpoint_export_llama(const char *folder, const char *path,
                                                  tarn_llama_format format) TARN_CHECKED;

// GGUF, the files of llama.cpp (versions 2 and 3, little-endian), of the architectures llama, qwen2 and gpt2 with
// tensors in F32, F16, BF16 or Q8_0. vocab: as above; NULL: the file's, byte-pair encodings of its models gpt2 (as
// Llama 3's, Qwen2's, GPT-2's and SmolLM's) and llama (SentencePiece's). Fails with IO, MEMORY, or DATA, naming a key,
// a type of tensor, or a tensor.
TARN_API tarn_status tarn_checkpoint_import_gguf(const char *output, const char *path, const char *vocab) TARN_CHECKED;
// Writes a model of LLaMA's kind as such a file, of architecture llama or, with biases of queries, keys and values
// alone, qwen2, and one with learned positions as gpt2, whose activation is gelu_tanh. With the vocabulary if it is
// byte-pair encoding of bytes, also that of GPT-2's files, or of pieces, as SentencePiece's; else a warning says that
// there is none. Matrices are of the type, in Q8_0 those whose
// rows are no blocks of 32 in F16; vectors are in F32. Fails with USAGE for a model that the format cannot express, and
// with DATA for numbers beyond F16.
typedef enum tarn_gguf_type { TARN_GGUF_TYPE_F32, TARN_GGUF_TYPE_F16, TARN_GGUF_TYPE_Q8_0 } tarn_gguf_type;
TARN_API tarn_status tarn_checkpoint_export_gguf(const char *output, const char *path,
                                                 tarn_gguf_type type) TARN_CHECKED;

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

// fairseq's translation models: a folder with the state dict as model.safetensors, config.json with what fairseq keeps
// beside it, and dict.LANGUAGE.txt of both sides (docs/translation.md). tarn_checkpoint_import() reads it.
//
// It also reads translation models of PyTorch's nn.Transformer: a folder with the state dict as model.safetensors,
// config.json ("model_type": "nn.Transformer") with arguments of nn.Transformer and names of modules, and for each side
// tokens.SIDE.txt, SIDE.spm, or both; SIDE is source or target. `vocab` alone is for both sides.

// Marian models (the OPUS-MT family): a folder with config.json ("model_type": marian), model.safetensors, and the
// vocabulary as vocab.json, source.spm and target.spm (tarn_vocab_import_marian()); generation_config.json is optional.
// The generation settings of these files become the section `translate` of the checkpoint's description. vocab,
// target_vocab: vocabularies to use instead of the folder's; `vocab` alone is for both sides; NULL: the folder's. Fails
// like the import of GPT-2.
//
// A folder without config.json and vocab.json that has decoder.yml, model.npz or vocab.yml holds Marian's own files:
// the weights (.npz) and the vocabularies of both sides (.yml, or .spm: a SentencePiece model) that decoder.yml names,
// else model.npz and vocab.yml, and source.spm and target.spm. Encoder and decoder are of self-attention, pre-norm or
// post-norm. A token is added to the vocabularies, last, for the embedding of zeros that Marian's decoder reads first;
// given vocabularies must have it. Fails with UNSUPPORTED if tarn was built without minizip.
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
