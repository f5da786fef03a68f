// tarn dynamics: models as dynamical systems, iterated on the sentences of a file.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "commands.h"
#include "dynamics_output.h"
#include "json_output.h"
#include "model_options.h"
#include "progress_line.h"
#include "progress_show.h"
#include "stop_signal.h"
#include "tarn/lab/dynamics.h"

static const cli_command COMMAND = {
    "dynamics", "RUN...", "Iterate models on sentences: Lyapunov exponents, transients, synchronisation, dimensions.",
    "RUN is a run directory, a checkpoint, or a description (.yaml), whose weights are then random. Layers are read "
    "as\n"
    "time, and the representations of a sentence's tokens as the state. A stack whose layers share weights is "
    "iterated\n"
    "as often as asked, far beyond its depth; one that shares nothing as far as it goes; a recurrence along the text.\n"
    "Perturbations are carried along by exact Jacobian-vector products (Benettin et al. 1980). With --output DIR a "
    "page\n"
    "with figures is written too (dynamics.html), and all numbers as CSV; see docs/dynamics.md."};

enum { MODELS = 16, VALUES = 64 };

typedef struct request {
  const char *input, *output, *title, *precision, *products, *map, *drive, *memory, *radii, *leaks;
  int64_t first_layer, last_layer, threads, seed, delays, samples;
  bool over_training, json;
} request;

// A model with its results.
typedef struct entry {
  tarn_checkpoint_found found;
  tarn_dynamics *dynamics;
  tarn_dynamics_result *result;
} entry;

typedef struct work {
  const request *request;
  const tarn_dynamics_options *options;
  entry entries[MODELS];
  tarn_dynamics_model models[MODELS];
  size_t count;
  tarn_dynamics_moment *moments;
  size_t moment_count;
  double radii[VALUES], leaks[VALUES];  // to scan
  size_t radius_count, leak_count;
  tarn_dynamics_scan *scan;
} work;

static tarn_status on_progress(void *user, int64_t done, int64_t total) {
  (void)user, (void)done, (void)total;
  return stop_signal ? TARN_STATUS_INTERRUPTED : TARN_STATUS_OK;
}

// The exit code of a failure.
static int failed(tarn_status status) {
  if (status != TARN_STATUS_INTERRUPTED || !stop_signal) return cli_report(&COMMAND, status);
  progress_line_clear();
  fprintf(stderr, "tarn dynamics: stopped; nothing was written\n");
  return 128 + (int)stop_signal;
}

static tarn_status open_model(tarn_dynamics **dynamics, const char *path, const work *w) {
  const tarn_status status = tarn_dynamics_open(dynamics, path, w->options);
  if (status != TARN_STATUS_OK || !w->request->input) return status;
  return tarn_dynamics_encode_file(*dynamics, w->request->input);
}

// The scan over spectral radii and leak rates runs first, so a model without them is refused at once.
static tarn_status compute_scan(work *w) {
  tarn_dynamics_scan_options options;
  tarn_dynamics_scan_default(&options);
  options.radius_count = w->radius_count;
  options.leak_count = w->leak_count;
  if (w->radius_count > 0) options.spectral_radii = w->radii;
  if (w->leak_count > 0) options.leak_rates = w->leaks;
  options.delays = w->request->delays;
  options.samples = w->request->samples;
  return tarn_dynamics_scan_run(w->entries[0].dynamics, &w->scan, &options);
}

static bool is_description(const char *path) {
  const char *dot = strrchr(path, '.');
  return dot && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0);
}

