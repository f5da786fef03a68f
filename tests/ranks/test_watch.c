// Who looks after the other ranks: processes that die are seen by those of their place and said by one, silence is
// counted, losses are passed on, who leaves in order is not lost, and who is waited for is named.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "base/clock.h"
#include "comm/watch.h"
#include "tarn/process.h"

enum { RANKS = 3 };

static tarn__member members[RANKS];
static pid_t children[RANKS];
static atomic_int lost, silent[RANKS], leaving[RANKS], lost_there[RANKS];
static atomic_int byes[RANKS], held[RANKS];  // good-byes that were sent, and that wait for an earlier beat to leave
static atomic_int dies[RANKS];               // when it is told good-bye
static double turn;
static atomic_llong begun_there, taken[RANKS];
static atomic_int said[3];  // messages of each level
static char line[3][1024];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void note(void *user, tarn_log_level level, const char *text) {
  (void)user;
  pthread_mutex_lock(&lock);
  snprintf(line[level], sizeof line[level], "%s", text);
  pthread_mutex_unlock(&lock);
  said[level]++;
}

static const char *beat(void *user, int rank, const tarn__beat *own, bool *sent, tarn__beat *newest, bool *came) {
  (void)user;
  const bool bye = own && own->leaving;
  *sent = own && !(bye && held[rank] > 0);
  if (bye && *sent) byes[rank]++;
  if (bye && *sent && dies[rank]) kill(children[rank], SIGKILL);
  if (bye && !*sent) held[rank]--;
  *came = !silent[rank];
  taken[rank]++;
  newest->begun = begun_there;
  newest->leaving = leaving[rank];
  newest->lost = lost_there[rank];
  return NULL;
}

// Children stand for the ranks of other processes; this one is `rank`.
static tarn__watch *watch_as(int rank, double patience) {
  tarn__watch *watch;
  lost = 0;
  for (int level = 0; level < 3; level++) said[level] = 0;
  for (int r = 0; r < RANKS; r++) {
    silent[r] = leaving[r] = lost_there[r] = byes[r] = held[r] = dies[r] = 0;
    taken[r] = 0;
    tarn__member_here(&members[r]);
    assert_true(members[r].place != 0 && members[r].pid == getpid() && *members[r].host);
    snprintf(members[r].host, sizeof members[r].host, "node%d", r + 1);
    children[r] = 0;
    if (r == rank) continue;
    children[r] = fork();
    assert_true(children[r] >= 0);
    if (children[r] == 0) {
      for (;;) pause();
    }
    members[r].pid = children[r];
  }
  begun_there = 0;
  const tarn__watch_setup setup = {
      .rank = rank, .size = RANKS, .members = members, .turn = turn, .patience = patience, .beat = beat, .lost = &lost};
  assert_int_equal(tarn__watch_open(&watch, &setup), TARN_STATUS_OK);
  assert_null(tarn__watch_line(watch));
  return watch;
}

// With an old kernel, or in a sandbox, a process is asked for by its number, which one that has ended keeps for a
// while.
static void needs_descriptors(void) {
  const int own = (int)syscall(SYS_pidfd_open, getpid(), 0);
  if (own < 0) skip();
  close(own);
}

static void end_child(int r) {
  if (children[r] <= 0) return;
  kill(children[r], SIGKILL);
  assert_int_equal(waitpid(children[r], NULL, 0), children[r]);
  children[r] = 0;
}

static void close_watch(tarn__watch *watch) {
  tarn__watch_close(&watch);
  assert_null(watch);
  for (int r = 0; r < RANKS; r++) end_child(r);
}

// However busy the machine is, two minutes are enough.
#define WITHIN_TWO_MINUTES(condition)                                                                      \
  do {                                                                                                     \
    const double end = tarn__seconds() + 120;                                                              \
    while (!(condition) && tarn__seconds() < end) nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL); \
    if (!(condition)) fail_msg("%s has not come about", #condition);                                       \
  } while (0)

static void a_dead_process_is_seen(void **state) {
  (void)state;
  char expected[256];
  tarn__watch *watch = watch_as(0, 0);
  tarn__watch_go_on(watch, "tarn train --resume run");
  snprintf(expected, sizeof expected,
           "rank 1 on node2 has died (process %lld); this ends all ranks. Go on from what is saved with: tarn train "
           "--resume run",
           (long long)children[1]);
  end_child(1);
  WITHIN_TWO_MINUTES(lost);
  assert_int_equal(lost, 2);
  assert_string_equal(tarn__watch_line(watch), expected);
  assert_string_equal(line[TARN_LOG_FAILURE], expected);
  // What dies after it is not its own death.
  end_child(2);
  close_watch(watch);
  assert_int_equal(said[TARN_LOG_FAILURE], 1);
}

static void one_of_a_place_says_it(void **state) {
  (void)state;
  tarn__watch *watch = watch_as(2, 0);
  end_child(1);
  WITHIN_TWO_MINUTES(lost);
  assert_int_equal(lost, 2);
  assert_non_null(strstr(tarn__watch_line(watch), "rank 1 on node2 has died"));
  close_watch(watch);
  assert_int_equal(said[TARN_LOG_FAILURE], 0);  // rank 0 has
  watch = watch_as(1, 0);
  end_child(0);
  WITHIN_TWO_MINUTES(lost);
  close_watch(watch);
  assert_int_equal(said[TARN_LOG_FAILURE], 1);
  assert_non_null(strstr(line[TARN_LOG_FAILURE], "rank 0 on node1 has died"));
}

