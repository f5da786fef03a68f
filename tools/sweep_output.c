#include "sweep_output.h"

#include <math.h>
#include <stdio.h>

#include "cli.h"
#include "json_output.h"
#include "tarn/measure.h"

static void set_number(json_t *object, const char *key, double value) {
  if (!isnan(value)) json_object_set_new(object, key, json_real(value));
}

json_t *sweep_run_json(const tarn_sweep *sweep, const tarn_sweep_run *run) {
  json_t *object = json_pack("{s:s, s:I, s:s, s:I, s:f}", "variant", sweep->variants[run->variant].name, "seed",
                             (json_int_t)run->seed, "state", tarn_sweep_state_name(run->state), "update",
                             (json_int_t)run->update, "seconds", run->seconds);
  if (run->path) json_object_set_new(object, "path", json_output_text(run->path));
  set_number(object, "loss", run->loss);
  for (int m = 0; m < tarn_measure_count(); m++) {
    const tarn_measure *measure = tarn_measure_of(m);
    char key[32];
    snprintf(key, sizeof key, "valid_%s", measure->word);
    if (!measure->derived) set_number(object, key, run->valid[m]);
  }
  set_number(object, "test_bleu", run->test_bleu);
  set_number(object, "test_blimp", run->test_blimp);
  for (int m = 0; m < tarn_measure_count(); m++) {
    char key[32];
    snprintf(key, sizeof key, "test_%s", tarn_measure_of(m)->word);
    set_number(object, key, run->test[m]);
  }
  if (run->message) json_object_set_new(object, "message", json_output_text(run->message));
  if (run->job) json_object_set_new(object, "job", json_output_text(run->job));
  if (run->job_state) json_object_set_new(object, "job_state", json_output_text(run->job_state));
  set_number(object, "idle", run->idle);
  if (run->reuse) json_object_set_new(object, "reuse", json_output_text(run->reuse));
  return object;
}

// The results of a run, after its name.
void sweep_print_state(const tarn_sweep *sweep, const tarn_sweep_run *run) {
  char time[32];
  if (run->update > 0) printf("  update %lld, %s of training", (long long)run->update, cli_time(time, run->seconds));
  if (!isnan(run->loss)) printf(", loss %.3f", run->loss);
  const tarn_measure *measure = tarn_measure_of(tarn_config_metric(sweep->variants[run->variant].config));
  if (!isnan(run->valid[measure->number]))
    printf(", validation %s %.*f", measure->name, measure->digits, run->valid[measure->number]);
  if (!isnan(run->test_bleu)) printf(", test BLEU %.2f", run->test_bleu);
  if (!isnan(run->test_blimp)) printf(", BLiMP %.2f %%", run->test_blimp);
  // The measure that selected the model, if the test has it.
  const bool chosen = !isnan(run->test[measure->number]);
  for (int m = 0; m < tarn_measure_count(); m++) {
    const tarn_measure *test = tarn_measure_of(m);
    if (!isnan(run->test[m]) && (!chosen || test == measure))
      printf(", test %s %.*f", test->name, test->digits, run->test[m]);
  }
}