static int add_model(work *w, const char *path, const model_options *options) {
  entry *e = &w->entries[w->count];
  const bool described = is_description(path);
  int code = described ? -1 : model_options_find(&COMMAND, &e->found, path, options->checkpoint);
  if (code >= 0) return code;
  w->count++;
  tarn_status status = open_model(&e->dynamics, described ? path : e->found.path, w);
  if (status == TARN_STATUS_OK && w->count == 1 && w->radius_count + w->leak_count > 0) status = compute_scan(w);
  if (status == TARN_STATUS_OK) status = tarn_dynamics_run(e->dynamics, &e->result);
  if (status != TARN_STATUS_OK) return failed(status);
  w->models[w->count - 1] =
      (tarn_dynamics_model){.name = path, .info = tarn_dynamics_describe(e->dynamics), .result = e->result};
  return CLI_OK;
}

// Opens, iterates and closes each numbered checkpoint of a run.
static tarn_status compute_moments(work *w, const char *run) {
  tarn_dynamics_checkpoints list;
  tarn_status status = tarn_dynamics_checkpoints_find(&list, run);
  if (status != TARN_STATUS_OK) return status;
  w->moments = calloc((size_t)list.count, sizeof *w->moments);
  if (!w->moments) status = TARN_STATUS_MEMORY;
  for (int64_t i = 0; i < list.count && status == TARN_STATUS_OK; i++) {
    tarn_dynamics *dynamics = NULL;
    tarn_dynamics_result *result = NULL;
    status = open_model(&dynamics, list.paths[i], w);
    if (status == TARN_STATUS_OK) status = tarn_dynamics_run(dynamics, &result);
    if (status == TARN_STATUS_OK) status = tarn_dynamics_summarise(&w->moments[i].summary, result);
    w->moments[i].update = list.updates[i];
    w->moment_count = (size_t)i + 1;
    tarn_dynamics_result_close(&result);
    tarn_dynamics_close(&dynamics);
  }
  tarn_dynamics_checkpoints_close(&list);
  return status;
}

static int print_all(const work *w) {
  int code = CLI_OK;
  const bool json = w->request->json;
  for (size_t i = 0; i < w->count && code == CLI_OK; i++) {
    tarn_dynamics_summary summary;
    const tarn_status status = tarn_dynamics_summarise(&summary, w->models[i].result);
    if (status != TARN_STATUS_OK) return cli_report(&COMMAND, status);
    code = (json ? dynamics_print_json : dynamics_print_text)(&COMMAND, &w->models[i], &summary);
  }
  if (code == CLI_OK && w->moment_count > 0)
    code = (json ? dynamics_print_moments_json : dynamics_print_moments)(&COMMAND, w->moments, w->moment_count);
  if (code == CLI_OK && w->scan) code = (json ? dynamics_print_scan_json : dynamics_print_scan)(&COMMAND, w->scan);
  return code;
}

static int write_report(const work *w) {
  tarn_dynamics_report_options options;
  tarn_dynamics_report_default(&options);
  options.output = w->request->output;
  options.title = w->request->title;
  // For a free recurrence the text is only used by the scan.
  options.input = w->options->drive == TARN_DYNAMICS_DRIVE_TEXT ? w->request->input : NULL;
  options.models = w->models;
  options.model_count = w->count;
  options.moments = w->moments;
  options.moment_count = w->moment_count;
  options.scan = w->scan;
  const tarn_status status = tarn_dynamics_report_write(&options);
  if (status != TARN_STATUS_OK) return cli_report(&COMMAND, status);
  char page[4096];
  snprintf(page, sizeof page, "%s/dynamics.html", options.output);
  if (w->request->json) return json_output_made(&COMMAND, page, NULL, NULL);
  printf("%s\n", page);
  return CLI_OK;
}

static int run(work *w, const cli_list *paths, const model_options *model) {
  int code = CLI_OK;
  stop_in_order(true);
  for (size_t i = 0; i < paths->count && code == CLI_OK; i++) code = add_model(w, paths->items[i], model);
  if (code == CLI_OK && w->request->over_training) {
    const tarn_status status = compute_moments(w, paths->items[0]);
    if (status == TARN_STATUS_MEMORY && !w->moments)
      code = cli_no_memory(&COMMAND);
    else if (status != TARN_STATUS_OK)
      code = failed(status);
  }
  stop_in_order(false);
  if (code == CLI_OK) code = print_all(w);
  if (code == CLI_OK && w->request->output) code = write_report(w);
  return code;
}

