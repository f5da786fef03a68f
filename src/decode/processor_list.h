// The processors, one line each, in the order in which they act; processor_NAME.c defines tarn__processor_NAME.
#ifndef TARN_DECODE_PROCESSOR_LIST_H
#define TARN_DECODE_PROCESSOR_LIST_H

#include "decode/processors.h"

#define TARN__PROCESSORS(X) X(repetition) X(counts) X(ngram) X(banned)

#define TARN__DECLARE_PROCESSOR(name) extern const tarn__logits_processor tarn__processor_##name;
TARN__PROCESSORS(TARN__DECLARE_PROCESSOR)
#undef TARN__DECLARE_PROCESSOR

#endif
