#include "run/record.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct receiver {
  const char *kind;
  tarn__record_fn receive;
  void *user;
} receiver;

static tarn_status hand_out(const receiver *r, const char *key, const char *below, double value) {
  char name[TARN__SCORE_NAME];
  int length = snprintf(name, sizeof name, "%s/%s%s%s", r->kind, key, below ? "/" : "", below ? below : "");
  TARN_REQUIRE(length < (int)sizeof name, DATA, "the name of a score is longer than %d bytes: %.60s...",
               TARN__SCORE_NAME - 1, name);
  return r->receive(r->user, name, value);
}

static bool is_score(const char *key) {
  static const char *const others[] = {"kind", "step", "epoch", "time", "seconds"};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (strcmp(key, others[i]) == 0) return false;
  return true;
}

static tarn_status read_object(const receiver *r, const char *key, const json_t *object) {
  // Jansson's iteration lacks const.
  void *next = json_object_iter((json_t *)(uintptr_t)object);
  for (; next; next = json_object_iter_next((json_t *)(uintptr_t)object, next)) {
    const json_t *value = json_object_iter_value(next);
    const char *name = json_object_iter_key(next);
    if (!key && !is_score(name)) continue;
    if (!key && strncmp(name, "valid_", 6) == 0) name += 6;
    if (json_is_number(value)) TARN_TRY(hand_out(r, key ? key : name, key ? name : NULL, json_number_value(value)));
    if (!key && json_is_object(value)) TARN_TRY(read_object(r, name, value));
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__record_scores(const json_t *record, tarn__record_fn receive, void *user) {
  const char *kind = json_string_value(json_object_get(record, "kind"));
  TARN_REQUIRE(kind && *kind, DATA, "a record of the log needs a \"kind\"");
  const bool scored = strcmp(kind, "scored") == 0;
  if (scored) kind = json_string_value(json_object_get(record, "set"));
  TARN_REQUIRE(kind && *kind, DATA, "a record of the kind \"scored\" needs a \"set\"");
  bool average = json_object_get(record, "checkpoint") != NULL;
  receiver r = {average ? "average" : kind, receive, user};
  TARN_TRY(read_object(&r, NULL, record));
  const json_t *nll = json_object_get(record, scored ? "nll" : "valid_nll");
  return json_is_number(nll) ? hand_out(&r, "ppl", NULL, fmin(exp(json_number_value(nll)), DBL_MAX)) : TARN_STATUS_OK;
}
