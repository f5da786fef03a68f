// Commits of records to git, by its program.
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "run/names.h"
#include "sweep/queue_memory.h"

// The lock of the folder. With a * it would be any variant whose name begins like that.
#define OTHERS ":(exclude,literal)" TARN__RUN_LOCK

// Runs git in the folder of the records. *message: the last line of its output if it fails; "": it did not.
static tarn_status git(char message[TARN__QUEUE_TEXT], const tarn__queue_sweep *s, const char *const *command) {
  const char *arguments[16] = {"env", "git", "-C", s->public->folder};
  char log[PATH_MAX];
  pid_t pid;
  int wait_status = 0;
  for (size_t i = 0; command[i] && i < 11; i++) arguments[4 + i] = command[i];
  TARN_TRY(tarn__queue_path(log, s, "git.txt"));
  // If it were killed with the queue, it would leave a lock that stops all further work with the repository.
  const tarn__child child = {
      .program = "/usr/bin/env", .arguments = arguments, .output = log, .errors = log, .outlives = true};
  TARN_TRY(tarn__child_start(&pid, &child));
  TARN_TRY(tarn__child_wait(&wait_status, pid, &child));
  message[0] = '\0';
  if (!WIFEXITED(wait_status) || WEXITSTATUS(wait_status) != 0)
    tarn__child_message(message, TARN__QUEUE_TEXT, log, wait_status);
  return TARN_STATUS_OK;
}

// The folder alone: what else is staged stays so. Git refuses to add what a file .gitignore names, even where it is
// named to be left out.
tarn_status tarn__queue_commit(struct tarn__queue_memory *q, size_t index, const char *what) {
  tarn__queue_sweep *s = &q->sweeps[index];
  char message[TARN__QUEUE_TEXT], subject[TARN__QUEUE_TEXT];
  const char *const ignored[] = {"check-ignore", "--quiet", TARN__RUN_LOCK, NULL};
  TARN_TRY(git(message, s, ignored));
  const char *others = *message ? OTHERS : NULL;
  const char *const add[] = {"add", "--all", "--", ".", others, NULL};
  const char *const commit[] = {"commit", "--quiet", "--message", subject, "--", ".", others, NULL};
  snprintf(subject, sizeof subject, "results: record %s of %s", what, s->public->name);
  TARN_TRY(git(message, s, add));
  if (!*message) TARN_TRY(git(message, s, commit));
  char *copy = NULL;
  if (*message) TARN_TRY(tarn__arena_strdup(&q->arena, &copy, message));
  s->public->uncommitted = copy;
  tarn__queue_tell(q, *message ? TARN_QUEUE_EVENT_UNCOMMITTED : TARN_QUEUE_EVENT_COMMITTED, index, NULL, -1,
                   *message ? message : subject);
  return TARN_STATUS_OK;
}