static void close_work(work *w, int code) {
  for (size_t i = 0; i < MODELS; i++) {
    tarn_dynamics_result_close(&w->entries[i].result);
    tarn_dynamics_close(&w->entries[i].dynamics);
    model_options_done(&COMMAND, &w->entries[i].found, code, progress_wanted.quiet);
  }
  tarn_dynamics_scan_close(&w->scan);
  free(w->moments);
}

// Parses "0.5,0.9,1.1", values above 0. -1, or the exit code of a usage error.
static int read_values(double values[VALUES], size_t *count, const char *name, const char *text, bool zero) {
  *count = 0;
  for (const char *at = text; at; at = *at == ',' ? at + 1 : NULL) {
    char *end;
    const double value = strtod(at, &end);
    if (end == at || (*end && *end != ',') || !(zero ? value >= 0 : value > 0) || !isfinite(value))
      return cli_usage(&COMMAND, "--%s must be numbers %s 0 with commas between them, not \"%s\"", name,
                       zero ? "from" : "above", text);
    if (*count == VALUES) return cli_usage(&COMMAND, "--%s takes at most %d numbers", name, (int)VALUES);
    values[(*count)++] = value;
    at = end;
  }
  return -1;
}

// Checks the words of options, and options that exclude each other. -1, or the exit code of a usage error.
static int check(const request *r, const cli_list *paths, tarn_dynamics_options *options) {
  const char *precisions[TARN_DYNAMICS_PRECISION_COUNT], *maps[TARN_DYNAMICS_MAP_COUNT];
  static const char *const drives[] = {"text", "free"};
  const char *ways[TARN_FP32_COUNT];
  int precision = 0, products = 0, map = 0, drive = 0;
  for (int i = 0; i < TARN_FP32_COUNT; i++) ways[i] = tarn_fp32_name((tarn_fp32)i);
  for (int i = 0; i < TARN_DYNAMICS_PRECISION_COUNT; i++)
    precisions[i] = tarn_dynamics_precision_name((tarn_dynamics_precision)i);
  for (int i = 0; i < TARN_DYNAMICS_MAP_COUNT; i++) maps[i] = tarn_dynamics_map_name((tarn_dynamics_map)i);
  int code = cli_word(&COMMAND, &precision, "--precision", r->precision, precisions, TARN_DYNAMICS_PRECISION_COUNT);
  if (code < 0) code = cli_word(&COMMAND, &products, "--products", r->products, ways, TARN_FP32_COUNT);
  if (code < 0) code = cli_word(&COMMAND, &map, "--map", r->map, maps, TARN_DYNAMICS_MAP_COUNT);
  if (code < 0) code = cli_word(&COMMAND, &drive, "--drive", r->drive, drives, 2);
  if (code >= 0) return code;
  options->precision = (tarn_dynamics_precision)precision;
  options->products = (tarn_fp32)products;
  options->map = (tarn_dynamics_map)map;
  options->drive = drive == 0 ? TARN_DYNAMICS_DRIVE_TEXT : TARN_DYNAMICS_DRIVE_FREE;
  options->first_layer = (int)r->first_layer;
  options->last_layer = (int)r->last_layer;
  options->threads = (int)r->threads;
  options->seed = (uint64_t)r->seed;
  if (!r->input && options->drive == TARN_DYNAMICS_DRIVE_TEXT)
    return cli_usage(&COMMAND, "--input FILE is missing (only a recurrence with --drive free needs none)");
  if (r->over_training && is_description(paths->items[0]))
    return cli_usage(&COMMAND, "--over-training takes the checkpoints of a run directory, and %s is a description",
                     paths->items[0]);
  const size_t reads = paths->count + (r->over_training ? 1 : 0);
  if (r->input && strcmp(r->input, "-") == 0 && reads > 1)
    return cli_usage(&COMMAND, "standard input can be read once, and several models read --input; give a file");
  for (size_t i = 0; i < paths->count; i++)
    for (size_t k = 0; k < i; k++)
      if (strcmp(paths->items[i], paths->items[k]) == 0)
        return cli_usage(&COMMAND, "%s is given twice", paths->items[i]);
  if (r->memory) {
    double amount;
    code = limit_options_amount(&COMMAND, &amount, "state-memory", r->memory);
    if (code >= 0) return code;
    options->max_memory = amount < 1e18 ? (size_t)amount : 0;
  }
  return -1;
}

