// Trains a model by its description: train_model CONFIG.yaml RUN [KEY=VALUE...]
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

#include "tarn/measure.h"
#include "tarn/train.h"

static volatile sig_atomic_t stop;
static void on_signal(int number) { stop = number; }

static void on_event(void *user, const tarn_train_event *event) {
  (void)user;
  if (event->kind == TARN_TRAIN_EVENT_LOG) printf("update %" PRId64 ": loss %.3f\n", event->update, event->loss);
  if (event->kind == TARN_TRAIN_EVENT_VALID)
    printf("update %" PRId64 ": validation loss %.3f%s\n", event->update,
           event->scores[tarn_measure_find("loss")->number], event->best ? ", the best so far" : "");
}

int main(int argc, char **argv) {
  if (argc < 3) return fprintf(stderr, "usage: train_model CONFIG.yaml RUN [KEY=VALUE...]\n"), 2;
  signal(SIGINT, on_signal);  // the training then saves its state and ends with TARN_STATUS_INTERRUPTED
  tarn_train_options options;
  tarn_train_default(&options);
  options.config = argv[1];
  options.run = argv[2];
  options.overrides = (const char *const *)(argv + 3);
  options.override_count = (size_t)argc - 3;
  options.on_event = on_event;
  options.stop = &stop;
  tarn_train *train = NULL;
  tarn_train_result result;
  tarn_status status = tarn_train_open(&train, &options);
  if (status == TARN_STATUS_OK) status = tarn_train_run(train, &result);
  if (status == TARN_STATUS_OK) printf("%s after %" PRId64 " updates\n", result.checkpoint, result.update);
  if (status != TARN_STATUS_OK) fprintf(stderr, "train_model: %s\n", tarn_error_message());
  tarn_train_close(&train);
  return status == TARN_STATUS_OK ? 0 : 1;
}
