// The mean of several checkpoints of one training (Vaswani et al. 2017 average the last ones).
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/work.h"
#include "store/checkpoint.h"
#include "store/checkpoint_keys.h"
#include "tarn/checkpoint.h"

// The metadata that must be equal in all files: description, seed, frozen weights, vocabularies.
static bool must_agree(const char *key) {
  static const char *const keys[] = {TARN__KEY_MODEL, TARN__KEY_SEED, TARN__KEY_SOURCE_VOCAB, TARN__KEY_TARGET_VOCAB};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    if (strcmp(key, keys[i]) == 0) return true;
  return strncmp(key, TARN__KEY_FROZEN, strlen(TARN__KEY_FROZEN)) == 0;
}

static tarn_status check_texts(const tarn__safetensors *first, const tarn__safetensors *other) {
  for (size_t i = 0; i < first->text_count; i++) {
    const tarn__stored_text *text = &first->texts[i];
    if (!must_agree(text->key)) continue;
    const char *same = tarn__safetensors_text(other, text->key);
    TARN_REQUIRE(same && strcmp(same, text->text) == 0, DATA, "%s and %s cannot be averaged: they differ in \"%s\"",
                 first->path, other->path, text->key);
  }
  return TARN_STATUS_OK;
}

static bool is_state(const char *name) {
  return strncmp(name, TARN__TENSOR_HELPER, strlen(TARN__TENSOR_HELPER)) == 0 ||
         strncmp(name, TARN__TENSOR_MOMENT1, strlen(TARN__TENSOR_MOMENT1)) == 0 ||
         strncmp(name, TARN__TENSOR_MOMENT2, strlen(TARN__TENSOR_MOMENT2)) == 0 ||
         strncmp(name, TARN__TENSOR_SUM, strlen(TARN__TENSOR_SUM)) == 0 ||
         strncmp(name, TARN__TENSOR_STATE, strlen(TARN__TENSOR_STATE)) == 0;
}

// Only trained parameters; the frozen weights of a dense file keep their bits.
static bool is_averaged(const tarn__stored *tensor, const tarn_checkpoint_info *info) {
  for (size_t i = 0; i < info->param_count; i++)
    if (strcmp(info->params[i].name, tensor->name) == 0) return info->params[i].trained;
  return false;
}

// The result: tensors and texts of the first file, without those of its training.
typedef struct mean {
  tarn__stored *tensors;
  tarn__stored_text *texts;
  const tarn__device *device;
  float **sums;  // [count] in the memory of the device; NULL if the first file's tensor is taken unchanged
  void *own;     // memory of the sums that do not fit into the caller's
  void *piece;   // of a file, if the device cannot read the host's memory
  size_t count, text_count;
  char *names;  // updates of the files
  size_t names_size;
} mean;

enum { NAME_TEXT = 21 };  // most bytes of an update and a space

static void mean_close(mean *m) {
  if (m->own) tarn__device_free(m->device, m->own);
  if (m->piece) tarn__device_free(m->device, m->piece);
  tarn__free(m->sums);
  tarn__free(m->tensors);
  tarn__free(m->texts);
  tarn__free(m->names);
}

static size_t aligned(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

// Gives every averaged tensor memory for its sum: in `room`, whose used part is cleared, as long as tensors fit, else
// in separate memory.
static tarn_status take_sums(mean *m, const tarn_checkpoint_info *info, char *room, size_t room_bytes) {
  size_t need = 0, used = 0;
  for (size_t i = 0; i < m->count; i++) {
    if (!is_averaged(&m->tensors[i], info)) continue;
    const size_t bytes = aligned(m->tensors[i].bytes);
    TARN_TRY(tarn__add_size(&need, need, bytes));
    if (bytes > room_bytes - used) continue;
    m->sums[i] = (float *)(void *)(room + used);
    used += bytes;
  }
  if (used > 0) TARN_TRY(tarn__device_fill(m->device, room, 0, used));
  if (need > used) TARN_TRY(tarn__device_allocate(m->device, &m->own, TARN__MEMORY_OTHER, need - used, 1));
  const bool apart = !m->device->type->host_memory;
  if (apart) TARN_TRY(tarn__device_allocate(m->device, &m->piece, TARN__MEMORY_OTHER, TARN__MAP_PIECE, 1));
  char *next = m->own;
  for (size_t i = 0; i < m->count; i++) {
    tarn__stored *tensor = &m->tensors[i];
    if (!is_averaged(tensor, info)) continue;
    if (!m->sums[i]) {
      m->sums[i] = (float *)(void *)next;
      next += aligned(tensor->bytes);
    }
    tensor->data = m->sums[i];
    tensor->device = m->device;
  }
  return TARN_STATUS_OK;
}

static tarn_status mean_start(mean *m, const tarn__safetensors *first, size_t files) {
  void *memory;
  TARN_TRY(tarn__mul_size(&m->names_size, files, NAME_TEXT));
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, m->names_size, 1));
  m->names = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, first->count, sizeof *m->tensors));
  m->tensors = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, first->count, sizeof *m->sums));
  m->sums = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, first->text_count + 1, sizeof *m->texts));
  m->texts = memory;
  for (size_t i = 0; i < first->text_count; i++)
    if (strcmp(first->texts[i].key, TARN__KEY_PROGRESS) != 0 && strcmp(first->texts[i].key, TARN__KEY_AVERAGE) != 0)
      m->texts[m->text_count++] = first->texts[i];
  m->texts[m->text_count++] = (tarn__stored_text){TARN__KEY_AVERAGE, m->names};
  for (size_t i = 0; i < first->count; i++) {
    if (is_state(first->tensors[i].name)) continue;
    TARN_REQUIRE(strcmp(first->tensors[i].dtype, "BF16") != 0, DATA,
                 "%s cannot be averaged: its tensor \"%s\" is in bf16; average first, and then export", first->path,
                 first->tensors[i].name);
    m->tensors[m->count++] = first->tensors[i];
  }
  return TARN_STATUS_OK;
}

