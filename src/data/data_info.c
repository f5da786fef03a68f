// A summary of the contents of a set.
#include <limits.h>

#include "base/file.h"
#include "base/memory.h"
#include "data/shard.h"
#include "run/file_kind.h"
#include "tarn/data.h"

typedef struct whole {
  tarn_data_info info;  // first
  tarn__shard shard;
  tarn_data_part *parts;
} whole;

bool tarn_data_is(const char *prefix) {
  char path[PATH_MAX];
  if (tarn__file_exists(prefix)) return tarn__file_kind_at(prefix) == TARN__FILE_KIND_SHARD;
  return tarn__shard_path(path, sizeof path, prefix) == TARN_STATUS_OK &&
         tarn__file_kind_at(path) == TARN__FILE_KIND_SHARD;
}

static tarn_data_part part_of(const tarn__shard *s) {
  return (tarn_data_part){.path = s->path,
                          .hash = s->hash,
                          .bytes = s->file_bytes,
                          .rows = s->pairs,
                          .source_tokens = s->source_tokens,
                          .target_tokens = s->target_tokens};
}

static tarn_status fill(whole *w, const char *prefix) {
  tarn__shard *s = &w->shard;
  void *memory;
  TARN_TRY(tarn__shard_open(s, prefix));
  const int count = s->parts ? s->part_count : 1;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)count, sizeof *w->parts));
  w->parts = memory;
  for (int i = 0; i < count; i++) w->parts[i] = part_of(s->parts ? &s->parts[i] : s);
  w->info = (tarn_data_info){.path = s->path,
                             .hash = s->hash,
                             .text = s->text,
                             .windows = s->continues,
                             .packed = s->packed,
                             .classes = s->classes,
                             .bytes = s->file_bytes,
                             .rows = s->pairs,
                             .source_tokens = s->source_tokens,
                             .target_tokens = s->target_tokens,
                             .longest_source = s->longest_source,
                             .longest_target = s->longest_target,
                             .source_vocab = s->text ? 0 : s->source_vocab_size,
                             .target_vocab = s->target_vocab_size,
                             .part_count = count,
                             .parts = w->parts,
                             .height = s->image.height,
                             .width = s->image.width,
                             .channels = s->image.channels,
                             .class_names = s->names};
  return TARN_STATUS_OK;
}

tarn_status tarn_data_info_open(tarn_data_info **info, const char *prefix) {
  void *memory;
  *info = NULL;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(whole)));
  *info = memory;
  const tarn_status status = fill(memory, prefix);
  if (status != TARN_STATUS_OK) tarn_data_info_close(info);
  return status;
}

void tarn_data_info_close(tarn_data_info **info) {
  whole *w = (whole *)*info;
  if (!w) return;
  tarn__shard_close(&w->shard);
  tarn__free(w->parts);
  tarn__free(w);
  *info = NULL;
}
