#include "run/file_kind.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "run/names.h"

enum { LOOKED_AT = 1 << 14 };  // bytes: a description may begin with a page of comments

static const char *const NAMES[TARN__FILE_KIND_COUNT] = {
    [TARN__FILE_KIND_EMPTY] = "an empty file",
    [TARN__FILE_KIND_TEXT] = "text",
    [TARN__FILE_KIND_SHARD] = "a shard",
    [TARN__FILE_KIND_MODEL] = "a checkpoint",
    [TARN__FILE_KIND_SERIES] = "a model of tarn series",
    [TARN__FILE_KIND_TENSORS] = "a file of tensors",
    [TARN__FILE_KIND_HF_WEIGHTS] = "a file of weights of Hugging Face",
    [TARN__FILE_KIND_VOCAB] = "a vocabulary",
    [TARN__FILE_KIND_CONFIG] = "a configuration",
    [TARN__FILE_KIND_SWEEP_CONFIG] = "the description of a sweep",
    [TARN__FILE_KIND_HF_CONFIG] = "a config.json of Hugging Face",
    [TARN__FILE_KIND_UTF16] = "text in UTF-16",
    [TARN__FILE_KIND_UTF32] = "text in UTF-32",
    [TARN__FILE_KIND_COMPRESSED] = "a compressed file",
    [TARN__FILE_KIND_ZIP] = "a zip archive",
    [TARN__FILE_KIND_PICKLE] = TARN__PICKLE_NAME,
    [TARN__FILE_KIND_GGUF] = "a GGUF model",
    [TARN__FILE_KIND_FOLDER] = "a folder without a run",
    [TARN__FILE_KIND_RUN] = "a run directory",
    [TARN__FILE_KIND_SEEDS] = "a folder of runs with several seeds",
    [TARN__FILE_KIND_SWEEP] = "the folder of a sweep",
    [TARN__FILE_KIND_HF_FOLDER] = "a model of Hugging Face",
};

static bool begins(const void *bytes, size_t size, const char *magic, size_t length) {
  return size >= length && memcmp(bytes, magic, length) == 0;
}
#define BEGINS(bytes, size, magic) begins(bytes, size, magic, sizeof(magic) - 1)

// A SentencePiece model is a protocol buffer without a magic number. Its first field is a piece: a short text and a
// score.
static bool is_sentencepiece(const uint8_t *b, size_t size) {
  return size > 8 && b[0] == 0x0A && b[1] < 0x80 && b[2] == 0x0A && b[3] < 0x20 && b[3] + 2 <= b[1] &&
         (size_t)b[3] + 4 < size && b[4 + b[3]] == 0x15;
}

// The length of a JSON header in 8 bytes, and its first byte.
static bool is_safetensors(const uint8_t *b, size_t size) {
  return size > 8 && b[8] == '{' && b[4] == 0 && b[5] == 0 && b[6] == 0 && b[7] == 0;
}

// A mark and the version of the protocol. PyTorch has written archives with a data.pkl since its version 1.6.
static bool is_pickle(const uint8_t *b, size_t size) { return size > 2 && b[0] == 0x80 && b[1] >= 2 && b[1] <= 5; }

static bool has(const void *bytes, size_t size, const char *word) {
  return memmem(bytes, size, word, strlen(word)) != NULL;
}

// The beginning of the header says which program's tensors a file holds.
static tarn__file_kind tensors_kind(const void *bytes, size_t size) {
  if (has(bytes, size, "\"" TARN__MODEL_MARK "\"")) return TARN__FILE_KIND_MODEL;
  if (has(bytes, size, "\"" TARN__SERIES_MARK "\"")) return TARN__FILE_KIND_SERIES;
  return has(bytes, size, "{\"format\":\"pt\"}") ? TARN__FILE_KIND_HF_WEIGHTS : TARN__FILE_KIND_TENSORS;
}

// Wide characters without a byte order mark: in text with Latin letters nearly all high bytes are zero, and hardly any
// low ones.
static tarn__file_kind wide_kind(const uint8_t *b, size_t size) {
  size_t zeros[4] = {0};
  const size_t count = size / 4;
  if (count < 2) return TARN__FILE_KIND_UNKNOWN;
  for (size_t i = 0; i < 4 * count; i++) zeros[i % 4] += b[i] == 0;
  const size_t most = count - count / 8, few = count / 8;
  if (zeros[1] >= most && zeros[2] >= most && (zeros[0] >= most || zeros[3] >= most)) return TARN__FILE_KIND_UTF32;
  if (zeros[1] + zeros[3] >= count && zeros[0] + zeros[2] <= few) return TARN__FILE_KIND_UTF16;
  if (zeros[0] + zeros[2] >= count && zeros[1] + zeros[3] <= few) return TARN__FILE_KIND_UTF16;
  return TARN__FILE_KIND_UNKNOWN;
}

