// xz, by liblzma.
#include "base/unpack.h"

#if TARN_LZMA
#include <lzma.h>

#include "base/memory.h"

// Memory limit in bytes: twice that of xz -9.
static const uint64_t MOST_MEMORY = 128 << 20;

static tarn_status open_xz(void **state) {
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(lzma_stream)));
  *(lzma_stream *)memory = (lzma_stream)LZMA_STREAM_INIT;
  if (lzma_stream_decoder(memory, MOST_MEMORY, LZMA_CONCATENATED) != LZMA_OK) {
    tarn__free(memory);
    return tarn__fail(TARN_STATUS_MEMORY, "out of memory in liblzma");
  }
  *state = memory;
  return TARN_STATUS_OK;
}

static void close_xz(void *state) {
  if (state) lzma_end(state);
  tarn__free(state);
}

static const char *step_xz(void *state, tarn__unpack_step *step) {
  lzma_stream *x = state;
  x->next_in = step->in;
  x->avail_in = step->in_size;
  x->next_out = step->out;
  x->avail_out = step->out_size;
  const lzma_ret code = lzma_code(x, step->last ? LZMA_FINISH : LZMA_RUN);
  step->in = x->next_in;
  step->in_size = x->avail_in;
  step->out = x->next_out;
  step->out_size = x->avail_out;
  step->over = code == LZMA_STREAM_END;  // of all streams of the file
  switch (code) {
    case LZMA_OK:
    case LZMA_BUF_ERROR:
    case LZMA_STREAM_END:
      return NULL;
    case LZMA_MEMLIMIT_ERROR:
      step->why = TARN_STATUS_UNSUPPORTED;
      return "it takes more than 128 MB of memory";
    case LZMA_MEM_ERROR:
      step->why = TARN_STATUS_MEMORY;
      return "out of memory";
    case LZMA_OPTIONS_ERROR:
      step->why = TARN_STATUS_UNSUPPORTED;
      return "it was packed with settings that liblzma does not know";
    default:
      return "its checks fail";
  }
}

#define OPEN open_xz
#define STEP step_xz
#define CLOSE close_xz
#else
#define OPEN NULL
#define STEP NULL
#define CLOSE NULL
#endif

const tarn__unpack_kind tarn__unpack_xz = {"xz", "liblzma-dev", "\xFD\x37\x7A\x58\x5A\0", 6, OPEN, STEP, CLOSE};
