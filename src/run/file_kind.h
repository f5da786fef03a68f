// The kind of a file, by its first bytes, and of a folder, by its files: for messages about files of a wrong kind. It
// does not change which files are read.
#ifndef TARN_RUN_FILE_KIND_H
#define TARN_RUN_FILE_KIND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

#define TARN__SHARD_MAGIC "TARNSHRD"     // the first bytes of a shard
#define TARN__INDEX_MAGIC "TARNINDX"     // of an index of several shards
#define TARN__GGUF_MAGIC "GGUF"          // of a model of llama.cpp
#define TARN__VOCAB_MAGIC "tarn-vocab "  // of a text vocabulary; the word of its kind follows
// Marks in the headers of files of tensors: a checkpoint of tarn, or a model of tarn series.
#define TARN__MODEL_MARK "tarn.format"
#define TARN__SERIES_MARK "tarn echo state network 1"

// A pickle is a program for Python, which is never run here.
#define TARN__PICKLE_NAME "a pickle, a program that reading it would run"
#define TARN__PICKLE_ADVICE                                                                                           \
  "; save the model anew in Python as safetensors: with save_pretrained() of transformers, or with torch.load(FILE, " \
  "weights_only=True) and save_file() of safetensors.torch (docs/translation.md)"

typedef enum tarn__file_kind {
  TARN__FILE_KIND_UNKNOWN,  // unknown bytes, or unreadable
  TARN__FILE_KIND_EMPTY,
  TARN__FILE_KIND_TEXT,  // UTF-8, as far as inspected
  TARN__FILE_KIND_SHARD,
  TARN__FILE_KIND_MODEL,       // safetensors; also wanted when a run directory is
  TARN__FILE_KIND_SERIES,      // a model of tarn series, safetensors too
  TARN__FILE_KIND_TENSORS,     // safetensors of neither, such as the matrices of a reservoir
  TARN__FILE_KIND_HF_WEIGHTS,  // safetensors of the package transformers
  TARN__FILE_KIND_VOCAB,
  TARN__FILE_KIND_CONFIG,        // a description of a model and its training
  TARN__FILE_KIND_SWEEP_CONFIG,  // a description of a sweep
  TARN__FILE_KIND_HF_CONFIG,     // config.json of the package transformers
  TARN__FILE_KIND_UTF16,
  TARN__FILE_KIND_UTF32,
  TARN__FILE_KIND_COMPRESSED,  // gzip, xz, bzip2, zstd
  TARN__FILE_KIND_ZIP,         // an archive
  TARN__FILE_KIND_PICKLE,      // of Python, such as PyTorch's checkpoints, which are archives with one
  TARN__FILE_KIND_GGUF,
  TARN__FILE_KIND_FOLDER,  // of none of the following kinds
  TARN__FILE_KIND_RUN,
  TARN__FILE_KIND_SEEDS,  // of runs with several seeds
  TARN__FILE_KIND_SWEEP,
  TARN__FILE_KIND_HF_FOLDER,  // with a config.json, like a model of transformers
  TARN__FILE_KIND_COUNT
} tarn__file_kind;

// The kind by the first bytes of a file; some thousand are enough.
tarn__file_kind tarn__file_kind_of(const void *bytes, size_t size);

// The kind of a path. Pipes and devices are not opened: UNKNOWN, like unreadable files.
tarn__file_kind tarn__file_kind_at(const char *path);

// "a shard"; NULL for UNKNOWN.
const char *tarn__file_kind_name(tarn__file_kind kind);

// For a reader that was given `path` as a file of the kind `wanted` (SHARD, MODEL, SERIES, VOCAB, CONFIG, SWEEP_CONFIG,
// RUN, HF_FOLDER) and failed: if the file is of another kind, the recorded message is replaced by one that names it and
// the wanted kind. If there is no such file, but a shard PATH.tarn, the message says so; if there is no such
// vocabulary, how to make one. For any other missing file, and files of unknown or of the wanted kind, the message
// stays. Returns `status`.
tarn_status tarn__file_kind_explain(tarn_status status, const char *path, tarn__file_kind wanted);

#endif
