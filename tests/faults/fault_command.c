#include "fault_command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fault_tree.h"

fault_state *command_state(const char *path, const char *program) {
  int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0 || ftruncate(fd, sizeof(fault_state)) != 0) give_up("%s: %s", path, strerror(errno));
  fault_state *state = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (state == MAP_FAILED) give_up("%s: %s", path, strerror(errno));
  close(fd);
  const char *slash = strrchr(program, '/');
  snprintf(state->program, sizeof state->program, "%s", slash ? slash + 1 : program);
  return state;
}

void command_reset(fault_command *c) {
  fault_state *s = c->state;
  char program[sizeof s->program];
  char excluded[sizeof s->excluded];
  memcpy(program, s->program, sizeof program);
  memcpy(excluded, s->excluded, sizeof excluded);
  memset(s, 0, offsetof(fault_state, place));
  memcpy(s->program, program, sizeof program);
  memcpy(s->excluded, excluded, sizeof excluded);
  s->only_root = c->only_first;
}

// Seconds after which the driver looks at the time again.
#define LONGEST_PAUSE 0.25

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void redirect(const char *path, int flags, int to) {
  int fd = open(path, flags, 0666);
  if (fd < 0 || dup2(fd, to) < 0) _exit(126);
  close(fd);
}

static void become(const fault_command *c, const char *script) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  setpgid(0, 0);  // so that all that it starts can be ended
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  redirect(c->input ? c->input : "/dev/null", O_RDONLY, STDIN_FILENO);
  redirect(c->out, O_WRONLY | O_CREAT | O_TRUNC, STDOUT_FILENO);
  redirect(c->err, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, STDERR_FILENO);
  if (chdir(c->folder) != 0) _exit(126);
  setenv("FAULT_STATE", c->state_path, 1);
  setenv("GOMP_SPINCOUNT", "20000", 1);  // or the program would begin twice, and calls be counted from before
  setenv("TARN", c->program, 1);
  setenv("LD_PRELOAD", c->library, 1);
  c->state->root = getpid();
  if (script) execlp("bash", "bash", "-c", script, (char *)NULL);
  execv(c->program, c->arguments);
  _exit(126);
}

int command_run(fault_command *c, const char *script, double kill_after, double *seconds) {
  int status = 0;
  double begin = now();
  sigset_t children;
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  sigprocmask(SIG_BLOCK, &children, NULL);
  pid_t pid = fork();
  if (pid < 0) give_up("fork: %s", strerror(errno));
  if (pid == 0) become(c, script);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  bool late = false;
  double spent = 0;
  for (double last = begin;;) {
    pid_t ended = waitpid(pid, &status, WNOHANG);
    if (ended == pid) break;
    if (ended < 0 && errno != EINTR) give_up("waitpid: %s", strerror(errno));
    // Time in which this driver did not run either (a machine that is suspended, processes that are frozen) is none.
    double step = now() - last;
    last += step;
    spent += step < 2 * LONGEST_PAUSE ? step : LONGEST_PAUSE;
    late |= spent > c->timeout;
    if (late || (kill_after >= 0 && spent >= kill_after)) {
      kill(pid, SIGKILL);
      kill_after = -1;
    }
    double pause = (kill_after >= 0 ? kill_after : c->timeout) - spent;
    if (pause < 0.001) pause = 0.001;
    if (pause > LONGEST_PAUSE) pause = LONGEST_PAUSE;
    const struct timespec most = {(time_t)pause, (long)((pause - (double)(time_t)pause) * 1e9)};
    sigtimedwait(&children, NULL, &most);
  }
  // What it started dies with it, a moment later; nothing may be left that writes. An init may reap orphans seconds
  // later, such as a sanitizer's symbolizer, so this driver does.
  for (int i = 0; i < 2000 && kill(-pid, 0) == 0; i++) {
    while (waitpid(-pid, NULL, WNOHANG) > 0) {
    }
    if (kill(-pid, 0) == 0) usleep(1000);
  }
  kill(-pid, SIGKILL);
  if (seconds) *seconds = now() - begin;
  return late ? -1 : status;
}
