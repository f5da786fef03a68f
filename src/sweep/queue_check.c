// What a sweep of a queue needs before its first run: its data, and an estimate of what its trainings take. Both are
// found by `tarn sweep --dry-run` in the working folder, to which paths of the description are relative.
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/file.h"
#include "base/json_io.h"
#include "run/names.h"
#include "sweep/queue_memory.h"

// The first command of question.md, the lines indented by four spaces, in one line: the one that prepares the data.
static void read_command(char *command, size_t size, const char *folder) {
  char path[PATH_MAX], *text;
  size_t length, used = 0;
  bool begun = false;
  command[0] = '\0';
  if (tarn__path_join(path, folder, "question.md") != TARN_STATUS_OK || !tarn__file_exists(path)) return;
  if (tarn__file_read(path, &text, &length) != TARN_STATUS_OK) return;
  for (const char *line = text; *line;) {
    size_t bytes = strcspn(line, "\n");
    const bool more = bytes > 0 && line[bytes - 1] == '\\';
    const size_t space = strspn(line, " ");
    const bool taken = space >= 4 && space < bytes;
    size_t end = more ? bytes - 1 : bytes;
    while (end > space && line[end - 1] == ' ') end--;
    if (begun && !taken) break;
    if (taken && used < size) {
      used +=
          (size_t)snprintf(command + used, size - used, "%s%.*s", begun ? " " : "", (int)(end - space), line + space);
      begun = true;
      if (!more) break;
    }
    line += bytes + (line[bytes] == '\n');
  }
  // Shown on terminals, which control characters could command.
  for (char *c = command; *c; c++)
    if ((unsigned char)*c < ' ' || *c == 127) *c = '?';
  tarn__free(text);
}

static tarn_status take_forecasts(tarn__queue_sweep *s, const char *output) {
  json_t *plan, *variant;
  size_t i;
  TARN_TRY(tarn__json_file(&plan, output, 0, NULL));
  json_array_foreach(json_object_get(plan, "variants"), i, variant) {
    const char *name = json_string_value(json_object_get(variant, "name"));
    for (size_t v = 0; name && v < s->outline->variant_count; v++)
      if (strcmp(s->outline->variants[v].name, name) == 0)
        s->forecast[v] = json_number_value(json_object_get(variant, "run_seconds"));
  }
  json_decref(plan);
  return TARN_STATUS_OK;
}

static tarn_status fail_check(struct tarn__queue_memory *q, size_t index, const char *errors, int wait_status) {
  char message[1000], command[TARN__QUEUE_TEXT], text[2 * TARN__QUEUE_TEXT + 1000];
  const tarn__queue_sweep *s = &q->sweeps[index];
  tarn__child_message(message, sizeof message, errors, wait_status);
  read_command(command, sizeof command, s->public->folder);
  snprintf(text, sizeof text, "%s: %s; data are looked for in %s%s%s", s->public->folder, message, s->public->work,
           *command ? ", prepared by the command of question.md: " : "", command);
  return tarn__queue_leave(q, index, text);
}

tarn_status tarn__queue_check(struct tarn__queue_memory *q, size_t index) {
  tarn__queue_sweep *s = &q->sweeps[index];
  char output[PATH_MAX], errors[PATH_MAX];
  pid_t pid;
  int wait_status = 0;
  const char *const arguments[] = {"tarn", "sweep", s->file, "--output", "runs", "--dry-run", "--json", NULL};
  TARN_TRY(tarn__queue_path(output, s, "plan.json"));
  TARN_TRY(tarn__queue_path(errors, s, TARN__RUN_ERRORS));
  const tarn__child child = {.program = q->options.program ? q->options.program : "/proc/self/exe",
                             .arguments = arguments,
                             .folder = s->public->work,
                             .output = output,
                             .errors = errors};
  TARN_TRY(tarn__child_start(&pid, &child));
  TARN_TRY(tarn__child_wait(&wait_status, pid, &child));
  if (!WIFEXITED(wait_status) || WEXITSTATUS(wait_status) != 0) return fail_check(q, index, errors, wait_status);
  TARN_TRY(take_forecasts(s, output));
  s->seen = 0;  // the costs of runs follow from the estimates
  return tarn__queue_read(q, index, false);
}
