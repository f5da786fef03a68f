// No token mixer: the layer is its feed-forward network alone, as in the FFN reservoir of Shen et al. (ACL 2021).
#include "parts/block.h"
#include "parts/registry.h"

static void *declare_nothing(tarn__declare *declare) {
  (void)declare;
  return NULL;
}

static void build_nothing(const tarn__block_run *run, const void *weights, const tarn_kind *kind,
                          tarn__stream *stream) {
  (void)run;
  (void)weights;
  (void)kind;
  (void)stream;
}

const tarn__mixer tarn__mixer_none = {.id = TARN_MIXER_NONE, .declare = declare_nothing, .build = build_nothing};
