// The interface of the CUDA module, a shared library that is loaded when a CUDA device is first asked for
// (cuda_loader.c). It shares internal structures with the program, so both must be of one build.
//
// This header is included by C and by CUDA C++.
#ifndef TARN_DEVICE_CUDA_CUDA_MODULE_H
#define TARN_DEVICE_CUDA_CUDA_MODULE_H

#include "base/status.h"
#include "device/device.h"
#include "device/op_list.h"
#include "graph/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

// What the module calls in the library. The program may contain the library, so the module cannot link with it.
typedef struct tarn__cuda_calls {
  tarn_status (*fail)(tarn_status status, const char *line);  // tarn__fail()
  int (*param_accumulate)(tarn__param *param);                // graph/graph.h
} tarn__cuda_calls;

// The build of a module or program. They fit only if all of it is equal.
typedef struct tarn__cuda_build {
  char version[32];
  int32_t ops, device_type, node, tensor, param;  // number of ops, sizes of structures
} tarn__cuda_build;

#define TARN__CUDA_BUILD                                                                      \
  {                                                                                           \
    TARN_VERSION, TARN__OPS, (int32_t)sizeof(tarn__device_type), (int32_t)sizeof(tarn__node), \
        (int32_t)sizeof(tarn__tensor), (int32_t)sizeof(tarn__param)                           \
  }

// The only exported symbol of a module, "tarn__cuda_module_entry".
typedef struct tarn__cuda_module {
  tarn__cuda_build build;  // read before anything else
  const char *toolkit;     // what it was built with, for messages: "CUDA 13.0"
  tarn_status (*start)(const tarn__cuda_calls *calls) TARN_CHECKED;
  tarn_status (*open)(const tarn__device **device, int ordinal) TARN_CHECKED;
} tarn__cuda_module;

#ifdef __cplusplus
}
#endif

#endif
