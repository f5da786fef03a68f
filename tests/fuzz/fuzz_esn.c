// The file of an echo state network, and the same file as matrices of others that a network is trained with.
#include <stdlib.h>

#include "fuzz/fuzz.h"
#include "tarn/lab/series.h"

enum { MOST_UNITS = 64, STEPS = 3 };

static tarn_series *lorenz;

static void leave_series(void) { tarn_series_close(&lorenz); }

void fuzz_prepare(void) {
  tarn_series_recipe recipe;
  tarn_series_recipe_default(&recipe, TARN_SERIES_LORENZ);
  recipe.rows = 40;
  recipe.discard = 10;
  fuzz_must(tarn_series_generate(&lorenz, &recipe));
  atexit(leave_series);
}

static void forecast(const tarn_esn *esn) {
  tarn_esn_info info;
  tarn_series *steps;
  tarn_esn_describe(esn, &info);
  if (info.units > MOST_UNITS) return;
  if (!fuzz_good(tarn_esn_forecast(esn, &steps, lorenz, 20, STEPS, TARN_FORECAST_CLOSED))) return;
  tarn_forecast_measures measures;
  (void)fuzz_good(tarn_forecast_measure(&measures, steps, lorenz, 20, NULL, 0.4));
  tarn_series_close(&steps);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tarn_esn *esn, *again;
  fuzz_write("esn.safetensors", data, size);
  if (fuzz_good(tarn_esn_open(&esn, "esn.safetensors"))) {
    forecast(esn);
    if (fuzz_good(tarn_esn_save(esn, "again.safetensors"))) {
      fuzz_must(tarn_esn_open(&again, "again.safetensors"));
      tarn_esn_close(&again);
    }
    tarn_esn_close(&esn);
  }
  if (size % 2) return 0;
  tarn_esn_options options;
  tarn_esn_default(&options);
  options.matrices = "esn.safetensors";
  options.warmup = 2;
  if (fuzz_good(tarn_esn_train(&esn, lorenz, 20, &options))) tarn_esn_close(&esn);
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed) {
  return fuzz_mutate_tensors(data, size, room, seed);
}
