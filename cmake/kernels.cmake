# Kernels: the suffix of a file determines how it is compiled.
#   *_ref.c   plain C reference, compiled twice: TARN_REAL is float, then double
#   *_amx.c   the same for Intel's matrix extension, whose other kernels are those of avx512_bf16
#   *_cpu.c   fast kernels, compiled once for each instruction set: TARN_ISA is the suffix of the table it exports
# "portable" is for every processor, the other instruction sets are for x86-64 or for 64-bit ARM. TARN_X86 or TARN_ARM and,
# for each instruction set compiled, TARN_WITH_AVX2 and so on are defined for all our files; TARN_NEON for the kernels that
# are written for ARM's registers, because compilers for 64-bit ARM always have them, those of "portable" too; TARN_SVE
# for those that are written for SVE's.
#
# Kernels are large functions with many memory accesses. Under clang's address sanitizer they are compiled without the
# other sanitizer, which would check the same pointers again: this cuts the compile time to a fifth. Its options come
# after those of tarn_flags, which they revoke. Functions with more than 4,000 accesses are checked by calls, in the files
# of TARN_CHECKED_BY_CALLS those with more than 500: they take three to four times as long to compile with checks in
# place. With all functions checked by calls, tests take up to five times as long.
add_library(tarn_kernel_checks INTERFACE)
set(TARN_CHECKED_BY_CALLS
    ${PROJECT_SOURCE_DIR}/src/device/cpu/attention/attention_pairs_cpu.c
    ${PROJECT_SOURCE_DIR}/src/device/cpu/attention/attention_tiles_amx.c
    ${PROJECT_SOURCE_DIR}/src/device/cpu/recurrence/recurrence_cpu.c
    ${PROJECT_SOURCE_DIR}/src/device/cpu/rows/glu_cpu.c
    ${PROJECT_SOURCE_DIR}/src/device/cpu/rows/residual_norm_cpu.c)
if(TARN_SANITIZE MATCHES "address" AND CMAKE_C_COMPILER_ID MATCHES "Clang")
  target_compile_options(tarn_kernel_checks INTERFACE -fno-sanitize=null,object-size,pointer-overflow)
endif()

# Sets the number of accesses from which on the functions of kernels are checked by calls.
function(tarn_limit_checks)
  if(NOT TARN_SANITIZE MATCHES "address" OR NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
    return()
  endif()
  foreach(file ${ARGN})
    set(limit 4000)
    if(file IN_LIST TARN_CHECKED_BY_CALLS)
      set(limit 500)
    endif()
    set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "-mllvm;-asan-instrumentation-with-call-threshold=${limit}")
  endforeach()
endfunction()

