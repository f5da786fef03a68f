# The CUDA module compiled for the host (README.md), in a folder of its own, which TARN_CUDA_MODULES names; and the tests
# that use it.
set(cuda_folder ${CMAKE_CURRENT_BINARY_DIR}/cuda_host)
set(host_sources ${TARN_CUDA_SOURCES})
list(TRANSFORM host_sources PREPEND ${PROJECT_SOURCE_DIR}/ REGEX "^src/")
list(FILTER host_sources EXCLUDE REGEX "_cublas\\.cu$")  # products by the library: products.cc

# Compiles CUDA sources by the C++ compiler, with the threads and the runtime of the host.
function(tarn_cuda_for_host target)
  set_source_files_properties(${ARGN} PROPERTIES LANGUAGE CXX)
  target_sources(${target} PRIVATE ${ARGN} cuda_host/fibres.cc cuda_host/runtime.cc)
  target_include_directories(${target} PRIVATE cuda_host ${PROJECT_SOURCE_DIR}/src)
  target_include_directories(${target} SYSTEM PRIVATE cuda_host/include)
  target_compile_definitions(${target} PRIVATE TARN_CUDA_HOST TARN_CUDA_TOOLKIT="cuda-host")
  target_compile_options(${target} PRIVATE -O2 -g1 -Wno-shadow -Wno-unused-function -Wno-unknown-pragmas -ffp-contract=off)
  target_link_libraries(${target} PRIVATE tarn_flags ${CMAKE_DL_LIBS})
  if(TARN_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # Each fibre would get a second stack of megabytes from the sanitizer, for variables that outlive their function, and
    # give it back: four fifths of the time of a test.
    target_compile_options(${target} PRIVATE -fsanitize-address-use-after-return=never)
  endif()
endfunction()

add_library(tarn_cuda_host MODULE cuda_host/products.cc)
tarn_cuda_for_host(tarn_cuda_host ${host_sources})
set_target_properties(tarn_cuda_host PROPERTIES PREFIX "" OUTPUT_NAME tarn-cuda LIBRARY_OUTPUT_DIRECTORY ${cuda_folder})
# And NCCL for it: LD_LIBRARY_PATH names the folder.
add_library(fake_nccl SHARED cuda_host/fake_nccl.cc)
set_target_properties(fake_nccl PROPERTIES OUTPUT_NAME nccl SOVERSION 2 CXX_VISIBILITY_PRESET default
  LIBRARY_OUTPUT_DIRECTORY ${cuda_folder})
# And the program of scripts/gpu.sh that measures a card's limits.
add_executable(cuda_ceilings_host)
tarn_cuda_for_host(cuda_ceilings_host ${PROJECT_SOURCE_DIR}/bench/cuda_ceilings.cu)
set_target_properties(cuda_ceilings_host PROPERTIES OUTPUT_NAME cuda_ceilings RUNTIME_OUTPUT_DIRECTORY ${cuda_folder})

# Tests of the host itself.
add_executable(must_notice)
tarn_cuda_for_host(must_notice cuda_host/must_notice.cc)
tarn_add_test(must_notice cuda must_notice)
add_executable(mma_layouts)
tarn_cuda_for_host(mma_layouts cuda_host/mma_layouts.cu)
tarn_add_test(mma_layouts cuda mma_layouts)

# Tests that compare the device of TARN_DEVICE with the reference, on that module: in the natural order of threads and in two
# orders by random numbers, which share the cases (run.sh). They are an odd number, since cases come in pairs, with gradients
# and without. Under sanitizers one of the shares runs.
set(cuda_orders "0 1 2")
if(TARN_SANITIZE)
  set(cuda_orders 1)
  list(REMOVE_ITEM cuda_tests test_golden)
endif()
foreach(name ${cuda_tests})
  if(name STREQUAL "test_golden")  # which has no shares
    set(how 1 0)
  else()
    set(how 3 "${cuda_orders}")
  endif()
  tarn_add_test(${name} cuda ${CMAKE_CURRENT_SOURCE_DIR}/cuda_host/run.sh ${cuda_folder}/${name}.ran ${how} $<TARGET_FILE:${name}>)
  set_property(TEST cuda/${name} APPEND PROPERTY ENVIRONMENT "TARN_CUDA_MODULES=${cuda_folder}")
  set_tests_properties(cuda/${name} PROPERTIES FIXTURES_SETUP cuda_kernels)
endforeach()
if(NOT TARN_SANITIZE)
  tarn_add_test(nvcc house ${CMAKE_CURRENT_SOURCE_DIR}/cuda_host/nvcc.sh ${PROJECT_VERSION} ${TARN_CUDA_SOURCES})
  set_property(TEST cuda/test_golden APPEND PROPERTY ENVIRONMENT TARN_SAMPLE=1)  # without copies of the batch
  tarn_add_test(coverage cuda ${CMAKE_CURRENT_SOURCE_DIR}/cuda_host/coverage.sh $<TARGET_FILE:tarn_cuda_host> ${cuda_folder})
  set_tests_properties(cuda/coverage PROPERTIES FIXTURES_REQUIRED cuda_kernels)
endif()