static void silence_is_a_loss(void **state) {
  (void)state;
  tarn__watch *watch = watch_as(0, 0.4);
  WITHIN_TWO_MINUTES(taken[2] > 3);
  assert_int_equal(lost, 0);
  silent[2] = 1;
  WITHIN_TWO_MINUTES(lost);
  assert_int_equal(lost, 3);
  close_watch(watch);
  assert_int_equal(said[TARN_LOG_FAILURE], 1);
  assert_non_null(strstr(line[TARN_LOG_FAILURE], "rank 2 on node3 has given no sign of life for 0 s: it was halted"));
}

// Ranks 1 and 2 exchange beats with rank 0 alone, and hear from it of others.
static void a_loss_is_passed_on(void **state) {
  (void)state;
  tarn__watch *watch = watch_as(1, 60);
  lost_there[0] = 3;
  WITHIN_TWO_MINUTES(lost);
  assert_int_equal(lost, 3);
  assert_int_equal(taken[2], 0);
  assert_non_null(strstr(tarn__watch_line(watch), "rank 2 on node3 is lost"));
  close_watch(watch);
  assert_int_equal(said[TARN_LOG_FAILURE], 0);
}

static void who_leaves_is_not_lost(void **state) {
  (void)state;
  tarn__watch *watch = watch_as(0, 0.4);
  leaving[1] = 1;
  WITHIN_TWO_MINUTES(taken[1] > 0);
  const long long asked = taken[1];
  end_child(1);
  WITHIN_TWO_MINUTES(taken[2] > 5);
  assert_true(taken[1] <= asked + 1);
  assert_int_equal(lost, 0);
  end_child(2);
  WITHIN_TWO_MINUTES(lost);
  assert_int_equal(lost, 3);
  close_watch(watch);
}

// Its last beat is taken only when its end is seen: the next turn would be in an hour.
static void who_leaves_and_ends_is_not_lost(void **state) {
  (void)state;
  needs_descriptors();
  turn = 3600;
  tarn__watch *watch = watch_as(0, 60);
  turn = 0.05;
  leaving[1] = 1;
  end_child(1);
  WITHIN_TWO_MINUTES(taken[1] > 0 || lost);
  end_child(2);
  WITHIN_TWO_MINUTES(lost);
  assert_int_equal(lost, 3);
  assert_int_equal(said[TARN_LOG_FAILURE], 1);
  close_watch(watch);
}

// A good-bye waits for the beat before it.
static void a_good_bye_is_sent(void **state) {
  (void)state;
  tarn__watch *watch = watch_as(0, 60);
  held[1] = 3;
  leaving[2] = 1;
  close_watch(watch);
  assert_int_equal(held[1], 0);
  assert_int_equal(byes[1], 1);
  assert_int_equal(byes[2], 1);
  assert_int_equal(lost, 0);
}

// The end of MPI would wait for it without an end.
static void who_is_halted_at_the_end_is_lost(void **state) {
  (void)state;
  tarn__watch *watch = watch_as(0, 1);
  leaving[1] = 1;
  silent[2] = 1;
  close_watch(watch);
  assert_int_equal(lost, 3);
  assert_int_equal(said[TARN_LOG_FAILURE], 1);
  assert_non_null(strstr(line[TARN_LOG_FAILURE], "rank 2 on node3 has given no sign of life for 1 s"));
}

static void who_dies_at_the_end_is_lost(void **state) {
  (void)state;
  needs_descriptors();
  turn = 3600;
  tarn__watch *watch = watch_as(0, 60);
  turn = 0.05;
  leaving[2] = 1;
  dies[1] = 1;
  close_watch(watch);
  assert_int_equal(lost, 2);
  assert_int_equal(said[TARN_LOG_FAILURE], 1);
  assert_non_null(strstr(line[TARN_LOG_FAILURE], "rank 1 on node2 has died"));
}

static void who_is_waited_for_is_named(void **state) {
  (void)state;
  tarn__watch *watch = watch_as(0, 0.4);
  begun_there = 1;
  tarn__watch_enter(watch);
  tarn__watch_leave(watch);
  WITHIN_TWO_MINUTES(taken[1] > 4);
  assert_int_equal(said[TARN_LOG_WARNING], 0);
  tarn__watch_enter(watch);  // the others are still in the first call
  WITHIN_TWO_MINUTES(said[TARN_LOG_WARNING]);
  assert_non_null(strstr(line[TARN_LOG_WARNING], "waiting for rank 1 on node2 and 1 further rank for "));
  begun_there = 2;
  tarn__watch_leave(watch);
  close_watch(watch);
  assert_int_equal(said[TARN_LOG_FAILURE], 0);
  assert_int_equal(lost, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_dead_process_is_seen),      cmocka_unit_test(one_of_a_place_says_it),
      cmocka_unit_test(silence_is_a_loss),           cmocka_unit_test(a_loss_is_passed_on),
      cmocka_unit_test(who_leaves_is_not_lost),      cmocka_unit_test(who_leaves_and_ends_is_not_lost),
      cmocka_unit_test(a_good_bye_is_sent),          cmocka_unit_test(who_is_halted_at_the_end_is_lost),
      cmocka_unit_test(who_dies_at_the_end_is_lost), cmocka_unit_test(who_is_waited_for_is_named),
  };
  turn = 0.05;
  tarn_log_set(note, NULL);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
