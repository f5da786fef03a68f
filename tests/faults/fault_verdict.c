#include "fault_verdict.h"

#include <ctype.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { MOST_MESSAGES = 400, MOST_SHOWN = 12 };

static struct {
  char text[240];
  size_t count;
} messages[MOST_MESSAGES];

static __attribute__((format(printf, 3, 4))) void bad(verdict *v, const char *what, const char *format, ...) {
  char line[2048];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  if (v->failures++ < MOST_SHOWN) printf("FAILED %s, %s: %s\n", v->command->name, what, line);
  fflush(stdout);
}

// --- messages
// ---------------------------------------------------------------------------------------------------------

// Notes a line with its numbers made equal.
static void note_message(const char *line) {
  char text[sizeof messages->text];
  size_t used = 0;
  for (const char *p = line; *p && used < sizeof text - 1; p++) {
    if (isdigit((unsigned char)*p) && used > 0 && text[used - 1] == '#') continue;
    text[used++] = isdigit((unsigned char)*p) ? '#' : *p;
  }
  text[used] = '\0';
  for (size_t i = 0; i < MOST_MESSAGES; i++) {
    if (messages[i].count && strcmp(messages[i].text, text) != 0) continue;
    memcpy(messages[i].text, text, sizeof text);
    messages[i].count++;
    return;
  }
}

void verdict_print_messages(void) {
  for (size_t i = 0; i < MOST_MESSAGES && messages[i].count; i++)
    printf("%8zu  %s\n", messages[i].count, messages[i].text);
}

// A failure says one line; warnings and what a command tells on its way come before it.
static void check_message(verdict *v, const char *what, bool memory) {
  size_t size;
  size_t lines = 0;
  char *text = file_contents(v->command->err, &size);
  char last[1024] = "";
  bool last_told = false;
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
    const bool told = strncmp(line, "tarn: ", 6) == 0;
    lines += !told;
    snprintf(last, sizeof last, "%s", line);
    last_told = told;
  }
  lines += last_told;  // "tarn: cannot write to standard output"
  note_message(last);
  if (lines != 1)
    bad(v, what, "%zu lines on standard error: %s", lines, last);
  else if (strncmp(last, "tarn", 4) != 0)
    bad(v, what, "not a line of the program: %s", last);
  else if (memory && !strstr(last, "memory"))
    bad(v, what, "memory is not named: %s", last);
  free(text);
}

// --- folders
// ----------------------------------------------------------------------------------------------------------

static bool is_temporary(const char *path) { return strstr(path, ".tmp.") || strstr(path, ".partial/"); }

// Whether every file is that of before or that of the whole run, or one that the command may leave on its way.
static void check_files(verdict *v, const char *what, const tree *now, bool killed) {
  for (size_t i = 0; i < now->count; i++) {
    const tree_file *f = &now->files[i];
    if (is_temporary(f->path)) {
      if (!killed && !v->keeps) bad(v, what, "%s is left", f->path);
    } else if (!v->loads && !tree_has(&v->old, f) && !tree_has(&v->whole, f)) {
      bad(v, what, "%s is neither the old file nor the new one (%zu bytes)", f->path, f->size);
    }
  }
  for (size_t i = 0; i < v->old.count; i++) {
    const char *path = v->old.files[i].path;
    if (v->drops && strstr(v->drops, path)) continue;
    if (!tree_find(now, path) && tree_find(&v->whole, path)) bad(v, what, "%s is lost", path);
  }
}

static bool same_tree(const tree *a, const tree *b) {
  if (a->count != b->count) return false;
  for (size_t i = 0; i < a->count; i++)
    if (strcmp(a->files[i].path, b->files[i].path) != 0 || a->files[i].hash != b->files[i].hash) return false;
  return true;
}

static void check_whole(verdict *v, const char *what, const tree *now) {
  for (size_t i = 0; i < now->count; i++) {
    const tree_file *f = &now->files[i];
    if (!tree_find(&v->whole, f->path)) {
      if (v->keeps) continue;
      bad(v, what, "%s is left over", f->path);
    } else if (!tree_has(&v->whole, f)) {
      bad(v, what, "%s has other bytes than after an undisturbed run", f->path);
    }
  }
  for (size_t i = 0; i < v->whole.count; i++)
    if (!tree_find(now, v->whole.files[i].path)) bad(v, what, "%s is not there", v->whole.files[i].path);
}