// Whether a line begins with a word.
static bool has_line(const char *text, size_t size, const char *word) {
  const size_t length = strlen(word);
  for (const char *at = text, *end = text + size; at && (size_t)(end - at) >= length;) {
    if (memcmp(at, word, length) == 0) return true;
    at = memchr(at, '\n', (size_t)(end - at));
    if (at) at++;
  }
  return false;
}

static tarn__file_kind text_kind(const char *text, size_t size) {
  const bool json = size > 0 && text[0] == '{';
  if (json && has(text, size, "\"model_type\"")) return TARN__FILE_KIND_HF_CONFIG;
  if (has_line(text, size, "base:") && has_line(text, size, "variants:")) return TARN__FILE_KIND_SWEEP_CONFIG;
  if (has_line(text, size, "kinds:") && (has_line(text, size, "decoder:") || has_line(text, size, "encoder:")))
    return TARN__FILE_KIND_CONFIG;
  return TARN__FILE_KIND_TEXT;
}

tarn__file_kind tarn__file_kind_of(const void *bytes, size_t size) {
  if (size == 0) return TARN__FILE_KIND_EMPTY;
  if (BEGINS(bytes, size, TARN__SHARD_MAGIC) || BEGINS(bytes, size, TARN__INDEX_MAGIC)) return TARN__FILE_KIND_SHARD;
  if (BEGINS(bytes, size, TARN__VOCAB_MAGIC) || is_sentencepiece(bytes, size)) return TARN__FILE_KIND_VOCAB;
  if (is_safetensors(bytes, size)) return tensors_kind(bytes, size);
  if (BEGINS(bytes, size, "\xFF\xFE\0\0") || BEGINS(bytes, size, "\0\0\xFE\xFF")) return TARN__FILE_KIND_UTF32;
  if (BEGINS(bytes, size, "\xFF\xFE") || BEGINS(bytes, size, "\xFE\xFF")) return TARN__FILE_KIND_UTF16;
  if (BEGINS(bytes, size, "PK\3\4")) return has(bytes, size, "data.pkl") ? TARN__FILE_KIND_PICKLE : TARN__FILE_KIND_ZIP;
  if (is_pickle(bytes, size)) return TARN__FILE_KIND_PICKLE;
  if (BEGINS(bytes, size, TARN__GGUF_MAGIC)) return TARN__FILE_KIND_GGUF;
  if (BEGINS(bytes, size, "\x1F\x8B\x08") ||
      BEGINS(bytes, size,
             "\xFD"
             "7zXZ\0") ||
      BEGINS(bytes, size, "BZh91AY&SY") || BEGINS(bytes, size, "\x28\xB5\x2F\xFD"))
    return TARN__FILE_KIND_COMPRESSED;
  if (memchr(bytes, 0, size)) return wide_kind(bytes, size);
  return text_kind(bytes, size);
}

static bool has_file(const char *folder, const char *pattern) {
  char path[PATH_MAX];
  glob_t found;
  if (snprintf(path, sizeof path, "%s/%s", folder, pattern) >= (int)sizeof path) return false;
  if (!strchr(pattern, '*')) return tarn__file_exists(path);
  if (glob(path, GLOB_NOSORT, NULL, &found) != 0) return false;
  globfree(&found);
  return true;
}

static tarn__file_kind folder_kind(const char *path) {
  if (has_file(path, TARN__SWEEP_JSON)) return TARN__FILE_KIND_SWEEP;
  if (has_file(path, TARN__RUN_CONFIG) || has_file(path, TARN__CHECKPOINT_ANY)) return TARN__FILE_KIND_RUN;
  if (has_file(path, TARN__RUN_SEED "*")) return TARN__FILE_KIND_SEEDS;
  return has_file(path, "config.json") ? TARN__FILE_KIND_HF_FOLDER : TARN__FILE_KIND_FOLDER;
}

tarn__file_kind tarn__file_kind_at(const char *path) {
  char bytes[LOOKED_AT];
  struct stat info;
  if (stat(path, &info) != 0) return TARN__FILE_KIND_UNKNOWN;
  if (S_ISDIR(info.st_mode)) return folder_kind(path);
  if (!S_ISREG(info.st_mode)) return TARN__FILE_KIND_UNKNOWN;
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return TARN__FILE_KIND_UNKNOWN;
  const ssize_t got = read(fd, bytes, sizeof bytes);
  close(fd);
  return got < 0 ? TARN__FILE_KIND_UNKNOWN : tarn__file_kind_of(bytes, (size_t)got);
}

const char *tarn__file_kind_name(tarn__file_kind kind) { return NAMES[kind]; }

