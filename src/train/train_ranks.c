// What the ranks of a training do together (comm/comm.h): all compute, rank 0 alone writes.
#include <stdio.h>
#include <string.h>

#include "device/transfer.h"
#include "graph/profile.h"
#include "tarn/version.h"
#include "train/backskip_step.h"
#include "train/trainer.h"

typedef struct told {
  tarn_status status;
  char line[1024];
  tarn__progress progress;
} told;

tarn_status tarn__train_lead(tarn_train *t, tarn_status (*work)(tarn_train *train)) {
  told now = {0};
  if (t->comm->rank == 0) {
    now.status = work(t);
    if (now.status != TARN_STATUS_OK && now.status != TARN_STATUS_INTERRUPTED) return now.status;
    if (now.status != TARN_STATUS_OK) snprintf(now.line, sizeof now.line, "%s", tarn_error_message());
    now.progress = t->progress;
  }
  TARN_TRY(tarn__comm_broadcast(t->comm, &now, sizeof now));
  t->progress = now.progress;
  return now.status == TARN_STATUS_OK ? TARN_STATUS_OK : tarn__fail(now.status, "%s", now.line);
}

tarn_status tarn__train_asked_to_stop(tarn_train *t, bool *stop) {
  tarn__progress *p = &t->progress;
  const bool clock = t->comm->rank == 0;  // the others' count for nothing
  double said[] = {t->stop && *t->stop, clock ? p->seconds : 0.0, clock ? p->window_seconds : 0.0};
  TARN_TRY(tarn__comm_sum_doubles(t->comm, said, sizeof said / sizeof *said));
  *stop = said[0] > 0;
  p->seconds = said[1];
  p->window_seconds = said[2];
  return TARN_STATUS_OK;
}

tarn_status tarn__train_sum(tarn_train *t, double *loss, double *nll, int64_t *source_tokens) {
  double sums[] = {*loss, *nll, (double)*source_tokens};
  TARN_TRY(tarn__comm_sum_doubles(t->comm, sums, sizeof sums / sizeof *sums));
  *loss = sums[0];
  *nll = sums[1];
  *source_tokens = (int64_t)sums[2];
  if (t->comm->size == 1) return TARN_STATUS_OK;
  const double begin = tarn__profile_clock(t->profile);
  TARN_TRY(tarn__gradient_sum_run(&t->gradient_sum));
  TARN_TRY(tarn__backskip_sum(t));
  return tarn__profile_work(t->profile, "sums over ranks", begin);
}

// What all ranks must have in common, or they would not compute one training.
enum { DESCRIPTION, DATA, PROGRAM, WEIGHTS, THINGS };
static const char *const things[THINGS] = {"another description", "other data",
                                           "another version of the program, or other instructions of its processor,",
                                           "other weights"};

static uint64_t hash_text(const char *text, uint64_t seed) { return tarn__hash64(text, strlen(text), seed); }

static tarn_status hash_weights(uint64_t *hash, const tarn_train *t) {
  tarn__host_room room = {0};
  tarn_status status = TARN_STATUS_OK;
  *hash = (uint64_t)t->progress.update;
  for (size_t i = 0; i < t->model->param_count + t->model->helper_count && status == TARN_STATUS_OK; i++) {
    const tarn__param *param = tarn__model_param(t->model, i);
    const size_t bytes = (size_t)(param->rows * param->cols) * tarn__dtype_size(param->dtype);
    void *values;
    status = tarn__device_read(param->device, &values, param->value, bytes, &room);
    if (status == TARN_STATUS_OK) *hash = tarn__hash64(values, bytes, *hash);
  }
  tarn__host_room_close(&room);
  return status;
}

static tarn_status hash_things(uint64_t hashes[THINGS], const tarn_train *t) {
  char *text;
  TARN_TRY(tarn_config_write(t->config, &text));
  hashes[DESCRIPTION] = hash_text(text, 0);
  tarn_config_text_close(&text);
  hashes[DATA] =
      hash_text(t->shard.hash, hash_text(tarn_vocab_hash(t->target), hash_text(tarn_vocab_hash(t->source), 0)));
  hashes[PROGRAM] = hash_text(t->model->device->variant(), hash_text(tarn_version(), 0));
  return hash_weights(&hashes[WEIGHTS], t);
}

tarn_status tarn__train_check_ranks(tarn_train *t) {
  uint64_t own[THINGS];
  void *memory;
  if (t->comm->size == 1) return TARN_STATUS_OK;
  TARN_TRY(hash_things(own, t));
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)t->comm->size, sizeof own));
  uint64_t(*all)[THINGS] = memory;
  tarn_status status = tarn__comm_gather(t->comm, all, own, sizeof own);
  for (int r = 1; r < t->comm->size && status == TARN_STATUS_OK; r++)
    for (int k = 0; k < THINGS && status == TARN_STATUS_OK; k++)
      if (all[r][k] != all[0][k]) status = tarn__fail(TARN_STATUS_DATA, "rank %d has %s than rank 0", r, things[k]);
  tarn__free(memory);
  return status;
}
