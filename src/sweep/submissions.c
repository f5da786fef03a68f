#include "sweep/submissions.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "run/names.h"
#include "sweep/slurm.h"

static const char RUNS[] = ".runs";

// The path of a file in the folder of the jobs: NAME and a suffix.
static tarn_status path_of(char path[PATH_MAX], const tarn_sweep *sweep, const char *name, const char *end) {
  TARN_REQUIRE(snprintf(path, PATH_MAX, "%s/" TARN__SWEEP_JOBS "/%s%s", sweep->folder, name, end) < PATH_MAX, IO,
               "%.200s: the path is too long", sweep->folder);
  return TARN_STATUS_OK;
}

static size_t find_run(const tarn_sweep *sweep, const char *line, size_t length) {
  for (size_t i = 0; i < sweep->run_count; i++) {
    char name[TARN_SWEEP_NAME + 32];
    const tarn_sweep_run *run = &sweep->runs[i];
    snprintf(name, sizeof name, TARN__RUN_SEED_PATH, sweep->variants[run->variant].name, (long long)run->seed);
    if (strlen(name) == length && memcmp(name, line, length) == 0) return i;
  }
  return SIZE_MAX;
}

static tarn_status read_runs(tarn__submission *submission, const tarn_sweep *sweep) {
  char path[PATH_MAX];
  char *text;
  size_t size;
  size_t capacity = 0;
  TARN_TRY(path_of(path, sweep, submission->name, RUNS));
  TARN_TRY(tarn__file_read(path, &text, &size));
  tarn_status status = TARN_STATUS_OK;
  for (const char *line = text; *line && status == TARN_STATUS_OK; line += strcspn(line, "\n"), line += *line == '\n') {
    status = tarn__grow(&submission->runs, &capacity, submission->count + 1, sizeof *submission->runs);
    if (status == TARN_STATUS_OK) submission->runs[submission->count++] = find_run(sweep, line, strcspn(line, "\n"));
  }
  tarn__free(text);
  return status;
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const tarn__submission *)a)->name, ((const tarn__submission *)b)->name);
}

tarn_status tarn__submissions_read(tarn__submissions *list, const tarn_sweep *sweep) {
  char path[PATH_MAX];
  *list = (tarn__submissions){0};
  TARN_TRY(path_of(path, sweep, "", ""));
  DIR *folder = opendir(path);
  if (!folder && errno == ENOENT) return TARN_STATUS_OK;
  TARN_REQUIRE(folder, IO, "%s: cannot read the folder: %s", path, strerror(errno));
  tarn_status status = TARN_STATUS_OK;
  for (const struct dirent *entry; status == TARN_STATUS_OK && (entry = readdir(folder));) {
    const char *dot = strrchr(entry->d_name, '.');
    if (!dot || strcmp(dot, RUNS) != 0 || dot - entry->d_name >= (ptrdiff_t)sizeof list->items->name) continue;
    status = tarn__grow(&list->items, &list->capacity, list->count + 1, sizeof *list->items);
    if (status != TARN_STATUS_OK) break;
    tarn__submission *s = &list->items[list->count++];
    *s = (tarn__submission){0};
    memcpy(s->name, entry->d_name, (size_t)(dot - entry->d_name));
    status = read_runs(s, sweep);
  }
  closedir(folder);
  if (list->count) qsort(list->items, list->count, sizeof *list->items, by_name);
  return status;
}

void tarn__submissions_close(tarn__submissions *list) {
  for (size_t i = 0; i < list->count; i++) tarn__free(list->items[i].runs);
  tarn__free(list->items);
  *list = (tarn__submissions){0};
}

// "a,b" with all submissions; the caller frees it.
static tarn_status names_of(char **names, const tarn__submissions *list) {
  void *memory;
  const size_t each = sizeof list->items->name;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, list->count, each));
  char *text = memory;
  size_t used = 0;
  for (size_t i = 0; i < list->count; i++)
    used += (size_t)snprintf(text + used, list->count * each - used, "%s%s", i ? "," : "", list->items[i].name);
  *names = text;
  return TARN_STATUS_OK;
}

// The run of a task, SIZE_MAX: not in the sweep. *order, from 1: of several tasks with the same run, one that is alive
// is shown, else that of the newest submission.
static size_t run_of(size_t *order, tarn__submissions *list, const tarn__slurm_task *task) {
  tarn__submission wanted;
  snprintf(wanted.name, sizeof wanted.name, "%s", task->name);
  tarn__submission *s = bsearch(&wanted, list->items, list->count, sizeof *list->items, by_name);
  if (!s || (size_t)task->index >= s->count) return SIZE_MAX;
  s->alive = s->alive || task->alive;
  *order = (size_t)(s - list->items) + (task->alive ? list->count : 0) + 1;
  return s->runs[task->index];
}

