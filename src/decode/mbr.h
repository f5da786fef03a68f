// Minimum Bayes risk decoding (Eikema and Aziz, "Sampling-Based Approximations to Minimum Bayes Risk Decoding", EMNLP
// 2022): of samples of the model the one that agrees best with all of them.
#ifndef TARN_DECODE_MBR_H
#define TARN_DECODE_MBR_H

#include "base/status.h"
#include "tarn/decoding.h"

// The expected utility of each of `count` texts: the mean, over all of them as references, of its score. order: the
// texts by falling utility, equal ones in their order. Fails with MEMORY.
tarn_status tarn__mbr_rank(tarn_mbr utility, const char *const *texts, int64_t count, double *expected,
                           int32_t *order) TARN_CHECKED;

#endif
