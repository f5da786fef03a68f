#include "sweep/slurm.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"

extern char **environ;

// The output of a program, with a zero byte; the caller frees it.
static tarn_status read_all(char **text, int fd) {
  struct stat info;
  void *memory;
  *text = NULL;
  TARN_REQUIRE(fstat(fd, &info) == 0, IO, "cannot read what a program said: %s", strerror(errno));
  const size_t size = (size_t)info.st_size;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, size + 1, 1));
  char *bytes = memory;
  const ssize_t got = pread(fd, bytes, size, 0);
  bytes[got > 0 ? got : 0] = '\0';
  *text = bytes;
  return TARN_STATUS_OK;
}

// The error message: the last line that the program printed, without its name and "error:".
static tarn_status refuse(const char *program, char *errors, int wait_status) {
  const size_t name = strlen(program);
  size_t length = strlen(errors);
  while (length > 0 && errors[length - 1] == '\n') errors[--length] = '\0';
  const char *line = strrchr(errors, '\n');
  line = line ? line + 1 : errors;
  if (strncmp(line, program, name) == 0 && strncmp(line + name, ": ", 2) == 0) line += name + 2;
  if (strncmp(line, "error: ", 7) == 0) line += 7;
  if (*line) return tarn__fail(TARN_STATUS_IO, "%s: %.500s", program, line);
  if (WIFSIGNALED(wait_status))
    return tarn__fail(TARN_STATUS_IO, "%s was ended by signal %d", program, WTERMSIG(wait_status));
  return tarn__fail(TARN_STATUS_IO, "%s ended with exit code %d", program, WEXITSTATUS(wait_status));
}

// Variables with which a user changes what the programs list, query or wait for. Variables that only give jobs their
// defaults, such as SBATCH_ACCOUNT, are kept, and so is SLURM_CLUSTERS, which all of the programs honour.
static bool is_passed_on(const char *variable) {
  static const char *const dropped[] = {"SQUEUE_",
                                        "SCANCEL_",
                                        "SCONTROL_",
                                        "SBATCH_WAIT=",
                                        "SBATCH_ERROR=",
                                        "SBATCH_NO_REQUEUE=",
                                        "SBATCH_CLUSTERS=",
                                        "SBATCH_MEM_PER_CPU=",
                                        "SBATCH_MEM_PER_GPU="};
  for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++)
    if (strncmp(variable, dropped[i], strlen(dropped[i])) == 0) return false;
  return true;
}

// The list is owned by the caller, its texts are not.
static tarn_status make_environment(char ***list) {
  void *memory;
  size_t count = 0, kept = 0;
  while (environ[count]) count++;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, count + 1, sizeof **list));
  *list = memory;
  for (size_t i = 0; i < count; i++)
    if (is_passed_on(environ[i])) (*list)[kept++] = environ[i];
  return TARN_STATUS_OK;
}

// Ctrl-C is for the sweep: commands that change something in Slurm run in their own process group, so they are not
// interrupted halfway. A query may be.
static int spawn(pid_t *pid, const char *const *arguments, char *const *environment,
                 const posix_spawn_file_actions_t *actions) {
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setpgroup(&attributes, 0);
  if (strcmp(arguments[0], "squeue") != 0) posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  const int error =
      posix_spawnp(pid, arguments[0], actions, &attributes, (char *const *)(uintptr_t)arguments, environment);
  posix_spawnattr_destroy(&attributes);
  return error;
}

// Starts the program with its output going to two memory files, which never fill up.
static tarn_status start(pid_t *pid, const char *const *arguments, const int fd[2]) {
  char **environment;
  TARN_TRY(make_environment(&environment));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", 0, 0);
  posix_spawn_file_actions_adddup2(&actions, fd[0], 1);
  posix_spawn_file_actions_adddup2(&actions, fd[1], 2);
  const int error = spawn(pid, arguments, environment, &actions);
  posix_spawn_file_actions_destroy(&actions);
  tarn__free(environment);
  TARN_REQUIRE(error != ENOENT && error != EACCES, UNSUPPORTED,
               "there is no %s on PATH: --launcher slurm needs the programs of Slurm", arguments[0]);
  TARN_REQUIRE(error == 0, IO, "cannot start %s: %s", arguments[0], strerror(error));
  return TARN_STATUS_OK;
}

static tarn_status wait_for(pid_t pid, const char *const *arguments, const int fd[2], char **out) {
  char *errors = NULL;
  int wait_status = 0;
  pid_t ended;
  while ((ended = waitpid(pid, &wait_status, 0)) < 0 && errno == EINTR) continue;
  // If SIGCHLD is ignored, the exit status is lost; then the output has to do.
  tarn_status status = read_all(out, fd[0]);
  if (status == TARN_STATUS_OK) status = read_all(&errors, fd[1]);
  if (status == TARN_STATUS_OK && ended == pid && (!WIFEXITED(wait_status) || WEXITSTATUS(wait_status) != 0))
    status = refuse(arguments[0], errors, wait_status);
  tarn__free(errors);
  return status;
}

