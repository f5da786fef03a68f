// Names of kernels that are compiled more than once from one source file (see cmake/kernels.cmake).
//   NAME_ref.c  twice: TARN_REAL is float, then double;      TARN__REF(f)  is f_f32, then f_f64
//   NAME_cpu.c  once for each instruction set, TARN_ISA;     TARN__FAST(f) is f_portable, f_avx2, f_avx512,
//                                                               f_avx512_bf16
#ifndef TARN_DEVICE_VARIANT_H
#define TARN_DEVICE_VARIANT_H

#define TARN__JOIN_(a, b) a##b
#define TARN__JOIN(a, b) TARN__JOIN_(a, b)

#ifdef TARN_REF_SUFFIX
#define TARN__REF(name) TARN__JOIN(name, TARN_REF_SUFFIX)
#endif

#ifdef TARN_ISA
#define TARN__FAST(name) TARN__JOIN(name##_, TARN_ISA)
#endif

// Declares the tables of a type that has the same name, one for each instruction set, in the op's header.
#ifdef TARN_X86
#define TARN__TABLES(table) extern const table table##_portable, table##_avx2, table##_avx512, table##_avx512_bf16
#else
#define TARN__TABLES(table) extern const table table##_portable
#endif

// How an op's own file finds the table of the instruction set in use: all of its fast kernels are in one table a file.
#ifdef TARN_X86
#define TARN__TABLE_NOW(table)                                     \
  (tarn__isa_now() >= TARN__ISA_AVX512_BF16 ? &table##_avx512_bf16 \
   : tarn__isa_now() == TARN__ISA_AVX512    ? &table##_avx512      \
   : tarn__isa_now() == TARN__ISA_AVX2      ? &table##_avx2        \
                                            : &table##_portable)
#else
#define TARN__TABLE_NOW(table) (&table##_portable)
#endif

#endif