static const char *wanted_text(tarn__file_kind wanted) {
  switch (wanted) {
    case TARN__FILE_KIND_SHARD:
      return "a shard is a file NAME.tarn that tarn prepare makes";
    case TARN__FILE_KIND_MODEL:
      return "a model is a run directory of tarn train, or a checkpoint in it (.safetensors)";
    case TARN__FILE_KIND_SERIES:
      return "a model of series is a file that tarn series train makes";
    case TARN__FILE_KIND_VOCAB:
      return "a vocabulary is a file that tarn vocab makes";
    case TARN__FILE_KIND_CONFIG:
      return "a configuration is a YAML file with kinds, and encoder or decoder, or a run directory";
    case TARN__FILE_KIND_SWEEP_CONFIG:
      return "the description of a sweep is a YAML file with base and variants";
    case TARN__FILE_KIND_RUN:
      return "a run directory is made by tarn train and has a " TARN__RUN_CONFIG;
    case TARN__FILE_KIND_HF_FOLDER:
      return "a model of Hugging Face is a folder with config.json and model.safetensors";
    default:
      return "a text is a file of lines in UTF-8";
  }
}

// Advice for a file of a related kind.
static const char *hint(tarn__file_kind kind, tarn__file_kind wanted) {
  if (kind == TARN__FILE_KIND_SWEEP_CONFIG) return "; tarn sweep takes this one";
  if (kind == TARN__FILE_KIND_PICKLE) return TARN__PICKLE_ADVICE;
  if (kind == TARN__FILE_KIND_GGUF) return "; tarn import takes this one";
  if (kind == TARN__FILE_KIND_HF_CONFIG || kind == TARN__FILE_KIND_HF_WEIGHTS)
    return wanted == TARN__FILE_KIND_HF_FOLDER ? "" : "; tarn import takes its folder";
  if (kind == TARN__FILE_KIND_HF_FOLDER) return "; tarn import takes such a folder";
  if (kind == TARN__FILE_KIND_SERIES && wanted == TARN__FILE_KIND_MODEL) return "; tarn series forecast takes this one";
  if (kind == TARN__FILE_KIND_ZIP && wanted == TARN__FILE_KIND_HF_FOLDER)
    return "; a model of Marian is the folder of its .npz";
  if (kind == TARN__FILE_KIND_SWEEP || kind == TARN__FILE_KIND_SEEDS) return "; name one of its runs";
  if (kind == TARN__FILE_KIND_TEXT && wanted == TARN__FILE_KIND_SHARD) return " of texts";
  return "";
}

// Whether there is nothing to explain: the kind is unknown, or it is the wanted one, but damaged.
static bool fits(tarn__file_kind kind, tarn__file_kind wanted) {
  if (kind == TARN__FILE_KIND_UNKNOWN || kind == TARN__FILE_KIND_EMPTY || kind == wanted) return true;
  // Their readers report what a file of tensors lacks.
  if (kind == TARN__FILE_KIND_TENSORS && (wanted == TARN__FILE_KIND_MODEL || wanted == TARN__FILE_KIND_SERIES))
    return true;
  // Any text may be meant as a description: its reader names the line.
  if (wanted == TARN__FILE_KIND_CONFIG || wanted == TARN__FILE_KIND_SWEEP_CONFIG) {
    if (kind == TARN__FILE_KIND_TEXT) return true;
  }
  // GPT-2's vocabulary is a folder, whose reader reports missing files.
  const bool folder = kind == TARN__FILE_KIND_FOLDER || kind == TARN__FILE_KIND_HF_FOLDER;
  if (folder && wanted == TARN__FILE_KIND_VOCAB) return true;
  if (kind == TARN__FILE_KIND_FOLDER && (wanted == TARN__FILE_KIND_RUN || wanted == TARN__FILE_KIND_HF_FOLDER))
    return true;
  return kind == TARN__FILE_KIND_RUN && (wanted == TARN__FILE_KIND_MODEL || wanted == TARN__FILE_KIND_CONFIG);
}

// Shards are named without their ending, so the name of one may also be that of another file.
static bool names_shard(const char *path) {
  char shard[PATH_MAX];
  return !tarn__file_exists(path) && snprintf(shard, sizeof shard, "%s.tarn", path) < (int)sizeof shard &&
         tarn__file_kind_at(shard) == TARN__FILE_KIND_SHARD;
}

tarn_status tarn__file_kind_explain(tarn_status status, const char *path, tarn__file_kind wanted) {
  const bool refused = status == TARN_STATUS_DATA || status == TARN_STATUS_USAGE || status == TARN_STATUS_IO;
  if (!refused) return status;
  if (wanted != TARN__FILE_KIND_SHARD && names_shard(path))
    return tarn__fail(status, "%s: there is no such file, and %s.tarn is a shard; %s", path, path, wanted_text(wanted));
  if (wanted == TARN__FILE_KIND_VOCAB && access(path, F_OK) != 0 && errno == ENOENT)
    return tarn__fail(status, "%s: there is no such file; tarn vocab makes vocabularies (--output %s)", path, path);
  const tarn__file_kind kind = tarn__file_kind_at(path);
  if (fits(kind, wanted)) return status;
  return tarn__fail(status, "%s: this is %s; %s%s", path, NAMES[kind], wanted_text(wanted), hint(kind, wanted));
}
