# Kernels: a file's ending chooses how it is compiled.
#   *_ref.c   plain C reference, compiled twice: TARN_REAL is float, then double
#   *_amx.c   the same for Intel's matrix extension, where the others are those of avx512_bf16
#   *_cpu.c   fast kernels, compiled once for each instruction set: TARN_ISA is the suffix of the table it exports
# TARN_ISA_VARIANTS lists the instruction sets that were compiled; all of them but "portable" are for x86-64, and each
# defines TARN_X86 for every file of ours.
function(tarn_add_variant suffix files definitions)
  add_library(tarn_kernels_${suffix} OBJECT ${files})
  target_include_directories(tarn_kernels_${suffix} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(tarn_kernels_${suffix} PRIVATE tarn_flags tarn_dependencies)
  target_compile_definitions(tarn_kernels_${suffix} PRIVATE ${definitions})
  target_compile_options(tarn_kernels_${suffix} PRIVATE ${ARGN})
  set(TARN_KERNEL_TARGETS ${TARN_KERNEL_TARGETS} tarn_kernels_${suffix} PARENT_SCOPE)
endfunction()

set(TARN_ISA_VARIANTS portable)
# Fuzzing looks at readers, and instrumented vector kernels take clang many minutes.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND NOT TARN_FUZZ)
  list(APPEND TARN_ISA_VARIANTS avx2 avx512 avx512_bf16)
  target_compile_definitions(tarn_flags INTERFACE TARN_X86=1)
endif()
# For people: AMX has *_amx.c alone.
set(TARN_ISA_NAMES ${TARN_ISA_VARIANTS})
if("avx512_bf16" IN_LIST TARN_ISA_VARIANTS)
  list(APPEND TARN_ISA_NAMES amx)
endif()
set(TARN_ISA_FLAGS_portable)
set(TARN_ISA_FLAGS_avx2 -mavx2 -mfma -mbmi2 -mf16c)
set(TARN_ISA_FLAGS_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mbmi2 -mf16c -mprefer-vector-width=512)
set(TARN_ISA_FLAGS_avx512_bf16 ${TARN_ISA_FLAGS_avx512} -mavx512bf16 -mavx512vnni)

# Sets TARN_KERNEL_TARGETS: the object libraries.
function(tarn_add_kernels)
  file(GLOB_RECURSE ref_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*_ref.c)
  file(GLOB_RECURSE cpu_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*_cpu.c)
  if(ref_files)
    tarn_add_variant(ref_f32 "${ref_files}" "TARN_REAL=float;TARN_REF_SUFFIX=_f32"
      -ffp-contract=off)
    tarn_add_variant(ref_f64 "${ref_files}" "TARN_REAL=double;TARN_REF_SUFFIX=_f64"
      -ffp-contract=off)
  endif()
  if(cpu_files)
    # No contraction: what is fused is written (src/device/cpu/fma_cpu.h), so that every compiler gives the same bits.
    # With -O3 and sanitizers gcc takes minutes and gigabytes for what it unrolls.
    set(optimisation $<$<NOT:$<CONFIG:Debug>>:-O3>)
    if(TARN_SANITIZE)
      set(optimisation -O1)
    endif()
    foreach(isa ${TARN_ISA_VARIANTS})
      tarn_add_variant(${isa} "${cpu_files}" "TARN_ISA=${isa}"
        ${optimisation} -ffp-contract=off ${TARN_ISA_FLAGS_${isa}})
    endforeach()
    if("avx512_bf16" IN_LIST TARN_ISA_VARIANTS)
      file(GLOB_RECURSE amx_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*_amx.c)
      tarn_add_variant(amx "${amx_files}" ""
        ${optimisation} -ffp-contract=off ${TARN_ISA_FLAGS_avx512_bf16} -mamx-tile -mamx-bf16 -mamx-int8)
    endif()
  endif()
  set(TARN_KERNEL_TARGETS ${TARN_KERNEL_TARGETS} PARENT_SCOPE)
endfunction()
