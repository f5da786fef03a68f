// Collective operations of the ranks of a training run (comm/comm.h): all compute, only rank 0 writes.
#include <stdio.h>
#include <string.h>

#include "device/transfer.h"
#include "graph/entries.h"
#include "graph/profile.h"
#include "tarn/status.h"
#include "train/trainer.h"

// A message from rank 0 to the others: it is done, or it needs bytes from them for a checkpoint (`fetch`).
typedef struct told {
  tarn__optim_fetch fetch;
  tarn_status status;
  char line[1024];
  tarn__progress progress;
} told;

// All ranks take the status and the progress from rank 0.
static tarn_status follow(tarn_train *t, tarn_status status) {
  told now = {0};
  if (status != TARN_STATUS_OK && status != TARN_STATUS_INTERRUPTED) return status;
  if (t->comm->rank == 0) {
    now.status = status;
    if (now.status != TARN_STATUS_OK) snprintf(now.line, sizeof now.line, "%s", tarn_error_message());
    now.progress = t->progress;
  }
  TARN_TRY(tarn__comm_broadcast(t->comm, &now, sizeof now));
  while (now.fetch.bytes > 0) {
    TARN_TRY(tarn__optim_share_fetch(&t->optim, NULL, &now.fetch));
    TARN_TRY(tarn__comm_broadcast(t->comm, &now, sizeof now));
  }
  t->progress = now.progress;
  return now.status == TARN_STATUS_OK ? TARN_STATUS_OK : tarn__fail(now.status, "%s", now.line);
}

