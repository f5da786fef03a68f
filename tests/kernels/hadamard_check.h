// Signs for the tests of hadamard. Include it after cmocka.h.
#ifndef TARN_TESTS_HADAMARD_CHECK_H
#define TARN_TESTS_HADAMARD_CHECK_H

#include "kernels/kernel_check.h"
#include "ops/hadamard.h"

// The signs of a random structured matrix [out, in].
static inline tarn__param *check_signs(check *c, int64_t out, int64_t in, int blocks) {
  tarn__hadamard_shape shape = tarn__hadamard_shape_of(out, in, blocks);
  tarn__param *signs = check_param(c, tarn__hadamard_sign_rows(&shape), shape.width, 1.0, false);
  check_item *item = &c->item[c->next - 1];
  signs->dtype = c->dtype == TARN__F64 ? TARN__F64 : TARN__F32;
  for (size_t i = 0; i < (size_t)(signs->rows * signs->cols); i++) {
    item->value[i] = item->value[i] < 0.0 ? -1.0 : 1.0;
    check_store(signs->value, signs->dtype, i, item->value[i]);
  }
  signs->init = (tarn__init){TARN__INIT_SIGNS, 1.0, blocks};
  signs->out = out;
  signs->in = in;
  return signs;
}

#endif
