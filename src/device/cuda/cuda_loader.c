// The device type "cuda" as the library sees it before the CUDA module is loaded, and the loading. A device that it
// opens has the module's own type, which is also named "cuda" and has all kernels.
#include <dlfcn.h>
#include <string.h>

#include "base/load_module.h"
#include "device/cuda/cuda_module.h"
#include "device/devices.h"

static tarn_status fail_line(tarn_status status, const char *line) { return tarn__fail(status, "%s", line); }

static tarn_status no_module(const char *why) {
  return tarn__fail(TARN_STATUS_UNSUPPORTED,
                    "the module of the device cuda cannot be loaded: %s (docs/devices.md says how it is built, "
                    "installed and found)",
                    why);
}

static tarn_status load(const tarn__cuda_module **out) {
  static const tarn__cuda_calls calls = {.fail = fail_line, .param_accumulate = tarn__param_accumulate};
  static const tarn__cuda_build own = TARN__CUDA_BUILD;
  static const tarn__cuda_module *module;
  *out = module;
  if (module) return TARN_STATUS_OK;
  const char *why;
  // Not RTLD_NODELETE etc.: the module is never closed.
  void *library =
      tarn__module_load(&(tarn__module_place){"tarn-cuda.so", "TARN_CUDA_MODULES", TARN_MODULE_FOLDER, RTLD_NOW}, &why);
  if (!library) return no_module(why);
  const tarn__cuda_module *found = dlsym(library, "tarn__cuda_module_entry");
  if (!found) return no_module("it is no module of tarn");
  if (memcmp(&found->build, &own, sizeof own) != 0) return no_module("it is of another version or build of tarn");
  TARN_TRY(found->start(&calls));
  *out = module = found;
  return TARN_STATUS_OK;
}

static tarn_status open(const tarn__device **device, int ordinal) {
  const tarn__cuda_module *module;
  TARN_TRY(load(&module));
  return module->open(device, ordinal);
}

const tarn__device_type tarn__cuda_type = {.name = "cuda", .accelerator = true, .open = open};