tarn_status tarn__train_read_part(void *train, size_t param, tarn__part_array array, void *to, size_t first,
                                  size_t bytes) {
  tarn_train *t = train;
  for (size_t done = 0; done < bytes;) {
    told now = {.fetch = tarn__optim_share_find(&t->optim, param, array, first + done, bytes - done)};
    TARN_REQUIRE(now.fetch.bytes > 0, INTERNAL, "no rank has the values to save");
    if (now.fetch.rank > 0) TARN_TRY(tarn__comm_broadcast(t->comm, &now, sizeof now));
    TARN_TRY(tarn__optim_share_fetch(&t->optim, (char *)to + done, &now.fetch));
    done += now.fetch.bytes;
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__train_lead(tarn_train *t, tarn_status (*work)(tarn_train *train)) {
  return follow(t, t->comm->rank == 0 ? work(t) : TARN_STATUS_OK);
}

tarn_status tarn__train_share(tarn_train *t, tarn_status (*work)(tarn_train *train),
                              tarn_status (*help)(tarn_train *train)) {
  return follow(t, t->comm->rank == 0 ? work(t) : help(t));
}

enum { VALUES = 1 << 24 };  // bytes sent at a time

static tarn_status share_value(tarn__comm *comm, const tarn__param *param, tarn__host_room *room) {
  const size_t bytes = tarn__param_value_bytes(param);
  void *values;
  TARN_TRY(tarn__device_read(param->device, &values, param->value, bytes, room));
  for (size_t at = 0; at < bytes; at += VALUES)
    TARN_TRY(tarn__comm_broadcast(comm, (char *)values + at, bytes - at < VALUES ? bytes - at : VALUES));
  // If the host sees the values themselves, they are already in place.
  return comm->rank > 0 && values != param->value ? tarn__device_put(param->device, param->value, values, bytes)
                                                  : TARN_STATUS_OK;
}

tarn_status tarn__train_share_values(tarn_train *t) {
  tarn__host_room room = {0};
  tarn_status status = TARN_STATUS_OK;
  for (size_t i = 0; i < t->model->param_count && t->comm->size > 1 && status == TARN_STATUS_OK; i++)
    status = share_value(t->comm, t->model->params[i], &room);
  tarn__host_room_close(&room);
  return status;
}

tarn_status tarn__train_asked_to_stop(tarn_train *t, bool *stop) {
  tarn__progress *p = &t->progress;
  const bool clock = t->comm->rank == 0;  // the other ranks' clocks are ignored
  double said[] = {t->stop && *t->stop, clock ? p->seconds : 0.0, clock ? p->window_seconds : 0.0};
  TARN_TRY(tarn__comm_sum_doubles(t->comm, said, sizeof said / sizeof *said));
  *stop = said[0] > 0;
  p->seconds = said[1];
  p->window_seconds = said[2];
  return TARN_STATUS_OK;
}

tarn_status tarn__train_sum(tarn_train *t, double *loss, double *nll, int64_t *source_tokens) {
  double sums[] = {*loss, *nll, (double)*source_tokens};
  const double begin = tarn__profile_clock(t->profile);
  if (t->overlap) TARN_TRY(tarn__gradient_overlap_finish(t->overlap));
  if (!t->overlap) TARN_TRY(tarn__gradient_sum_run(&t->gradient_sum));
  TARN_TRY(tarn__comm_sum_doubles(t->comm, sums, sizeof sums / sizeof *sums));
  *loss = sums[0];
  *nll = sums[1];
  *source_tokens = (int64_t)sums[2];
  if (t->comm->size == 1) return TARN_STATUS_OK;
  return tarn__profile_work(t->profile, "sums over ranks", begin);
}

// Properties that must be equal on all ranks for them to compute one training run.
enum { DETAIL = 512 };  // bytes of the description of a difference
enum { DESCRIPTION, SOURCE, TARGET, DATA, PROGRAM, WEIGHTS, THINGS };
static const char *const things[] = {
    "another description",
    "another vocabulary",
    "another target vocabulary",
    "other data",
    "another version of the program, or other instructions of its processor,",
    "other weights",
};

static uint64_t hash_text(const char *text, uint64_t seed) { return tarn__hash64(text, strlen(text), seed); }

static tarn_status hash_weights(uint64_t *hash, const tarn_train *t) {
  tarn__host_room room = {0};
  tarn_status status = TARN_STATUS_OK;
  *hash = (uint64_t)t->progress.update;
  for (size_t i = 0; i < t->model->param_count + t->model->helper_count && status == TARN_STATUS_OK; i++) {
    const tarn__param *param = tarn__model_param(t->model, i);
    const size_t bytes = tarn__param_value_bytes(param);
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
  hashes[SOURCE] = hash_text(tarn_vocab_hash(t->source), 0);
  hashes[TARGET] = hash_text(tarn_vocab_hash(t->target), 0);
  hashes[DATA] = hash_text(tarn__batcher_hash(t->batcher), 0);
  hashes[PROGRAM] = hash_text(tarn__device_variant(t->model->device), hash_text(tarn_version(), 0));
  return hash_weights(&hashes[WEIGHTS], t);
}

// A rank's version of a property as text: the whole description, or a line.
static tarn_status describe(char **text, const tarn_train *t, int thing) {
  char line[1024];
  const tarn_config *c = t->config;
  switch (thing) {
    case DESCRIPTION:
      return tarn_config_write(c, text);
    case SOURCE:
    case TARGET:
    case DATA:
      snprintf(line, sizeof line, "%s",
               thing == SOURCE   ? c->data.vocab
               : thing == TARGET ? c->data.target_vocab
                                 : c->data.train);
      break;
    case PROGRAM:
      snprintf(line, sizeof line, "version %s with %s", tarn_version(), tarn__device_variant(t->model->device));
      break;
    default:
      snprintf(line, sizeof line, "those after update %lld", (long long)t->progress.update);
  }
  return tarn__strdup(text, line);
}

// The first line of a description that differs from the other's, preceded by the key of its section.
static void first_difference(char out[DETAIL], const char *own, const char *other) {
  char section[64] = "";
  for (;;) {
    const size_t length = strcspn(own, "\n"), others = strcspn(other, "\n");
    const bool same = length == others && memcmp(own, other, length) == 0;
    const size_t indent = strspn(own, " "), others_indent = strspn(other, " ");
    if (!same || length == 0) {
      snprintf(out, DETAIL, "%s%.*s instead of %.*s", section, (int)(length - indent < 200 ? length - indent : 200),
               own + indent, (int)(others - others_indent < 200 ? others - others_indent : 200), other + others_indent);
      return;
    }
    if (indent == 0 && own[length - 1] == ':') snprintf(section, sizeof section, "%.*s ", (int)length, own);
    own += length + (own[length] != '\0');
    other += others + (other[others] != '\0');
  }
}

// Finds, on all ranks, how a property of rank r differs from rank 0's: rank 0 sends its own, and rank r compares.
static tarn_status find_difference(char out[DETAIL], const tarn_train *t, int r, int thing) {
  char *own = NULL, *first = NULL, mine[DETAIL] = "";
  void *all = NULL;
  tarn_status status = describe(&own, t, thing);
  int64_t length = status == TARN_STATUS_OK ? (int64_t)strlen(own) + 1 : 0;
  if (status == TARN_STATUS_OK) status = tarn__comm_broadcast(t->comm, &length, sizeof length);
  if (status == TARN_STATUS_OK) status = tarn__alloc((void **)&first, TARN__MEMORY_OTHER, (size_t)length, 1);
  if (status == TARN_STATUS_OK && t->comm->rank == 0) memcpy(first, own, (size_t)length);
  if (status == TARN_STATUS_OK) status = tarn__comm_broadcast(t->comm, first, (size_t)length);
  if (status == TARN_STATUS_OK) {
    if (thing == DESCRIPTION)
      first_difference(mine, own, first);
    else if (strcmp(own, first) == 0)
      snprintf(mine, sizeof mine, "%.200s, of other contents", own);
    else
      snprintf(mine, sizeof mine, "%.200s instead of %.200s", own, first);
    status = tarn__alloc(&all, TARN__MEMORY_OTHER, (size_t)t->comm->size, DETAIL);
  }
  if (status == TARN_STATUS_OK) status = tarn__comm_gather(t->comm, all, mine, DETAIL);
  if (status == TARN_STATUS_OK) snprintf(out, DETAIL, "%s", (const char *)all + (size_t)r * DETAIL);
  tarn__free(all);
  tarn__free(first);
  tarn__free(own);
  return status;
}

static tarn_status say_difference(const tarn_train *t, int r, int thing) {
  char what[DETAIL], rank[TARN__RANK_TEXT], first[TARN__RANK_TEXT];
  TARN_TRY(find_difference(what, t, r, thing));
  return tarn__fail(TARN_STATUS_DATA, "%s has %s than %s: %s", tarn__comm_rank_text(t->comm, r, rank), things[thing],
                    tarn__comm_rank_text(t->comm, 0, first), what);
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
      if (all[r][k] != all[0][k]) status = say_difference(t, r, k);
  tarn__free(memory);
  return status;
}

void tarn__train_fail_all(const tarn_train *t, tarn_status status) {
  const bool elsewhere = tarn__comm_fail(t->comm, status);
  if (t->told) *t->told = elsewhere;
}
