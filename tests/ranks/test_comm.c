// Communicators: sums, gathering and broadcasts of one rank and of several, names, and failures that nobody waits for.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "thread_ranks.h"

static void self_is_all_there_is(void **state) {
  (void)state;
  tarn__comm *comm;
  float values[] = {1.5f, -2.0f};
  double more[] = {0.1};
  int own = 7, all = 0;
  bool yes = true, no = false;
  assert_int_equal(tarn__comm_open(&comm, "self"), TARN_STATUS_OK);
  assert_int_equal(comm->rank, 0);
  assert_int_equal(comm->size, 1);
  assert_int_equal(tarn__comm_sum(comm, values, 2), TARN_STATUS_OK);
  assert_true(values[0] == 1.5f && values[1] == -2.0f);
  assert_int_equal(tarn__comm_sum_doubles(comm, more, 1), TARN_STATUS_OK);
  assert_true(more[0] == 0.1);
  assert_int_equal(tarn__comm_gather(comm, &all, &own, sizeof own), TARN_STATUS_OK);
  assert_int_equal(all, 7);
  assert_int_equal(tarn__comm_broadcast(comm, &own, sizeof own), TARN_STATUS_OK);
  assert_int_equal(own, 7);
  assert_int_equal(tarn__comm_any(comm, &yes), TARN_STATUS_OK);
  assert_int_equal(tarn__comm_any(comm, &no), TARN_STATUS_OK);
  assert_true(yes && !no);
  assert_int_equal(tarn__comm_barrier(comm), TARN_STATUS_OK);
  assert_false(comm->failed);
  tarn__comm_close(&comm);
  assert_null(comm);
  tarn__comm_close(&comm);
}

static void names_that_are_not_built_in_are_refused(void **state) {
  (void)state;
  tarn__comm *comm;
  assert_int_equal(tarn__comm_open(&comm, "mpi"), TARN_STATUS_USAGE);
  assert_null(comm);
  assert_string_equal(tarn_error_message(), "the communicator \"mpi\" is not built in: expected self");
  assert_int_equal(tarn__comm_open(&comm, "slef"), TARN_STATUS_USAGE);
  assert_non_null(strstr(tarn_error_message(), "did you mean \"self\"?"));
}

enum { COUNT = 1001 };

typedef struct member {
  tarn__comm *comm;
  bool ok;
  float sums[COUNT];
  tarn_status status;
  char line[1024];
} member;

static float value_of(int rank, int i) { return 1.0f / (float)(1 + i + 13 * rank); }

static void *speak(void *user) {
  member *m = user;
  tarn__comm *comm = m->comm;
  int all[MOST_RANKS] = {0}, own = 10 + comm->rank, said = 100 + comm->rank;
  double numbers[] = {1.0, comm->rank};
  bool last = comm->rank == comm->size - 1, none = false;
  for (int i = 0; i < COUNT; i++) m->sums[i] = value_of(comm->rank, i);
  bool ok = tarn__comm_sum(comm, m->sums, COUNT) == TARN_STATUS_OK;
  ok = ok && tarn__comm_sum_doubles(comm, numbers, 2) == TARN_STATUS_OK;
  ok = ok && numbers[0] == comm->size && numbers[1] == comm->size * (comm->size - 1) / 2.0;
  ok = ok && tarn__comm_gather(comm, all, &own, sizeof own) == TARN_STATUS_OK;
  for (int r = 0; r < comm->size; r++) ok = ok && all[r] == 10 + r;
  ok = ok && tarn__comm_broadcast(comm, &said, sizeof said) == TARN_STATUS_OK && said == 100;
  ok = ok && tarn__comm_any(comm, &last) == TARN_STATUS_OK && last;
  ok = ok && tarn__comm_any(comm, &none) == TARN_STATUS_OK && !none;
  m->ok = ok && tarn__comm_barrier(comm) == TARN_STATUS_OK;
  return NULL;
}

// The last rank leaves while others wait for it, or before they come.
static void *leave(void *user) {
  member *m = user;
  if (m->comm->rank == m->comm->size - 1) {
    m->status = tarn__fail(TARN_STATUS_DATA, "no more");
    tarn__comm_fail(m->comm, m->status);
  } else {
    m->status = tarn__comm_barrier(m->comm);
  }
  m->ok = tarn__comm_sum(m->comm, m->sums, COUNT) == m->status && m->comm->failed;
  snprintf(m->line, sizeof m->line, "%s", tarn_error_message());
  return NULL;
}

static void run_all(member *members, int size, void *(*what)(void *)) {
  rank_hub hub;
  rank_comm comms[MOST_RANKS];
  pthread_t threads[MOST_RANKS];
  hub_open(&hub, comms, size);
  for (int r = 0; r < size; r++) {
    members[r] = (member){.comm = &comms[r].comm};
    assert_int_equal(pthread_create(&threads[r], NULL, what, &members[r]), 0);
  }
  for (int r = 0; r < size; r++) pthread_join(threads[r], NULL);
  hub_close(&hub);
}

static void ranks_have_the_same_bits(void **state) {
  (void)state;
  static member members[MOST_RANKS];
  for (int size = 1; size <= MOST_RANKS; size++) {
    run_all(members, size, speak);
    for (int r = 0; r < size; r++) {
      assert_true(members[r].ok);
      assert_memory_equal(members[r].sums, members[0].sums, sizeof members[0].sums);
    }
    for (int i = 0; i < COUNT; i++) {
      float sum = value_of(0, i);
      for (int r = 1; r < size; r++) sum += value_of(r, i);
      assert_true(members[0].sums[i] == sum);
    }
  }
}

static void nobody_waits_for_a_rank_that_left(void **state) {
  (void)state;
  static member members[MOST_RANKS];
  for (int round = 0; round < 50; round++) {
    run_all(members, 3, leave);
    for (int r = 0; r < 3; r++) {
      assert_true(members[r].ok);
      assert_int_equal(members[r].status, TARN_STATUS_DATA);
      assert_string_equal(members[r].line, "rank 2: no more");
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(self_is_all_there_is),
      cmocka_unit_test(names_that_are_not_built_in_are_refused),
      cmocka_unit_test(ranks_have_the_same_bits),
      cmocka_unit_test(nobody_waits_for_a_rank_that_left),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
