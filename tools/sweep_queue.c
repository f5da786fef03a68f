#include "sweep_queue.h"

#include <stdio.h>
#include <string.h>

#include "json_output.h"
#include "sequential_text.h"
#include "stop_signal.h"

typedef struct view {
  const cli_command *command;
  bool json, quiet;
  size_t failed;  // runs
  int code;       // of a failure to print
} view;

static void print_json(view *v, json_t *object) {
  const int code = json_output_print(v->command, stdout, object, JSON_COMPACT | JSON_REAL_PRECISION(9));
  if (code != CLI_OK) v->code = code;
  fflush(stdout);
}

static json_t *whole(int64_t value) { return value < 0 ? json_null() : json_integer(value); }

static void on_event(void *user, const tarn_queue_event *e) {
  view *v = user;
  char run[32] = "";
  const char *kind = tarn_queue_event_name(e->kind);
  v->failed += e->kind == TARN_QUEUE_EVENT_FAILED;
  if (v->quiet && e->kind == TARN_QUEUE_EVENT_FAILED)
    fprintf(stderr, "tarn sweep: %s: %s seed %lld failed: %s\n", e->sweep, e->variant, (long long)e->seed, e->text);
  // What is left out is said at the end, as a failure.
  if (v->quiet || (e->kind == TARN_QUEUE_EVENT_LEFT_OUT && !v->json)) return;
  if (v->json) {
    print_json(v,
               json_pack("{s:s, s:o?, s:o?, s:o, s:o?}", "kind", kind, "sweep", json_output_text(e->sweep), "variant",
                         json_output_text(e->variant), "seed", whole(e->seed), "text", json_output_text(e->text)));
    return;
  }
  if (e->seed >= 0) snprintf(run, sizeof run, " seed %lld", (long long)e->seed);
  printf("%-11s %s%s%s%s%s%s\n", kind, e->sweep, e->variant ? ": " : "", e->variant ? e->variant : "", run,
         *e->text ? "  " : "", e->text);
  fflush(stdout);
}

static json_t *comparison_json(const tarn_queue_comparison *c) {
  const tarn_sequential_verdict *s = &c->verdict;
  json_t *o = json_pack("{s:s, s:s, s:b, s:s, s:I, s:I, s:f}", "variant", c->variant, "decision",
                        tarn_sequential_decision_name(s->decision), "unaffordable", (int)c->unaffordable, "words",
                        c->words ? c->words : "", "looks", (json_int_t)s->looks, "seeds", (json_int_t)s->seeds,
                        "look_seconds", c->look_seconds);
  json_object_set_new(o, "difference", json_output_real(s->difference));
  json_object_set_new(o, "low", json_output_real(s->low));
  json_object_set_new(o, "high", json_output_real(s->high));
  json_object_set_new(o, "p", json_output_real(s->p));
  json_object_set_new(o, "p_equal", json_output_real(s->p_equal));
  json_object_set_new(o, "chance", json_output_real(s->chance));
  return o;
}

static void print_state_json(view *v, const tarn_queue *queue) {
  json_t *sweeps = json_array();
  for (size_t i = 0; i < queue->count; i++) {
    const tarn_queue_sweep *s = &queue->sweeps[i];
    json_t *comparisons = json_array();
    for (size_t c = 0; c < s->comparison_count; c++)
      json_array_append_new(comparisons, comparison_json(&s->comparisons[c]));
    json_array_append_new(
        sweeps, json_pack("{s:o?, s:o?, s:o?, s:o?, s:o?, s:I, s:I, s:I, s:o?, s:o}", "name", json_output_text(s->name),
                          "folder", json_output_text(s->folder), "problem", json_output_text(s->problem), "uncommitted",
                          json_output_text(s->uncommitted), "baseline", json_output_text(s->baseline), "finished",
                          (json_int_t)s->finished, "failed", (json_int_t)s->failed, "waiting", (json_int_t)s->waiting,
                          "awaited", json_output_text(s->awaited), "comparisons", comparisons));
  }
  const tarn_queue_choice *n = &queue->next;
  json_t *next = n->variant
                     ? json_pack("{s:o?, s:s, s:I, s:f, s:o?}", "sweep", json_output_text(queue->sweeps[n->sweep].name),
                                 "variant", n->variant, "seed", (json_int_t)n->seed, "seconds", n->seconds, "reason",
                                 json_output_text(n->reason))
                     : json_null();
  print_json(v, json_pack("{s:s, s:o, s:o}", "kind", "state", "sweeps", sweeps, "next", next));
}

