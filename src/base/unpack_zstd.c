// zstd, by libzstd (RFC 8878).
#include "base/unpack.h"

#if TARN_ZSTD
#include <zstd.h>
#include <zstd_errors.h>

#include "base/memory.h"

static tarn_status open_zstd(void **state) {
  *state = ZSTD_createDStream();
  TARN_REQUIRE(*state, MEMORY, "out of memory in libzstd");
  return TARN_STATUS_OK;
}

static void close_zstd(void *state) { ZSTD_freeDStream(state); }

// Consecutive frames are one text. A window is at most 128 MB, libzstd's default limit.
static const char *step_zstd(void *state, tarn__unpack_step *step) {
  ZSTD_inBuffer in = {step->in, step->in_size, 0};
  ZSTD_outBuffer out = {step->out, step->out_size, 0};
  const size_t left = ZSTD_decompressStream(state, &out, &in);
  step->in += in.pos;
  step->in_size -= in.pos;
  step->out += out.pos;
  step->out_size -= out.pos;
  step->over = left == 0;
  if (!ZSTD_isError(left)) return NULL;
  switch (ZSTD_getErrorCode(left)) {
    case ZSTD_error_frameParameter_windowTooLarge:
      step->why = TARN_STATUS_UNSUPPORTED;
      return "it takes more than 128 MB of memory";
    case ZSTD_error_memory_allocation:
      step->why = TARN_STATUS_MEMORY;
      return "out of memory";
    default:
      return ZSTD_getErrorName(left);
  }
}

#define OPEN open_zstd
#define STEP step_zstd
#define CLOSE close_zstd
#else
#define OPEN NULL
#define STEP NULL
#define CLOSE NULL
#endif

const tarn__unpack_kind tarn__unpack_zstd = {"zstd", "libzstd-dev", "\x28\xB5\x2F\xFD", 4, OPEN, STEP, CLOSE};
