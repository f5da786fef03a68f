// The words for the precisions in which models are used.
#include "tarn/translate.h"

const char *tarn_translate_precision_name(tarn_translate_precision precision) {
  static const char *const names[TARN_TRANSLATE_PRECISION_COUNT] = {"fp32", "bf16", "int8", "int4", "auto"};
  return (unsigned)precision < TARN_TRANSLATE_PRECISION_COUNT ? names[precision] : NULL;
}