// Refuses options without effect. -1, or the exit code of a usage error.
static int check_unused(const request *r, const tarn_dynamics_options *options) {
  tarn_dynamics_options usual;
  tarn_dynamics_scan_options scan;
  tarn_dynamics_default(&usual);
  tarn_dynamics_scan_default(&scan);
  const bool scans = r->radii || r->leaks, free = options->drive == TARN_DYNAMICS_DRIVE_FREE;
  if (r->title && !r->output) return cli_usage(&COMMAND, "--title is that of the page, which --output DIR writes");
  if (scans) return -1;
  if (r->delays != scan.delays || r->samples != scan.samples)
    return cli_usage(&COMMAND, "--%s is of the memory capacity, which --spectral-radii or --leak-rates compute",
                     r->delays != scan.delays ? "delays" : "samples");
  if (free && r->input) return cli_usage(&COMMAND, "--input is not read by a recurrence with --drive free");
  if (!free && options->starts != usual.starts)
    return cli_usage(&COMMAND, "--starts is of a recurrence with --drive free; sentences have one start each");
  return -1;
}

// Checks that the folder is writable before hours of computing. -1, or the exit code.
static int check_output(const char *output) {
  struct stat info;
  if (!output) return -1;
  if (!*output) return cli_usage(&COMMAND, "--output must name a folder");
  if (stat(output, &info) != 0 || S_ISDIR(info.st_mode)) return -1;
  fprintf(stderr, "tarn dynamics: %s is no folder, in which --output could write the page\n", output);
  return CLI_FAILURE;
}