function(tarn_add_variant suffix files definitions)
  add_library(tarn_kernels_${suffix} OBJECT ${files})
  tarn_limit_checks(${files})
  target_include_directories(tarn_kernels_${suffix} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(tarn_kernels_${suffix} PRIVATE tarn_flags tarn_dependencies tarn_kernel_checks)
  target_compile_definitions(tarn_kernels_${suffix} PRIVATE ${definitions})
  target_compile_options(tarn_kernels_${suffix} PRIVATE ${ARGN})
  set(TARN_KERNEL_TARGETS ${TARN_KERNEL_TARGETS} tarn_kernels_${suffix} PARENT_SCOPE)
endfunction()

# TARN_KERNELS selects the instruction sets:
#   all       every one, chosen at run time: for distribution
#   runnable  those that run on this machine and differ, for tests under sanitizers: others take minutes to compile
#   best      portable and the last of those, for a short build
#   portable  plain C only
set(TARN_KERNELS all CACHE STRING "instruction sets of the kernels: all, runnable (on this machine), best (of those), portable")
set_property(CACHE TARN_KERNELS PROPERTY STRINGS all runnable best portable)
set(TARN_KERNELS_OPTIMISATION -O3 CACHE STRING "optimisation of the kernels, in all but debug builds")

# Sets TARN_RUNNABLE: those of the given sets that this machine supports, as in src/device/cpu/isa/isa.c; all of them when
# compiling for another machine.
function(tarn_find_runnable)
  if(CMAKE_CROSSCOMPILING)
    set(TARN_RUNNABLE ${ARGN} PARENT_SCOPE)
    return()
  endif()
  set(flags)
  if(EXISTS /proc/cpuinfo)
    file(STRINGS /proc/cpuinfo flags REGEX "^(flags|Features)" LIMIT_COUNT 1)
    string(REPLACE " " ";" flags "${flags}")
  endif()
  set(length /proc/sys/abi/sve_default_vector_length)  # in bytes
  if(EXISTS ${length})
    file(STRINGS ${length} length LIMIT_COUNT 1)
    list(APPEND flags length_${length})
  endif()
  set(avx2_needs avx2 fma bmi2 f16c)
  set(avx512_needs ${avx2_needs} avx512f avx512bw avx512dq avx512vl)
  set(avx512_bf16_needs ${avx512_needs} avx512_bf16 avx512_vnni)
  set(amx_needs ${avx512_bf16_needs} amx_tile amx_bf16)
  set(neon_needs asimd)
  set(neon_dot_needs ${neon_needs} asimddp)
  set(neon_bf16_needs ${neon_dot_needs} bf16 i8mm)
  set(sve_256_needs ${neon_bf16_needs} sve svebf16 svei8mm length_32)
  set(sve_512_needs ${neon_needs} sve length_64)
  set(runnable)
  foreach(isa ${ARGN})
    set(runs ON)
    foreach(need ${${isa}_needs})
      if(NOT need IN_LIST flags)
        set(runs OFF)
      endif()
    endforeach()
    if(runs)
      list(APPEND runnable ${isa})
    endif()
  endforeach()
  set(TARN_RUNNABLE ${runnable} PARENT_SCOPE)
endfunction()

set(TARN_ISA_NAMES)
set(sets)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_definitions(tarn_flags INTERFACE TARN_X86=1)
  set(sets avx2 avx512 avx512_bf16 amx)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  target_compile_definitions(tarn_flags INTERFACE TARN_ARM=1)
  set(sets neon neon_dot neon_bf16)
  if(CMAKE_C_COMPILER_ID STREQUAL "GNU")  # clang keeps vectors of SVE's length in memory between its instructions
    list(APPEND sets sve_256 sve_512)
  endif()
endif()
if(sets)
  tarn_find_runnable(${sets})
  if(TARN_KERNELS STREQUAL "all")
    set(TARN_ISA_NAMES ${sets})
  elseif(TARN_KERNELS STREQUAL "runnable")
    set(TARN_ISA_NAMES ${TARN_RUNNABLE})
    if("avx512_bf16" IN_LIST TARN_RUNNABLE)
      list(REMOVE_ITEM TARN_ISA_NAMES avx512)  # the same code, except for the conversion of bf16, which is the same as
                                               # in avx2
    endif()
  elseif(TARN_KERNELS STREQUAL "best" AND "amx" IN_LIST TARN_RUNNABLE)
    set(TARN_ISA_NAMES avx512_bf16 amx)  # kernels without tiles are those of avx512_bf16
  elseif(TARN_KERNELS STREQUAL "best" AND TARN_RUNNABLE)
    list(REMOVE_ITEM TARN_RUNNABLE sve_256 sve_512)  # the program uses them only where TARN_ISA names them
    list(GET TARN_RUNNABLE -1 TARN_ISA_NAMES)
  elseif(NOT TARN_KERNELS MATCHES "^(best|portable)$")
    message(FATAL_ERROR "TARN_KERNELS is \"${TARN_KERNELS}\"; one of all, runnable, best, portable is expected")
  endif()
endif()
foreach(isa ${TARN_ISA_NAMES})
  string(TOUPPER ${isa} name)
  target_compile_definitions(tarn_flags INTERFACE TARN_WITH_${name}=1)
endforeach()
list(PREPEND TARN_ISA_NAMES portable)
set(TARN_ISA_VARIANTS ${TARN_ISA_NAMES})  # of *_cpu.c; AMX only has *_amx.c
list(REMOVE_ITEM TARN_ISA_VARIANTS amx)
set(TARN_ISA_FLAGS_portable)
set(TARN_ISA_FLAGS_avx2 -mavx2 -mfma -mbmi2 -mf16c)
set(TARN_ISA_FLAGS_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mbmi2 -mf16c -mprefer-vector-width=512)
set(TARN_ISA_FLAGS_avx512_bf16 ${TARN_ISA_FLAGS_avx512} -mavx512bf16 -mavx512vnni)
set(TARN_ISA_FLAGS_neon -march=armv8-a -DTARN_NEON=1)
set(TARN_ISA_FLAGS_neon_dot -march=armv8.2-a+dotprod -DTARN_NEON=1)
set(TARN_ISA_FLAGS_neon_bf16 -march=armv8.2-a+dotprod+i8mm+bf16 -DTARN_NEON=1)
# Without masks in the loops that gcc vectorises itself: where a loop has them and an element takes several registers, gcc 12
# reads all of a sum from its first register (the reduction of quantise() in gemm_cpu.c).
# The length of registers is an option of a whole compilation, which link-time optimisation would mix.
set(TARN_SVE_FLAGS -DTARN_SVE=1 -fno-lto "SHELL:--param vect-partial-vector-usage=0")
set(TARN_ISA_FLAGS_sve_256 -march=armv8.2-a+dotprod+i8mm+bf16+sve -msve-vector-bits=256 ${TARN_SVE_FLAGS})
set(TARN_ISA_FLAGS_sve_512 -march=armv8.2-a+sve -msve-vector-bits=512 ${TARN_SVE_FLAGS})

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
    # No contraction: fusion is explicit (src/device/cpu/isa/fma_cpu.h), so every compiler gives the same bits.
    set(optimisation $<$<NOT:$<CONFIG:Debug>>:${TARN_KERNELS_OPTIMISATION}>)
    foreach(isa ${TARN_ISA_VARIANTS})
      tarn_add_variant(${isa} "${cpu_files}" "TARN_ISA=${isa}"
        ${optimisation} -ffp-contract=off ${TARN_ISA_FLAGS_${isa}})
    endforeach()
    if("amx" IN_LIST TARN_ISA_NAMES)
      file(GLOB_RECURSE amx_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*_amx.c)
      tarn_add_variant(amx "${amx_files}" ""
        ${optimisation} -ffp-contract=off ${TARN_ISA_FLAGS_avx512_bf16} -mamx-tile -mamx-bf16 -mamx-int8)
    endif()
  endif()
  set(TARN_KERNEL_TARGETS ${TARN_KERNEL_TARGETS} PARENT_SCOPE)
endfunction()