static void read_err(verdict *v, char text[512]) {
  size_t size;
  char *all = file_contents(v->command->err, &size);
  snprintf(text, 512, "%s", all);
  for (char *p = text; *p; p++)
    if (*p == '\n') *p = *p && p[1] ? '|' : '\0';
  free(all);
}

// Runs a script or the command, which must succeed.
static bool run_well(verdict *v, const char *what, const char *script, const char *name) {
  char text[512];
  command_reset(v->command);
  int status = command_run(v->command, script, -1, NULL);
  if (status == 0) return true;
  read_err(v, text);
  bad(v, what, "%s: %s %d: %s", name, WIFEXITED(status) ? "exit code" : "status",
      WIFEXITED(status) ? WEXITSTATUS(status) : status, text);
  return false;
}

static void go_on(verdict *v, const char *what) {
  tree now;
  if (!run_well(v, what, v->command->again, "the run after it")) return;
  tree_read(&now, v->command->folder);
  check_whole(v, what, &now);
  tree_close(&now);
}

// --- verdicts
// ---------------------------------------------------------------------------------------------------------

void verdict_reset(verdict *v) { tree_copy(v->before, v->command->folder); }

void verdict_begin(verdict *v, fault_state *counted) {
  tree again;
  char text[512];
  for (int round = 0; round < 2; round++) {
    verdict_reset(v);
    command_reset(v->command);
    v->command->state->places = round == 0;
    int status = command_run(v->command, NULL, -1, &v->seconds);
    read_err(v, text);
    if (status != 0) give_up("%s: it fails undisturbed (%d): %s", v->command->name, status, text);
    if (round == 0) {
      tree_read(&v->whole, v->command->folder);
      memcpy(counted, v->command->state, sizeof *counted);
      v->output = file_contents(v->command->out, &v->output_size);
    }
  }
  tree_read(&again, v->command->folder);
  if (!same_tree(&v->whole, &again)) {
    check_whole(v, "nothing", &again);
    give_up("%s: two undisturbed runs write other bytes", v->command->name);
  }
  tree_close(&again);
  tree_read(&v->old, v->before);
}

void verdict_close(verdict *v) {
  tree_close(&v->old);
  tree_close(&v->whole);
  free(v->output);
}

static void check_success(verdict *v, const char *what, const tree *now) {
  size_t size;
  char *output = file_contents(v->command->out, &size);
  size_t before = v->failures;
  check_whole(v, what, now);
  if (v->failures != before) bad(v, what, "and it says that all is well");
  if (size != v->output_size || memcmp(output, v->output, size) != 0)
    bad(v, what, "standard output is another one, and it says that all is well");
  free(output);
}

void verdict_after_failure(verdict *v, const char *what, int wait_status, bool memory) {
  tree now;
  tree_read(&now, v->command->folder);
  if (wait_status == -1) {
    bad(v, what, "it hangs");
  } else if (WIFSIGNALED(wait_status)) {
    char text[512];
    read_err(v, text);
    bad(v, what, "signal %d: %s", WTERMSIG(wait_status), text);
  } else if (WEXITSTATUS(wait_status) == 0) {
    check_success(v, what, &now);
    tree_close(&now);
    return;
  } else {
    if (WEXITSTATUS(wait_status) > 2) bad(v, what, "exit code %d", WEXITSTATUS(wait_status));
    check_message(v, what, memory);
  }
  check_files(v, what, &now, false);
  bool unchanged = same_tree(&now, &v->old);
  tree_close(&now);
  if (!unchanged) go_on(v, what);
}

void verdict_after_kill(verdict *v, const char *what) {
  tree now;
  tree_read(&now, v->command->folder);
  check_files(v, what, &now, true);
  tree_close(&now);
  if (v->loads) run_well(v, what, v->loads, "what is left does not load");
  go_on(v, what);
}
