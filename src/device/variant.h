// Names of kernels that are compiled several times from one source file (see cmake/kernels.cmake).
//   NAME_ref.c  twice: TARN_REAL is float, then double;    TARN__REF(f)  is f_f32, then f_f64
//   NAME_cpu.c  once per instruction set, TARN_ISA;        TARN__FAST(f) is f_portable, f_avx2, f_avx512,
//                                                              f_avx512_bf16, f_neon, f_neon_dot, f_neon_bf16,
//                                                              f_sve_256, f_sve_512
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

// TARN_WITH_AVX2 and so on are defined for the instruction sets compiled in addition to portable. Each macro below
// expands to the declaration of its table or to its selection, or to nothing.
#ifdef TARN_WITH_AVX2
#define TARN__AVX2_TABLE(table) , table##_avx2
#define TARN__AVX2_NOW(table) tarn__isa_now() >= TARN__ISA_AVX2 ? &table##_avx2:
#else
#define TARN__AVX2_TABLE(table)
#define TARN__AVX2_NOW(table)
#endif
#ifdef TARN_WITH_AVX512
#define TARN__AVX512_TABLE(table) , table##_avx512
#define TARN__AVX512_NOW(table) tarn__isa_now() >= TARN__ISA_AVX512 ? &table##_avx512:
#else
#define TARN__AVX512_TABLE(table)
#define TARN__AVX512_NOW(table)
#endif
#ifdef TARN_WITH_AVX512_BF16
#define TARN__AVX512_BF16_TABLE(table) , table##_avx512_bf16
#define TARN__AVX512_BF16_NOW(table) tarn__isa_now() >= TARN__ISA_AVX512_BF16 ? &table##_avx512_bf16:
#else
#define TARN__AVX512_BF16_TABLE(table)
#define TARN__AVX512_BF16_NOW(table)
#endif
#ifdef TARN_WITH_NEON
#define TARN__NEON_TABLE(table) , table##_neon
#define TARN__NEON_NOW(table) tarn__isa_now() >= TARN__ISA_NEON ? &table##_neon:
#else
#define TARN__NEON_TABLE(table)
#define TARN__NEON_NOW(table)
#endif
#ifdef TARN_WITH_NEON_DOT
#define TARN__NEON_DOT_TABLE(table) , table##_neon_dot
#define TARN__NEON_DOT_NOW(table) tarn__isa_now() >= TARN__ISA_NEON_DOT ? &table##_neon_dot:
#else
#define TARN__NEON_DOT_TABLE(table)
#define TARN__NEON_DOT_NOW(table)
#endif
#ifdef TARN_WITH_NEON_BF16
#define TARN__NEON_BF16_TABLE(table) , table##_neon_bf16
#define TARN__NEON_BF16_NOW(table) tarn__isa_now() >= TARN__ISA_NEON_BF16 ? &table##_neon_bf16:
#else
#define TARN__NEON_BF16_TABLE(table)
#define TARN__NEON_BF16_NOW(table)
#endif

#ifdef TARN_WITH_SVE_256
#define TARN__SVE_256_TABLE(table) , table##_sve_256
#define TARN__SVE_256_NOW(table) tarn__isa_now() >= TARN__ISA_SVE_256 ? &table##_sve_256:
#else
#define TARN__SVE_256_TABLE(table)
#define TARN__SVE_256_NOW(table)
#endif

#ifdef TARN_WITH_SVE_512
#define TARN__SVE_512_TABLE(table) , table##_sve_512
#define TARN__SVE_512_NOW(table) tarn__isa_now() >= TARN__ISA_SVE_512 ? &table##_sve_512:
#else
#define TARN__SVE_512_TABLE(table)
#define TARN__SVE_512_NOW(table)
#endif

// Declares the tables of a type of the same name, one per instruction set, in the op's header.
#define TARN__TABLES(table)                                                                                            \
  extern const table table##_portable TARN__AVX2_TABLE(table) TARN__AVX512_TABLE(table) TARN__AVX512_BF16_TABLE(table) \
      TARN__NEON_TABLE(table) TARN__NEON_DOT_TABLE(table) TARN__NEON_BF16_TABLE(table) TARN__SVE_256_TABLE(table)      \
          TARN__SVE_512_TABLE(table)

// Selects the table of the instruction set in use. All fast kernels of an op's file are in one table.
#define TARN__TABLE_NOW(table)                                                                            \
  (TARN__SVE_512_NOW(table) TARN__SVE_256_NOW(table) TARN__NEON_BF16_NOW(table) TARN__NEON_DOT_NOW(table) \
       TARN__NEON_NOW(table) TARN__AVX512_BF16_NOW(table) TARN__AVX512_NOW(table)                         \
           TARN__AVX2_NOW(table)(&table##_portable))

#endif