// Piece by piece, releasing the pages.
static tarn_status add_values(const mean *m, float *sums, const tarn__safetensors *tensors, const tarn__stored *from,
                              double weight) {
  const char *values = from->data;
  for (size_t done = 0; done < from->bytes; done += TARN__MAP_PIECE) {
    const size_t left = from->bytes - done, bytes = left < TARN__MAP_PIECE ? left : TARN__MAP_PIECE;
    const void *piece = values + done;
    if (m->piece) TARN_TRY(tarn__device_put(m->device, m->piece, piece, bytes));
    if (m->piece) piece = m->piece;
    TARN_TRY(tarn__device_add_scaled(m->device, sums + done / sizeof *sums, piece, bytes / sizeof *sums, weight));
    tarn__map_release_part(&tensors->map, values + done, bytes);
  }
  return TARN_STATUS_OK;
}

static bool same_shape(const tarn__stored *a, const tarn__stored *b) {
  return a->dims == b->dims && memcmp(a->shape, b->shape, (size_t)a->dims * sizeof *a->shape) == 0;
}

static tarn_status mean_add(mean *m, const tarn__checkpoint_file *file, double weight) {
  const tarn__safetensors *tensors = &file->tensors;
  size_t used = strlen(m->names);
  snprintf(m->names + used, m->names_size - used, "%s%lld", used ? " " : "", (long long)file->update);
  for (size_t i = 0; i < m->count; i++) {
    const tarn__stored *into = &m->tensors[i];
    const tarn__stored *from = tarn__safetensors_find(tensors, into->name);
    TARN_REQUIRE(from && same_shape(from, into) && strcmp(from->dtype, into->dtype) == 0, DATA,
                 "%s cannot be averaged: its tensor \"%s\" is missing or differs in type or shape", tensors->path,
                 into->name);
    TARN_REQUIRE(m->sums[i] || memcmp(from->data, into->data, into->bytes) == 0, DATA,
                 "%s cannot be averaged: its tensor \"%s\", which is not trained, differs", tensors->path, into->name);
    if (m->sums[i]) TARN_TRY(add_values(m, m->sums[i], tensors, from, weight));
    tarn__work_within(tarn__work_at_hand(), (double)(i + 1) / (double)m->count);
  }
  return TARN_STATUS_OK;
}

static tarn_status add_file(mean *m, const char *path, const tarn__checkpoint_file *first, double weight) {
  tarn__checkpoint_file file;
  TARN_TRY(tarn__checkpoint_file_open_whole(&file, path));
  tarn_status status = check_texts(&first->tensors, &file.tensors);
  if (status == TARN_STATUS_OK) status = mean_add(m, &file, weight);
  status = tarn__map_judge(&file.tensors.map, status);
  tarn__checkpoint_file_close(&file);
  return status;
}

static tarn_status add_files(mean *m, const char *const *files, size_t count, const tarn__checkpoint_file *first) {
  tarn__work work;
  tarn_status status = TARN_STATUS_OK;
  tarn__work_begin(&work, "averaging", "checkpoints");
  for (size_t i = 0; i < count && status == TARN_STATUS_OK; i++) {
    tarn__work_part(&work, (double)i, (double)i / (double)count, (double)i + 1, (double)(i + 1) / (double)count);
    status = add_file(m, files[i], first, 1.0 / (double)count);
  }
  tarn__work_end(&work);
  return status;
}

tarn_status tarn__checkpoint_average(const char *path, const char *const *files, size_t count,
                                     const tarn__device *device, void *room, size_t room_bytes) {
  TARN_REQUIRE(count > 0, USAGE, "there is no checkpoint to average");
  tarn__checkpoint_file first;
  // The texts of the newest file (the last one given) become those of the mean.
  TARN_TRY(tarn__checkpoint_file_open_whole(&first, files[count - 1]));
  mean m = {.device = device};
  tarn_checkpoint_info *info;
  tarn_status status = tarn_checkpoint_info_open(&info, files[count - 1]);
  if (status == TARN_STATUS_OK) status = mean_start(&m, &first.tensors, count);
  if (status == TARN_STATUS_OK) status = take_sums(&m, info, room, room_bytes);
  if (status == TARN_STATUS_OK) status = add_files(&m, files, count, &first);
  if (status == TARN_STATUS_OK)
    status = tarn__checkpoint_write_mapped(path, m.tensors, m.count, m.texts, m.text_count, &first.tensors.map);
  mean_close(&m);
  tarn_checkpoint_info_close(&info);
  tarn__checkpoint_file_close(&first);
  return status;
}
