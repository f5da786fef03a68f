// Products that are fused with a sum. Kernels are compiled without contraction (cmake/kernels.cmake), because each
// compiler would fuse other products, and one compiler others in a loop than in the rest of the same row. So a kernel
// says itself where a product and a sum are rounded once; bits are then those of the source.
#ifndef TARN_DEVICE_CPU_ISA_FMA_CPU_H
#define TARN_DEVICE_CPU_ISA_FMA_CPU_H

// Whether the instruction set has fused products: without, computing one would be a call of a function.
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA) || defined(__FP_FAST_FMAF)
#define TARN__HAS_FMA 1
#else
#define TARN__HAS_FMA 0
#endif

// a b + c, rounded once where TARN__HAS_FMA, else twice; in loops that the compiler vectorises.
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
