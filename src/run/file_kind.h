// What a file is, by its first bytes, and what a folder is, by the files in it: for messages about a file that is not
// what it was given as. Nothing is read because of it that would not be read otherwise.
#ifndef TARN_RUN_FILE_KIND_H
#define TARN_RUN_FILE_KIND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

#define TARN__SHARD_MAGIC "TARNSHRD"     // the first bytes of a shard
#define TARN__INDEX_MAGIC "TARNINDX"     // of an index of several, which stands for them
#define TARN__VOCAB_MAGIC "tarn-vocab "  // of a vocabulary that is text; the word of its kind follows
// What the header of a file of tensors has if it is a checkpoint of tarn, or a model of tarn series.
#define TARN__MODEL_MARK "tarn.format"
#define TARN__SERIES_MARK "tarn echo state network 1"

typedef enum tarn__file_kind {
  TARN__FILE_KIND_UNKNOWN,  // bytes of no kind that is known, or nothing that can be read
  TARN__FILE_KIND_EMPTY,
  TARN__FILE_KIND_TEXT,  // UTF-8, as far as it was looked at
  TARN__FILE_KIND_SHARD,
  TARN__FILE_KIND_MODEL,       // safetensors; a run directory is asked for by the same name
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
  TARN__FILE_KIND_ZIP,         // an archive, as PyTorch writes
  TARN__FILE_KIND_FOLDER,      // of none of the following sorts
  TARN__FILE_KIND_RUN,
  TARN__FILE_KIND_SEEDS,  // of runs with several seeds
  TARN__FILE_KIND_SWEEP,
  TARN__FILE_KIND_HF_FOLDER,  // with a config.json, as transformers writes a model
  TARN__FILE_KIND_COUNT
} tarn__file_kind;

// Of the first bytes of a file; some thousand are enough.
tarn__file_kind tarn__file_kind_of(const void *bytes, size_t size);

// Of a path. Pipes and devices are not opened: UNKNOWN, as for what cannot be read.
tarn__file_kind tarn__file_kind_at(const char *path);

// "a shard"; NULL for UNKNOWN.
const char *tarn__file_kind_name(tarn__file_kind kind);

// For a reader that was given `path` as a file of the kind `wanted` (SHARD, MODEL, SERIES, VOCAB, CONFIG, SWEEP_CONFIG,
// RUN, HF_FOLDER) and failed: if the file is of another kind, the recorded line becomes one that says which, and what
// is wanted instead. Where there is no such file, but a shard PATH.tarn, the line says so; where there is no such
// vocabulary, what makes one. Any other file that is missing, of no known kind, or of the kind that is wanted, keeps
// its line. Returns `status`.
tarn_status tarn__file_kind_explain(tarn_status status, const char *path, tarn__file_kind wanted);

#endif