static bool print_state(const tarn_queue *queue) {
  bool whole_text = true;
  for (size_t i = 0; i < queue->count; i++) {
    const tarn_queue_sweep *s = &queue->sweeps[i];
    if (s->comparison_count == 0) continue;
    text_table table = {0};
    printf("%s: %s against %s, %s recorded", s->name, s->design.measure, s->baseline,
           CLI_COUNT((int64_t)s->finished, "run"));
    if (s->failed) printf(", %zu failed", s->failed);
    printf("\n");
    sequential_text_heads(&table, "variant");
    for (size_t c = 0; c < s->comparison_count; c++) {
      const tarn_queue_comparison *one = &s->comparisons[c];
      sequential_text_row(&table, one->variant, &one->verdict, &s->design, -1, one->words ? one->words : "");
    }
    whole_text = text_table_print(&table) && whole_text;
    if (s->waiting > 0)
      printf("%s of it %s for the end of the training that train.init_from names, the first for that of %s\n",
             CLI_COUNT((int64_t)s->waiting, "run"), s->waiting == 1 ? "waits" : "wait", s->awaited);
    printf("\n");
  }
  return whole_text;
}

static bool is_any_open(const tarn_queue *queue) {
  for (size_t i = 0; i < queue->count; i++)
    for (size_t c = 0; c < queue->sweeps[i].comparison_count; c++) {
      const tarn_queue_comparison *one = &queue->sweeps[i].comparisons[c];
      if (one->verdict.decision == TARN_SEQUENTIAL_OPEN && !one->unaffordable) return true;
    }
  return false;
}

static void print_next(const tarn_queue *queue, bool shared) {
  const tarn_queue_choice *n = &queue->next;
  char time[32];
  if (!n->variant) {
    size_t comparisons = 0;
    for (size_t i = 0; i < queue->count; i++) comparisons += queue->sweeps[i].comparison_count;
    if (comparisons == 0) return;  // why is said as a failure
    if (!is_any_open(queue))
      printf("every comparison is decided or closed: nothing to do\n");
    else if (shared)
      printf("no run of this share can be taken: take the records of the others in, and call again\n");
    else
      printf("no run can be taken now\n");
    return;
  }
  printf("next: %s: %s seed %lld, about %s of training: %s\n", queue->sweeps[n->sweep].name, n->variant,
         (long long)n->seed, cli_time(time, n->seconds), n->reason);
}

static int print_end(view *v, const tarn_queue *queue, bool shared) {
  bool failed = v->failed > 0;
  if (v->json) {
    print_state_json(v, queue);
  } else if (!v->quiet) {
    if (!print_state(queue)) v->code = cli_no_memory(v->command);
    print_next(queue, shared);
  }
  fflush(stdout);
  for (size_t i = 0; i < queue->count; i++) {
    const tarn_queue_sweep *s = &queue->sweeps[i];
    failed = failed || s->problem || s->uncommitted;
    if (s->uncommitted) fprintf(stderr, "tarn sweep: not committed: %s: %s\n", s->folder, s->uncommitted);
    if (s->problem) fprintf(stderr, "tarn sweep: left out: %s\n", s->problem);
  }
  if (v->failed) fprintf(stderr, "tarn sweep: %s failed\n", CLI_COUNT((int64_t)v->failed, "run"));
  return failed ? CLI_FAILURE : v->code;
}

int sweep_queue(const cli_command *command, tarn_queue_options *options, bool dry_run, bool json, bool quiet) {
  view v = {.command = command, .json = json, .quiet = quiet, .code = CLI_OK};
  tarn_queue *queue;
  options->on_event = on_event;
  options->user = &v;
  tarn_status status = tarn_queue_open(&queue, options);
  if (status != TARN_STATUS_OK) return cli_report(command, status);
  if (!dry_run) {
    stop_in_order(true);
    status = tarn_queue_run(queue);
    stop_in_order(false);
  }
  int code;
  if (status == TARN_STATUS_INTERRUPTED && stop_signal) {
    cli_report(command, status);
    code = 128 + (int)stop_signal;
  } else {
    code = status == TARN_STATUS_OK ? print_end(&v, queue, options->shares > 1) : cli_report(command, status);
  }
  tarn_queue_close(&queue);
  return code;
}
