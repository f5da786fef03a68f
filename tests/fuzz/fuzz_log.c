// The log of a run that goes on, which is cut back to where the run stands. The first byte is that update, the second
// chooses whether the log goes to a file for TensorBoard as well.
#include <stdlib.h>
#include <sys/stat.h>

#include "fuzz/fuzz.h"
#include "train/run_log.h"

static tarn_config *config;

void fuzz_prepare(void) {
  static const char text[] = "decoder: { layers: L }\nkinds: { L: }\nsets: { test: { data: x }, held: { data: y } }\n";
  if (tarn_config_parse(&config, "fuzz.yaml", text, sizeof text - 1, NULL, 0) != TARN_STATUS_OK) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char FILE_NAME[] = "log.jsonl", EVENTS[] = "events";
  if (size < 2) return 0;
  const tarn__progress progress = {.update = data[0], .scored = {data[0] + 1}};
  const bool events = data[1] % 8 == 1;
  tarn__run_log log = {.fd = -1, .events = {.fd = -1}};
  char *line = NULL;
  fuzz_write(FILE_NAME, data + 2, size - 2);
  if (events && mkdir(EVENTS, 0777) != 0) abort();
  if (fuzz_good(tarn__run_log_open(&log, FILE_NAME, events ? EVENTS : NULL, &progress, config))) {
    json_t *record = json_pack("{s:s, s:i, s:f}", "kind", "train", "step", data[0] + 1, "loss", 1.5);
    if (fuzz_good(tarn__run_log_add(&log, record, &line))) free(line);
  }
  tarn__run_log_close(&log);
  if (events) fuzz_remove(EVENTS);
  return 0;
}
