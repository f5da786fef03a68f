// Activations of a register, and their derivatives.
#ifndef TARN_DEVICE_CPU_ROWS_ACTIVATION_VEC_H
#define TARN_DEVICE_CPU_ROWS_ACTIVATION_VEC_H

#include "device/cpu/isa/vec_cpu.h"
#include "ops/activation_forms.h"

#endif
