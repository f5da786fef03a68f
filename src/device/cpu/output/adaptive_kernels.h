// Kernels that join the bands of a vocabulary (ops/adaptive.h).
#ifndef TARN_DEVICE_CPU_OUTPUT_ADAPTIVE_KERNELS_H
#define TARN_DEVICE_CPU_OUTPUT_ADAPTIVE_KERNELS_H

#include "graph/graph.h"

tarn_status tarn__cpu_adaptive_rows(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_adaptive_scores(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_loss_sum(const tarn__exec *exec, const tarn__node *node);

#endif