int cmd_dynamics(int argc, char **argv) {
  tarn_dynamics_options options;
  tarn_dynamics_scan_options scan;
  tarn_dynamics_default(&options);
  tarn_dynamics_scan_default(&scan);
  options.progress = on_progress;
  model_options model = {0};
  request r = {
      .precision = "double", .products = "exact", .map = "auto", .drive = "text", .seed = 1, .samples = scan.samples};
  cli_list paths = {0};
  const cli_option table[] = {
      {"input", CLI_TEXT, &r.input, "FILE", "sentences, one per line; - is standard input", 0, 0},
      {"iterations", CLI_INT, &options.iterations, "N",
       "iterations; 0: 1000, of layers all of them, of a text its tokens", 0, 10000000},
      {"exponents", CLI_INT, &options.exponents, "N", "Lyapunov exponents of each sentence", 0, 4096},
      {"precision", CLI_TEXT, &r.precision, "NAME", "double, by the reference kernels, or fp32, by the fast ones", 0,
       0},
      {"products", CLI_TEXT, &r.products, "NAME",
       "how products of fp32 are computed, as train.fp32: exact, or faster by matrix tiles or tensor cores", 0, 0},
      {"map", CLI_TEXT, &r.map, "NAME",
       "what is iterated: period, layers or recurrence; auto: a period if there is one, else a recurrence, else layers",
       0, 0},
      {"first-layer", CLI_INT, &r.first_layer, "N", "of a period, or the recurrent layer, from 1; 0: found", 0, 65536},
      {"last-layer", CLI_INT, &r.last_layer, "N", "of a period; 0: found", 0, 65536},
      {"drive", CLI_TEXT, &r.drive, "NAME", "what a recurrence reads: text, or free, whose input is zero", 0, 0},
      {"starts", CLI_INT, &options.starts, "N", "of a free recurrence: systems that start from different states", 1,
       4096},
      {"every", CLI_INT, &options.every, "N", "iterations between two QR factorisations", 1, 1000},
      {"discard", CLI_INT, &options.discard, "N",
       "iterations that the exponents leave out; -1: half of them, of layers and of a text none", -1, 10000000},
      {"tolerance", CLI_REAL, &options.tolerance, "X",
       "relative distance below which two states count as equal; 0: 1e-9 in double, 1e-5 in fp32", 0, 1},
      {"longest-period", CLI_INT, &options.longest_period, "N", "of cycles that are looked for", 1, 1024},
      {"apart", CLI_REAL, &options.apart, "X", "relative distance of a second start from the first; 0: there is none",
       0, 1e6},
      {"kept", CLI_INT, &options.kept, "N", "iterations of which trajectories are drawn", 0, 100000},
      {"over-training", CLI_FLAG, &r.over_training, NULL, "compute the numbered checkpoints of the first RUN too", 0,
       0},
      {"spectral-radii", CLI_TEXT, &r.radii, "X,...",
       "of an echo state network: exponents and memory with its matrix scaled to each of these", 0, 0},
      {"leak-rates", CLI_TEXT, &r.leaks, "X,...", "the same for leak rates, each with every spectral radius", 0, 0},
      {"delays", CLI_INT, &r.delays, "N",
       "largest delay of the memory capacity; 0: twice the units, at most 1000; -1: none is computed", -1, 10000},
      {"samples", CLI_INT, &r.samples, "N", "inputs that the readouts of the memory capacity are fitted to", 100,
       1000000},
      {"seed", CLI_INT, &r.seed, "N", "of perturbations, second starts, and the weights of a description", 0,
       4294967295.0},
      {"vocab", CLI_TEXT, &options.vocab, "FILE", "vocabulary of a description; without it that of data.vocab", 0, 0},
      {"output", CLI_TEXT, &r.output, "DIR", "folder of the page, its figures and CSV; made if it does not exist", 0,
       0},
      {"title", CLI_TEXT, &r.title, "TEXT", "title of the page", 0, 0},
      {"json", CLI_FLAG, &r.json, NULL, "print JSON, one object a line", 0, 0},
      PROGRESS_OPTIONS,
      {"state-memory", CLI_TEXT, &r.memory, "BYTES",
       "refuse to take more memory than this for states and perturbations; 0: no limit (default 1G)", 0, 0},
      {"strict", CLI_FLAG, &options.strict, NULL, "refuse invalid UTF-8 instead of replacing it by U+FFFD", 0, 0},
      CHECKPOINT_OPTION(model.checkpoint),
      CLI_DEVICE_OPTION,
      {"threads", CLI_INT, &r.threads, "N", "threads; 0: all that the process may use", 0, 1024},
      LIMIT_OPTIONS(model.limits),
      {0}};
  int code = cli_parse(&COMMAND, table, argc, argv, &paths, 1, MODELS);
  if (code < 0) catch_stop_signals("tarn dynamics: stopped; nothing was written\n");
  if (code < 0) code = limit_options_set(&COMMAND, &model.limits);
  if (code < 0) code = check(&r, &paths, &options);
  if (code < 0) code = check_unused(&r, &options);
  if (code < 0) code = check_output(r.output);
  if (code < 0) {
    work w = {.request = &r, .options = &options};
    if (r.radii) code = read_values(w.radii, &w.radius_count, "spectral-radii", r.radii, true);
    if (code < 0 && r.leaks) code = read_values(w.leaks, &w.leak_count, "leak-rates", r.leaks, false);
    if (code < 0) code = run(&w, &paths, &model);
    close_work(&w, code);
  }
  cli_list_free(&paths);
  return code;
}