// Runs a program to its end; *out is its output, which the caller frees, even after a failure.
static tarn_status run(char **out, const char *const *arguments) {
  pid_t pid = 0;
  *out = NULL;
  const int fd[2] = {memfd_create("out", MFD_CLOEXEC), memfd_create("errors", MFD_CLOEXEC)};
  tarn_status status = TARN_STATUS_OK;
  if (fd[0] < 0 || fd[1] < 0) status = tarn__fail(TARN_STATUS_IO, "cannot start %s: %s", arguments[0], strerror(errno));
  if (status == TARN_STATUS_OK) status = start(&pid, arguments, fd);
  if (status == TARN_STATUS_OK) status = wait_for(pid, arguments, fd, out);
  for (int i = 0; i < 2; i++)
    if (fd[i] >= 0) close(fd[i]);
  return status;
}

static bool has_ended(const char *state) {
  static const char *const ends[] = {"BOOT_FAIL", "CANCELLED", "COMPLETED",     "DEADLINE",  "FAILED",
                                     "NODE_FAIL", "TIMEOUT",   "OUT_OF_MEMORY", "PREEMPTED", "REVOKED"};
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
    if (strcmp(state, ends[i]) == 0) return true;
  return false;
}

// NAME|INDEX|JOB|STATE|REASON. A line that is not of an array task is skipped.
static bool read_task(tarn__slurm_task *task, const char *line) {
  char reason[64] = "";
  char job[32];
  char index[32];
  char *end;
  *task = (tarn__slurm_task){0};
  if (sscanf(line, "%95[^|]|%31[^|]|%31[^|]|%31[^|]|%63[^|\n]", task->name, index, job, task->state, reason) < 4)
    return false;
  task->index = strtoll(index, &end, 10);
  if (end == index || *end || task->index < 0) return false;
  snprintf(task->id, sizeof task->id, "%s_%lld", job, (long long)task->index);
  task->alive = !has_ended(task->state);
  const bool tell = strcmp(task->state, "PENDING") == 0 && *reason && strcmp(reason, "None") != 0;
  if (tell)
    snprintf(task->text, sizeof task->text, "%s (%.60s)", task->state, reason);
  else
    snprintf(task->text, sizeof task->text, "%s", task->state);
  return true;
}

tarn_status tarn__slurm_list(tarn__slurm_task **tasks, size_t *count, const char *names) {
  // Includes partitions hidden from this user: unseen jobs would be submitted again.
  const char *const arguments[] = {
      "squeue", "--noheader", "--all", "--array", "--states=all", "--format=%j|%K|%F|%T|%r", "--name", names, NULL};
  char *out;
  size_t capacity = 0;
  *tasks = NULL;
  *count = 0;
  tarn_status status = run(&out, arguments);
  for (const char *line = out; status == TARN_STATUS_OK && *line; line += strcspn(line, "\n"), line += *line == '\n') {
    status = tarn__grow(tasks, &capacity, *count + 1, sizeof **tasks);
    if (status == TARN_STATUS_OK && read_task(&(*tasks)[*count], line)) ++*count;
  }
  tarn__free(out);
  return status;
}

tarn_status tarn__slurm_submit(char id[64], const char *const *arguments) {
  char *out;
  const char *cluster = getenv("SBATCH_CLUSTERS"), *all = getenv("SLURM_CLUSTERS");
  id[0] = '\0';
  TARN_REQUIRE(!cluster || (all && strcmp(cluster, all) == 0), USAGE,
               "SBATCH_CLUSTERS=%s is for sbatch alone, and squeue would not find the jobs: set SLURM_CLUSTERS",
               cluster);
  tarn_status status = run(&out, arguments);
  if (status == TARN_STATUS_OK) snprintf(id, 64, "%.*s", (int)strspn(out, "0123456789"), out);
  if (status == TARN_STATUS_OK && !*id)
    status = tarn__fail(TARN_STATUS_IO, "sbatch: it names no job: \"%.*s\"", (int)strcspn(out, "\n"), out);
  tarn__free(out);
  return status;
}

static tarn_status run_silently(const char *const *arguments) {
  char *out;
  tarn_status status = run(&out, arguments);
  tarn__free(out);
  return status;
}

tarn_status tarn__slurm_cancel(const char *name) {
  const char *const arguments[] = {"scancel", "--quiet", "--name", name, NULL};
  return run_silently(arguments);
}

tarn_status tarn__slurm_requeue(const char *id) {
  const char *const arguments[] = {"scontrol", "requeue", id, NULL};
  return run_silently(arguments);
}
