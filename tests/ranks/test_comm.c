// Communicators: sums, gathering and broadcasts of one rank and of several, names, and failures that nobody waits for.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "comm/launcher.h"
#include "device/dtype.h"
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
  assert_int_equal(tarn__comm_open(&comm, "gloo"), TARN_STATUS_USAGE);
  assert_null(comm);
  assert_non_null(strstr(tarn_error_message(), "the communicator \"gloo\" is not built in: expected self, mpi, nccl"));
  assert_int_equal(tarn__comm_open(&comm, "slef"), TARN_STATUS_USAGE);
  assert_non_null(strstr(tarn_error_message(), "did you mean \"self\"?"));
}

static void launchers_tell_how_many_were_started(void **state) {
  (void)state;
  static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK",       "PMI_SIZE",
                                      "SLURM_PROCID",         "SLURM_STEP_NUM_TASKS", "SLURM_MPI_TYPE", "TARN_MPI"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
  tarn__comm *comm;
  tarn__launcher found = tarn__launcher_find();
  assert_int_equal(found.size, 1);
  assert_null(found.mpi);
  assert_int_equal(tarn__comm_open(&comm, NULL), TARN_STATUS_OK);
  assert_string_equal(comm->kind->name, "self");
  tarn__comm_close(&comm);
  setenv("SLURM_PROCID", "1", 1);
  setenv("SLURM_STEP_NUM_TASKS", "3", 1);
  setenv("SLURM_MPI_TYPE", "pmix_v4", 1);
  found = tarn__launcher_find();
  assert_true(found.rank == 1 && found.size == 3);
  assert_string_equal(found.mpi, "openmpi");
  setenv("SLURM_MPI_TYPE", "pmi2", 1);
  assert_string_equal(tarn__launcher_find().mpi, "mpich");
  // mpirun within an allocation of Slurm.
  setenv("OMPI_COMM_WORLD_RANK", "0", 1);
  setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
  found = tarn__launcher_find();
  assert_true(found.rank == 0 && found.size == 2);
  assert_string_equal(found.mpi, "openmpi");
  setenv("TARN_MPI", "mpich", 1);
  assert_string_equal(tarn__launcher_find().mpi, "mpich");
  setenv("OMPI_COMM_WORLD_SIZE", "two", 1);
  assert_int_equal(tarn__launcher_find().size, 3);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
}

enum { COUNT = 10001 };  // more than a room holds

typedef struct member {
  tarn__comm *comm;
  bool ok;
  float sums[COUNT], whole[COUNT];
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
  said = 100 + comm->rank;
  ok = ok && tarn__comm_broadcast_from(comm, comm->size - 1, &said, sizeof said) == TARN_STATUS_OK;
  ok = ok && said == 99 + comm->size;
  m->ok = ok && tarn__comm_barrier(comm) == TARN_STATUS_OK;
  return NULL;
}

// Where the parts of a case begin: of equal size, of a rank that has nearly all, of one that has none, of none at all.
enum { CUTS = 4 };
static void cut(int64_t first[MOST_RANKS + 1], int how, int size) {
  for (int r = 0; r <= size; r++)
    first[r] = how == 0   ? tarn__comm_part(COUNT, size, r)
               : how == 1 ? (r == 0 ? 7 : COUNT - (size - r))
               : how == 2 ? (r <= 1 ? 0 : COUNT * (r - 1) / (size - 1))
                          : 100;
}

static float rounded_if(float value, bool rounds) {
  return rounds ? tarn__bf16_to_f32(tarn__bf16_from_f32(value)) : value;
}

// The sums of a rank's own part, in the order of the ranks, and the others' as they were.
static bool has_sums_of_part(const float *values, const int64_t *first, int rank, int size, bool rounds) {
  for (int i = 0; i < COUNT; i++) {
    float sum = rounded_if(value_of(0, i), rounds);
    for (int r = 1; r < size; r++) sum += rounded_if(value_of(r, i), rounds);
    sum = rounded_if(sum, rounds);
    const bool own = i >= first[rank] && i < first[rank + 1];
    if (values[i] != (own && size > 1 ? sum : value_of(rank, i))) return false;
  }
  return true;
}

