// gzip, by zlib (RFC 1952).
#include "base/unpack.h"

#if TARN_ZLIB
#include <string.h>
#include <zlib.h>

#include "base/memory.h"

static tarn_status open_gzip(void **state) {
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(z_stream)));
  const int code = inflateInit2(memory, 15 + 16);  // the largest window, and a header of gzip
  if (code != Z_OK) {
    tarn__free(memory);
    return tarn__fail(TARN_STATUS_MEMORY, "out of memory in zlib");
  }
  *state = memory;
  return TARN_STATUS_OK;
}

static void close_gzip(void *state) {
  if (state) inflateEnd(state);
  tarn__free(state);
}

static const char *step_gzip(void *state, tarn__unpack_step *step) {
  z_stream *z = state;
  z->next_in = (Bytef *)(uintptr_t)step->in;
  z->avail_in = (uInt)step->in_size;
  z->next_out = step->out;
  z->avail_out = (uInt)step->out_size;
  const int code = inflate(z, Z_NO_FLUSH);
  step->in = z->next_in;
  step->in_size = z->avail_in;
  step->out = z->next_out;
  step->out_size = z->avail_out;
  step->over = code == Z_STREAM_END;
  if (code == Z_STREAM_END) return inflateReset(z) == Z_OK ? NULL : "zlib fails";
  if (code == Z_OK || code == Z_BUF_ERROR) return NULL;
  if (code == Z_MEM_ERROR) step->why = TARN_STATUS_MEMORY;
  return z->msg ? z->msg : code == Z_MEM_ERROR ? "out of memory" : "a dictionary is needed";
}

#define OPEN open_gzip
#define STEP step_gzip
#define CLOSE close_gzip
#else
#define OPEN NULL
#define STEP NULL
#define CLOSE NULL
#endif

const tarn__unpack_kind tarn__unpack_gzip = {"gzip", "zlib1g-dev", "\x1F\x8B\x08", 3, OPEN, STEP, CLOSE};
