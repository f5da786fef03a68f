// Child processes that run the program.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "sweep/child.h"

enum { MOST_ARGUMENTS = 1024, CANNOT_START = 127 };

// Between fork and exec only async-signal-safe calls are allowed. A run dies with its parent, however that ends, so it
// never writes into a folder that a new sweep may be using. It has its own process group: Ctrl-C is for the sweep,
// which then asks each run to save its state. Signals are blocked at its start, so that none is handled by the sweep's
// handlers in the forked copy; they are delivered once the training has installed its own.
static void become(const tarn__child *child, char *const *arguments, const int files[2], pid_t parent,
                   const sigset_t *mask) {
  int nothing = open("/dev/null", O_RDWR);
  if (!child->outlives && (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)) _exit(CANNOT_START);
  setpgid(0, 0);
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  signal(SIGHUP, SIG_DFL);
  signal(SIGUSR1, SIG_IGN);  // until the training handles it
  sigprocmask(SIG_SETMASK, mask, NULL);
  if (nothing < 0 || dup2(nothing, 0) < 0 || dup2(files[0] >= 0 ? files[0] : nothing, 1) < 0 || dup2(files[1], 2) < 0)
    _exit(CANNOT_START);
  if (child->folder && chdir(child->folder) != 0) _exit(CANNOT_START);
  execv(child->program, arguments);
  _exit(CANNOT_START);
}

static tarn_status open_file(int *fd, const char *path) {
  *fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666) : -1;
  TARN_REQUIRE(*fd >= 0 || !path, IO, "%s: cannot write: %s", path, strerror(errno));
  return TARN_STATUS_OK;
}

static tarn_status start(pid_t *pid, const tarn__child *child, char *const *list, const int files[2]) {
  pid_t parent = getpid();
  sigset_t all, mask;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &mask);
  const pid_t forked = fork();
  if (forked == 0) become(child, list, files, parent, &mask);
  int error = errno;
  pthread_sigmask(SIG_SETMASK, &mask, NULL);
  TARN_REQUIRE(forked > 0, IO, "cannot start a process: %s", strerror(error));
  *pid = forked;
  return TARN_STATUS_OK;
}

tarn_status tarn__child_start(pid_t *pid, const tarn__child *child) {
  char *list[MOST_ARGUMENTS + 1] = {0};
  int files[2] = {-1, -1};
  size_t count = 0;
  *pid = 0;
  while (child->arguments[count]) count++;
  TARN_REQUIRE(count <= MOST_ARGUMENTS, USAGE, "a process of %s would have more than %d arguments", child->program,
               (int)MOST_ARGUMENTS);
  tarn_status status = open_file(&files[1], child->errors);
  if (status == TARN_STATUS_OK) status = open_file(&files[0], child->output);
  for (size_t i = 0; i < count && status == TARN_STATUS_OK; i++) status = tarn__strdup(&list[i], child->arguments[i]);
  if (status == TARN_STATUS_OK) status = start(pid, child, list, files);
  for (int i = 0; i < 2; i++)
    if (files[i] >= 0) close(files[i]);
  for (size_t i = 0; i < MOST_ARGUMENTS; i++) tarn__free(list[i]);
  return status;
}

tarn_status tarn__child_wait(int *wait_status, pid_t pid, const tarn__child *child) {
  pid_t ended;
  *wait_status = 0;
  while ((ended = waitpid(pid, wait_status, 0)) < 0 && errno == EINTR) continue;
  TARN_REQUIRE(ended == pid, IO, "%s: how it ended is not known: %s", child->arguments[0], strerror(errno));
  return TARN_STATUS_OK;
}

static void last_line(char *text, size_t size, const char *errors) {
  char *all;
  size_t length;
  text[0] = '\0';
  if (tarn__file_read(errors, &all, &length) != TARN_STATUS_OK) return;
  while (length > 0 && all[length - 1] == '\n') all[--length] = '\0';
  const char *line = strrchr(all, '\n');
  line = line ? line + 1 : all;
  const char *colon = strncmp(line, "tarn", 4) == 0 ? strstr(line, ": ") : NULL;
  snprintf(text, size, "%s", colon ? colon + 2 : line);
  tarn__free(all);
}

void tarn__child_message(char *text, size_t size, const char *errors, int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    snprintf(text, size, "its process was ended by signal %d (%s)", WTERMSIG(wait_status),
             strsignal(WTERMSIG(wait_status)));
    return;
  }
  last_line(text, size, errors);
  if (WEXITSTATUS(wait_status) == CANNOT_START)
    snprintf(text, size, "its process could not be started");
  else if (!text[0] && WEXITSTATUS(wait_status) == 0)
    snprintf(text, size, "its process ended before the run was over");
  else if (!text[0])
    snprintf(text, size, "its process ended with exit code %d", WEXITSTATUS(wait_status));
}

bool tarn__child_was_stopped(int wait_status) {
  int code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 0;
  int number = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : code - 128;
  return number == SIGINT || number == SIGTERM || number == SIGHUP;
}