// First determines the task to show for each run, then updates its texts: unchanged texts are kept.
static tarn_status take_tasks(tarn__submissions *list, tarn_sweep *sweep, const tarn__slurm_task *tasks, size_t count,
                              bool *alive) {
  size_t *orders = sweep->memory->order, order = 0;
  for (size_t i = 0; i < count; i++) {
    const size_t at = run_of(&order, list, &tasks[i]);
    if (at != SIZE_MAX && orders[at] < order) orders[at] = order;
  }
  for (size_t i = 0; i < count; i++) {
    const size_t at = run_of(&order, list, &tasks[i]);
    if (at == SIZE_MAX || orders[at] != order) continue;
    tarn_sweep_run *run = &sweep->memory->runs[at];
    TARN_TRY(tarn__sweep_set_text(sweep, &run->job, tasks[i].id));
    TARN_TRY(tarn__sweep_set_text(sweep, &run->job_state, tasks[i].text));
    if (alive) alive[at] = tasks[i].alive;
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__submissions_ask(tarn__submissions *list, tarn_sweep *sweep, bool *alive) {
  char *names;
  tarn__slurm_task *tasks = NULL;
  size_t count = 0;
  if (list->count > 0) {
    TARN_TRY(names_of(&names, list));
    tarn_status status = tarn__slurm_list(&tasks, &count, names);
    tarn__free(names);
    if (status != TARN_STATUS_OK) {
      tarn__free(tasks);
      return status;
    }
  }
  for (size_t i = 0; i < list->count; i++) list->items[i].alive = false;
  for (size_t i = 0; i < sweep->run_count; i++) {
    sweep->memory->order[i] = 0;
    if (alive) alive[i] = false;
  }
  tarn_status status = take_tasks(list, sweep, tasks, count, alive);
  for (size_t i = 0; i < sweep->run_count; i++)
    if (sweep->memory->order[i] == 0) sweep->memory->runs[i].job = sweep->memory->runs[i].job_state = NULL;
  tarn__free(tasks);
  return status;
}

// Only characters without a special meaning in a shell, in squeue's list of names and in file name patterns.
static void make_name(char name[96], const tarn_sweep *sweep) {
  char word[40];
  struct timespec now;
  snprintf(word, sizeof word, "%.32s", sweep->name);
  for (char *c = word; *c; c++)
    if (!isalnum((unsigned char)*c) || (unsigned char)*c >= 0x80) *c = '_';
  clock_gettime(CLOCK_REALTIME, &now);
  const unsigned long long time = (unsigned long long)now.tv_sec * 1000000000ULL + (unsigned long long)now.tv_nsec;
  snprintf(name, 96, "tarn-%s-%016llx%05lx", word, time, (unsigned long)getpid() & 0xfffffUL);
}

static tarn_status write_runs(const tarn_sweep *sweep, const tarn__submission *s) {
  char path[PATH_MAX];
  tarn__writer *writer;
  TARN_TRY(path_of(path, sweep, s->name, RUNS));
  TARN_TRY(tarn__mkdir_of_file(path));
  TARN_TRY(tarn__writer_open(&writer, path));
  tarn_status status = TARN_STATUS_OK;
  for (size_t i = 0; i < s->count && status == TARN_STATUS_OK; i++) {
    char line[TARN_SWEEP_NAME + 32];
    const tarn_sweep_run *run = &sweep->runs[s->runs[i]];
    const int length =
        snprintf(line, sizeof line, TARN__RUN_SEED_PATH "\n", sweep->variants[run->variant].name, (long long)run->seed);
    status = tarn__writer_put(writer, line, (size_t)length);
  }
  if (status == TARN_STATUS_OK) return tarn__writer_commit(&writer);
  tarn__writer_abort(&writer);
  return status;
}

// Quotes a text for a shell.
static tarn_status put_quoted(tarn__writer *writer, const char *text) {
  TARN_TRY(tarn__writer_put(writer, "'", 1));
  for (; *text; text++)
    TARN_TRY(*text == '\'' ? tarn__writer_put(writer, "'\\''", 4) : tarn__writer_put(writer, text, 1));
  return tarn__writer_put(writer, "'", 1);
}

static tarn_status put(tarn__writer *writer, const char *text) { return tarn__writer_put(writer, text, strlen(text)); }

static tarn_status put_script(tarn__writer *writer, const char *program, const char *folder, const char *runs,
                              bool retry_failed) {
  TARN_TRY(put(writer,
               "#!/bin/sh\n# A task of an array job of Slurm: the line of the list that has its number is its "
               "run.\nrun=$(sed -n \"$((SLURM_ARRAY_TASK_ID + 1))p\" "));
  TARN_TRY(put_quoted(writer, runs));
  TARN_TRY(put(writer, ") && [ -n \"$run\" ] || exit 1\nexec "));
  TARN_TRY(put_quoted(writer, program));
  TARN_TRY(put(writer, " sweep --launcher slurm --output "));
  TARN_TRY(put_quoted(writer, folder));
  return put(writer, retry_failed ? " --retry-failed --only \"$run\"\n" : " --only \"$run\"\n");
}

static tarn_status write_script(const tarn_sweep *sweep, const tarn__submission *s, const tarn_sweep_options *options,
                                const char *folder) {
  char path[PATH_MAX];
  char runs[PATH_MAX];
  char program[PATH_MAX];
  tarn__writer *writer;
  const char *wanted = options->program ? options->program : "/proc/self/exe";
  TARN_REQUIRE(realpath(wanted, program), IO, "%s: cannot find the program: %s", wanted, strerror(errno));
  TARN_REQUIRE(snprintf(runs, sizeof runs, "%s/" TARN__SWEEP_JOBS "/%s%s", folder, s->name, RUNS) < (int)sizeof runs,
               IO, "%.200s: the path is too long", folder);
  TARN_TRY(path_of(path, sweep, s->name, ".sh"));
  TARN_TRY(tarn__writer_open(&writer, path));
  tarn_status status = put_script(writer, program, folder, runs, options->retry_failed);
  if (status == TARN_STATUS_OK) return tarn__writer_commit(&writer);
  tarn__writer_abort(&writer);
  return status;
}

// Planned bytes plus a fifth and 256 MiB: for the test, system buffers, and the allocator's overhead. Of the largest
// run, because the tasks of an array have equal limits.
static long long mebibytes(const tarn_sweep *sweep, const tarn__submission *s) {
  size_t most = 0;
  for (size_t i = 0; i < s->count; i++) {
    const tarn_plan *plan = &sweep->variants[sweep->runs[s->runs[i]].variant].plan;
    if (plan->total_bytes > most) most = plan->total_bytes;
  }
  return (long long)ceil(1.2 * (double)most / 1048576.0) + 256;
}

// In a pattern for output file names a % is doubled.
static void log_pattern(char pattern[2 * PATH_MAX], const char *folder, const char *name) {
  size_t used = 0;
  for (const char *c = folder; *c; c++) {
    pattern[used++] = *c;
    if (*c == '%') pattern[used++] = '%';
  }
  snprintf(pattern + used, 2 * PATH_MAX - used, "/" TARN__SWEEP_JOBS "/%s-%%a.log", name);
}

static const char MOST[] = "most-jobs=";

// The options as stored: one per line.
static tarn_status write_options(const tarn_sweep *sweep, const char *const *arguments, size_t count, int64_t most) {
  char path[PATH_MAX];
  char line[64];
  tarn__writer *writer;
  TARN_TRY(path_of(path, sweep, "options", ""));
  TARN_TRY(tarn__mkdir_of_file(path));
  TARN_TRY(tarn__writer_open(&writer, path));
  snprintf(line, sizeof line, "%s%lld\n", MOST, (long long)most);
  tarn_status status = put(writer, line);
  for (size_t i = 0; i < count && status == TARN_STATUS_OK; i++) {
    status = put(writer, arguments[i]);
    if (status == TARN_STATUS_OK) status = put(writer, "\n");
  }
  if (status == TARN_STATUS_OK) return tarn__writer_commit(&writer);
  tarn__writer_abort(&writer);
  return status;
}

static tarn_status read_options(tarn_sweep *sweep, const char **arguments, size_t *count, size_t limit, int64_t *most) {
  char path[PATH_MAX];
  char *text;
  size_t size;
  TARN_TRY(path_of(path, sweep, "options", ""));
  if (!tarn__file_exists(path)) return TARN_STATUS_OK;
  TARN_TRY(tarn__file_read(path, &text, &size));
  tarn_status status = TARN_STATUS_OK;
  for (char *line = text, *next; *line && status == TARN_STATUS_OK; line = next) {
    next = line + strcspn(line, "\n");
    if (*next) *next++ = '\0';
    if (strncmp(line, MOST, sizeof MOST - 1) == 0)
      *most = strtoll(line + sizeof MOST - 1, NULL, 10);
    else if (*count < limit)
      status = tarn__sweep_text(sweep, &arguments[(*count)++], "%s", line);
  }
  tarn__free(text);
  return status;
}

enum { MOST_OPTIONS = 100 };

// A job is found again by its name and its cluster, and the script and the array identify its runs: options that change
// these would create jobs that are lost at once and submitted again. sbatch also accepts abbreviated names.
static tarn_status check_option(const char *option) {
  static const char *const names[] = {"--job-name", "--array", "--clusters", "--wrap"};
  const size_t length = strcspn(option, "=");
  bool taken = option[0] == '-' && option[1] && strchr("JaM", option[1]);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    taken = taken || (length > 2 && strncmp(option, names[i], length) == 0);
  TARN_REQUIRE(!strchr(option, '\n'), USAGE, "an option for sbatch has a line end");
  TARN_REQUIRE(option[0] == '-', USAGE, "\"%s\" is no option for sbatch: write it as one word, such as --qos=low",
               option);
  TARN_REQUIRE(!taken, USAGE, "%s is for a sweep itself to tell sbatch: by it the jobs are found again", option);
  return TARN_STATUS_OK;
}

typedef struct wishes {
  const char *const *arguments;
  size_t count;
  int64_t most_jobs;
  bool given;  // by this command; else the options that Slurm accepted last time
} wishes;

// The user's sbatch settings: partition, account, time and further options, as arguments.
static tarn_status find_options(wishes *w, tarn_sweep *sweep, const tarn_sweep_options *options) {
  const char *const words[] = {"--partition", "--account", "--time"};
  const char *const values[] = {options->partition, options->account, options->time};
  void *memory;
  *w = (wishes){.most_jobs = options->most_jobs};
  TARN_TRY(tarn__arena_alloc(&sweep->memory->arena, &memory, MOST_OPTIONS, sizeof(char *)));
  const char **list = memory;
  w->arguments = list;
  for (size_t i = 0; i < 3; i++)
    if (values[i]) TARN_TRY(tarn__sweep_text(sweep, &list[w->count++], "%s=%s", words[i], values[i]));
  TARN_REQUIRE(w->count + options->sbatch_count <= MOST_OPTIONS, USAGE, "at most %d options for sbatch", MOST_OPTIONS);
  for (size_t i = 0; i < options->sbatch_count; i++)
    TARN_TRY(tarn__sweep_text(sweep, &list[w->count++], "%s", options->sbatch[i]));
  w->given = w->count > 0 || w->most_jobs > 0;
  if (!w->given) TARN_TRY(read_options(sweep, list, &w->count, MOST_OPTIONS, &w->most_jobs));
  for (size_t i = 0; i < w->count; i++) TARN_TRY(check_option(list[i]));
  return TARN_STATUS_OK;
}

enum { OWN_ARGUMENTS = 20 };

static tarn_status submit(const tarn_sweep *sweep, const tarn__submission *s, const wishes *w, const char *folder) {
  char texts[3][64], job[64], script[PATH_MAX], pattern[2 * PATH_MAX];
  void *memory;
  size_t n = 0;
  const long long last = (long long)s->count - 1;
  snprintf(texts[0], sizeof texts[0], "--array=0-%lld", last);
  if (w->most_jobs > 0) snprintf(texts[0], sizeof texts[0], "--array=0-%lld%%%lld", last, (long long)w->most_jobs);
  snprintf(texts[1], sizeof texts[1], "--cpus-per-task=%lld", (long long)sweep->threads);
  snprintf(texts[2], sizeof texts[2], "--mem=%lldM", mebibytes(sweep, s));
  log_pattern(pattern, folder, s->name);
  TARN_REQUIRE(snprintf(script, sizeof script, "%s/" TARN__SWEEP_JOBS "/%s.sh", folder, s->name) < (int)sizeof script,
               IO, "%.200s: the path is too long", folder);
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, OWN_ARGUMENTS + w->count, sizeof(char *)));
  const char **arguments = memory;
  // The tarn that the script executes is asked to save 90 seconds before its time is over.
  const char *const own[] = {"sbatch",     "--parsable", "--job-name",        s->name, "--nodes=1",
                             "--ntasks=1", "--requeue",  "--output",          pattern, "--open-mode=append",
                             texts[0],     texts[1],     "--signal=B:HUP@90", texts[2]};
  for (; n < sizeof own / sizeof *own; n++) arguments[n] = own[n];
  for (size_t i = 0; i < w->count; i++) arguments[n++] = w->arguments[i];
  arguments[n] = script;
  tarn_status status = tarn__slurm_submit(job, arguments);
  tarn__free(arguments);
  return status;
}

