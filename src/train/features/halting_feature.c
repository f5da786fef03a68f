// The mean number of steps that a token runs since the last line of the log, by adaptive computation time
// ("encoder_steps", "decoder_steps").
#include "ops/halting.h"
#include "store/checkpoint_keys.h"
#include "task/task.h"
#include "train/feature.h"
#include "train/trainer.h"

// Of each stack: rows, and the steps that they ran.
typedef struct halting_sums {
  double rows, steps;
} halting_sums;

enum { TEXT = 128 };

typedef struct halting_state {
  halting_sums sums[TARN__STACKS];
  halting_sums batches[TARN__STACKS];  // of this rank, in the current update
  char text[TEXT];                     // sums, for checkpoints
} halting_state;

static bool wanted(const tarn_config *config) {
  return config->encoder.act_threshold > 0 || config->decoder.act_threshold > 0;
}

static tarn_status load(tarn_train *t, void *state, const tarn__checkpoint_file *file) {
  halting_state *s = state;
  const char *text = tarn__safetensors_text(&file->tensors, TARN__KEY_HALTING);
  (void)t;
  if (!text) return TARN_STATUS_OK;
  const int read =
      sscanf(text, "%lf %lf %lf %lf", &s->sums[0].rows, &s->sums[0].steps, &s->sums[1].rows, &s->sums[1].steps);
  TARN_REQUIRE(read == 4, DATA, "%s: its sums of steps are not four numbers", file->tensors.path);
  return TARN_STATUS_OK;
}

static void save(tarn_train *t, void *state, tarn__checkpoint_extra *extra) {
  halting_state *s = state;
  (void)t;
  snprintf(s->text, sizeof s->text, "%.17g %.17g %.17g %.17g", s->sums[0].rows, s->sums[0].steps, s->sums[1].rows,
           s->sums[1].steps);
  extra->halting = s->text;
}

static void add(void *user, int64_t owner, bool first, double running, int64_t rows) {
  halting_sums *sums = &((halting_state *)user)->batches[owner];
  if (first) sums->rows += (double)rows;
  sums->steps += running;
}

static tarn_status ran(tarn_train *t, void *state, const tarn__graph *graph, tarn__step_kind kind) {
  (void)t;
  return kind == TARN__STEP_TRAIN ? tarn__halting_visit(graph, add, state) : TARN_STATUS_OK;
}

static tarn_status after_gradients(tarn_train *t, void *state) {
  halting_state *s = state;
  double all[2 * TARN__STACKS];
  for (int i = 0; i < TARN__STACKS; i++) {
    all[2 * i] = s->batches[i].rows;
    all[2 * i + 1] = s->batches[i].steps;
    s->batches[i] = (halting_sums){0};
  }
  TARN_TRY(tarn__comm_sum_doubles(t->comm, all, 2 * TARN__STACKS));
  for (int i = 0; i < TARN__STACKS; i++) {
    s->sums[i].rows += all[2 * i];
    s->sums[i].steps += all[2 * i + 1];
  }
  return TARN_STATUS_OK;
}

static bool add_to_log(const tarn_train *t, const void *state, json_t *record) {
  static const char *const names[] = {[TARN__STACK_ENCODER] = "encoder_steps", [TARN__STACK_DECODER] = "decoder_steps"};
  const halting_state *s = state;
  (void)t;
  for (int i = 0; i < TARN__STACKS; i++)
    if (s->sums[i].rows > 0 &&
        json_object_set_new(record, names[i], json_real(s->sums[i].steps / s->sums[i].rows)) != 0)
      return false;
  return true;
}

static void logged(tarn_train *t, void *state) {
  halting_state *s = state;
  (void)t;
  for (int i = 0; i < TARN__STACKS; i++) s->sums[i] = (halting_sums){0};
}

extern const tarn__feature tarn__feature_halting;
const tarn__feature tarn__feature_halting = {.name = "halting",
                                             .state_bytes = sizeof(halting_state),
                                             .wanted = wanted,
                                             .load = load,
                                             .save = save,
                                             .after_gradients = after_gradients,
                                             .log = add_to_log,
                                             .logged = logged,
                                             .ran = ran};
