// The log of a run that goes on, which is cut back to where the run stands. The first byte is that update, the second
// chooses whether the log goes to a file for TensorBoard as well.
#include <stdlib.h>
#include <sys/stat.h>

#include "fuzz/fuzz.h"
#include "run/run_log.h"

void fuzz_prepare(void) {}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char FILE_NAME[] = "log.jsonl", EVENTS[] = "events";
  if (size < 2) return 0;
  static const char *const sets[] = {"test", "held"};
  const int64_t scored[] = {data[0] + 1, 0};
  const tarn__run_log_place at = {.update = data[0], .sets = sets, .scored = scored, .set_count = 2};
  const bool events = data[1] % 8 == 1;
  tarn__run_log log = {.fd = -1, .events = {.fd = -1}};
  char *line = NULL;
  fuzz_write(FILE_NAME, data + 2, size - 2);
  if (events && mkdir(EVENTS, 0777) != 0) abort();
  if (fuzz_good(tarn__run_log_open(&log, FILE_NAME, &at, events ? EVENTS : NULL, NULL))) {
    json_t *record = json_pack("{s:s, s:i, s:f}", "kind", "train", "step", data[0] + 1, "loss", 1.5);
    if (fuzz_good(tarn__run_log_add(&log, record, &line))) free(line);
  }
  tarn__run_log_close(&log);
  if (events) fuzz_remove(EVENTS);
  return 0;
}
