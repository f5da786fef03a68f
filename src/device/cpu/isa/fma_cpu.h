// Fused multiply-adds. Kernels are compiled without contraction (cmake/kernels.cmake), because each compiler would fuse
// different products, and the same compiler different ones in a loop and in the remainder of a row. So kernels state
// explicitly where a product and a sum are rounded once, and the source determines the bits.
#ifndef TARN_DEVICE_CPU_ISA_FMA_CPU_H
#define TARN_DEVICE_CPU_ISA_FMA_CPU_H

// Whether the instruction set has fused multiply-adds: without them, each would be a function call.
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA) || defined(__FP_FAST_FMAF)
#define TARN__HAS_FMA 1
#else
#define TARN__HAS_FMA 0
#endif

// a b + c, rounded once if TARN__HAS_FMA, else twice; compilers vectorise it in loops.
static inline __attribute__((always_inline)) float tarn__fma(float a, float b, float c) {
#if TARN__HAS_FMA
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

static inline __attribute__((always_inline)) double tarn__fma_double(double a, double b, double c) {
#if TARN__HAS_FMA
  return __builtin_fma(a, b, c);
#else
  return a * b + c;
#endif
}

#endif