static void remove_files(const tarn_sweep *sweep, const tarn__submission *s) {
  char path[PATH_MAX];
  if (path_of(path, sweep, s->name, RUNS) == TARN_STATUS_OK) unlink(path);
  if (path_of(path, sweep, s->name, ".sh") == TARN_STATUS_OK) unlink(path);
}

// sbatch can fail after the controller has the job: it was killed, or timed out. OK: Slurm has the job anyway. *known:
// Slurm confirms that there is none.
static tarn_status check_refused(const tarn__submission *s, tarn_status failure, bool *known) {
  char message[1000];
  tarn__slurm_task *tasks;
  size_t count;
  bool found = false;
  snprintf(message, sizeof message, "%s", tarn_error_message());
  *known = tarn__slurm_list(&tasks, &count, s->name) == TARN_STATUS_OK;
  for (size_t i = 0; *known && i < count; i++) found = found || strcmp(tasks[i].name, s->name) == 0;
  tarn__free(tasks);
  if (!found) return tarn__fail(failure, "%s", message);
  tarn__log(TARN_LOG_WARNING, "%s: Slurm has the jobs all the same", message);
  return TARN_STATUS_OK;
}

tarn_status tarn__submissions_add(tarn__submissions *list, tarn_sweep *sweep, const tarn_sweep_options *options,
                                  const size_t *runs, size_t count) {
  char folder[PATH_MAX];
  void *memory;
  wishes w;
  tarn__submission s = {.count = count};
  TARN_REQUIRE(realpath(sweep->folder, folder), IO, "%s: cannot find the folder: %s", sweep->folder, strerror(errno));
  TARN_TRY(find_options(&w, sweep, options));
  TARN_TRY(tarn__grow(&list->items, &list->capacity, list->count + 1, sizeof *list->items));
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, count, sizeof *s.runs));
  s.runs = memory;
  memcpy(s.runs, runs, count * sizeof *runs);
  make_name(s.name, sweep);
  tarn_status status = write_runs(sweep, &s);
  if (status == TARN_STATUS_OK) status = write_script(sweep, &s, options, folder);
  bool gone = true;
  if (status == TARN_STATUS_OK) {
    status = submit(sweep, &s, &w, folder);
    if (status == TARN_STATUS_IO) status = check_refused(&s, status, &gone);
  }
  if (status == TARN_STATUS_OK) {
    list->items[list->count++] = s;
    if (w.given && write_options(sweep, w.arguments, w.count, w.most_jobs) != TARN_STATUS_OK)  // the jobs exist
      tarn__log(TARN_LOG_WARNING, "%s: later commands do not know the options of sbatch", tarn_error_message());
    return TARN_STATUS_OK;
  }
  if (gone) remove_files(sweep, &s);  // else the next command queries it by name
  tarn__free(s.runs);
  return status;
}

void tarn__submissions_prune(tarn__submissions *list, const tarn_sweep *sweep) {
  size_t kept = 0;
  for (size_t i = 0; i < list->count; i++) {
    if (list->items[i].alive) {
      list->items[kept++] = list->items[i];
      continue;
    }
    remove_files(sweep, &list->items[i]);
    tarn__free(list->items[i].runs);
  }
  list->count = kept;
}

tarn_status tarn__submissions_mark(const tarn_sweep *sweep, bool cancelled) {
  char path[PATH_MAX];
  TARN_TRY(path_of(path, sweep, "cancelled", ""));
  if (cancelled) return tarn__file_write(path, "", 0);
  TARN_REQUIRE(unlink(path) == 0 || errno == ENOENT, IO, "%s: cannot remove: %s", path, strerror(errno));
  return TARN_STATUS_OK;
}

bool tarn__submissions_are_cancelled(const tarn_sweep *sweep) {
  char path[PATH_MAX];
  return path_of(path, sweep, "cancelled", "") == TARN_STATUS_OK && tarn__file_exists(path);
}
