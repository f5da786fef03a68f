// Products of fp32 numbers by matrix tiles of bf16 (gemm_split_kernels.h): the implementation of gemm.h if gemm->fp32
// is not EXACT. Only if tarn__gemm_split_there(): other processors have no such products.
//
// Every element of C is a sum over blocks of k of equal length, each of which starts from zero; so its bits depend
// neither on the number of threads nor on the other rows.
#ifndef TARN_DEVICE_CPU_GEMM_GEMM_SPLIT_H
#define TARN_DEVICE_CPU_GEMM_GEMM_SPLIT_H

#include "device/cpu/gemm/gemm_kernels.h"

bool tarn__gemm_split_there(void);

extern const tarn__gemm_way tarn__gemm_split;

#endif