// Rank r has every element whose number is r modulo 3 and the number of ranks, in spans of 3 and of none; all get all.
static bool sums_of_spans(tarn__comm *comm, float *values, tarn_precision travel) {
  static _Thread_local tarn__comm_span spans[COUNT + MOST_RANKS];
  int64_t numbers[MOST_RANKS] = {0}, all = 0;
  for (int i = 0; i < COUNT; i++) values[i] = value_of(comm->rank, i);
  for (int r = 0; r < comm->size; r++) {
    spans[all++] = (tarn__comm_span){values, 0, NULL};
    for (int i = 3 * r; i < COUNT; i += 3 * comm->size)
      spans[all++] = (tarn__comm_span){values + i, COUNT - i < 3 ? COUNT - i : 3, NULL};
    numbers[r] = all - (r > 0 ? numbers[0] : 0);
    for (int k = 1; k < r; k++) numbers[r] -= numbers[k];
  }
  return tarn__comm_sum_spans(comm, NULL, spans, numbers, travel, true) == TARN_STATUS_OK;
}

// Both halves of a sum, in each format, with parts of all kinds: alone and together.
static void *speak_in_parts(void *user) {
  member *m = user;
  tarn__comm *comm = m->comm;
  const int size = comm->size;
  bool ok = comm->kind->in_order;  // the expected bits are those of that order
  for (int k = 0; k < 2 * CUTS; k++) {
    const tarn_precision travel = k < CUTS ? TARN_PRECISION_FP32 : TARN_PRECISION_BF16;
    const int64_t element = k < CUTS ? 4 : 2;
    int64_t first[MOST_RANKS + 1] = {0};
    cut(first, k % CUTS, size);
    for (int i = 0; i < COUNT; i++) m->sums[i] = value_of(comm->rank, i);
    comm->traffic = (tarn__comm_traffic){0};
    ok = ok && tarn__comm_reduce_scatter(comm, m->sums, first, travel) == TARN_STATUS_OK;
    ok = ok && comm->traffic.summed == (size > 1 ? element * (first[size] - first[0]) : 0);
    ok = ok && has_sums_of_part(m->sums, first, comm->rank, size, travel == TARN_PRECISION_BF16);
    ok = ok && tarn__comm_all_gather(comm, m->sums, first, sizeof *m->sums) == TARN_STATUS_OK;
    ok = ok && comm->traffic.gathered == (size > 1 ? 4 * (first[size] - first[0]) : 0);
    for (int i = 0; i < COUNT; i++) m->whole[i] = value_of(comm->rank, i);
    ok = ok && tarn__comm_sum_as(comm, m->whole, COUNT, travel) == TARN_STATUS_OK;
    // What was summed in parts is what was summed at once, or in many places.
    for (int64_t i = first[0]; i < first[size]; i++) ok = ok && m->whole[i] == m->sums[i];
    ok = ok && sums_of_spans(comm, m->sums, travel) && memcmp(m->sums, m->whole, sizeof m->sums) == 0;
  }
  // Elements of other sizes, and parts of one byte.
  char bytes[MOST_RANKS] = {0};
  int64_t each[MOST_RANKS + 1];
  for (int r = 0; r <= size; r++) each[r] = r;
  bytes[comm->rank] = (char)(1 + comm->rank);
  ok = ok && tarn__comm_all_gather(comm, bytes, each, 1) == TARN_STATUS_OK;
  for (int r = 0; r < size; r++) ok = ok && bytes[r] == 1 + r;
  m->ok = ok;
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

static void halves_of_sums_are_their_parts(void **state) {
  (void)state;
  static member members[MOST_RANKS];
  for (int size = 1; size <= MOST_RANKS; size++) {
    run_all(members, size, speak_in_parts);
    for (int r = 0; r < size; r++) {
      assert_true(members[r].ok);
      assert_memory_equal(members[r].whole, members[0].whole, size > 1 ? sizeof members[0].whole : 0);
    }
  }
  for (int size = 1; size <= 9; size++)
    for (int64_t count = 0; count < 400; count += 7) {
      assert_int_equal(tarn__comm_part(count, size, 0), 0);
      assert_int_equal(tarn__comm_part(count, size, size), count);
      for (int r = 0; r < size; r++) {
        const int64_t part = tarn__comm_part(count, size, r + 1) - tarn__comm_part(count, size, r);
        assert_true(part >= 0 && part <= (count / 32 / size + 1) * 32);
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
      cmocka_unit_test(launchers_tell_how_many_were_started),
      cmocka_unit_test(ranks_have_the_same_bits),
      cmocka_unit_test(halves_of_sums_are_their_parts),
      cmocka_unit_test(nobody_waits_for_a_rank_that_left),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
