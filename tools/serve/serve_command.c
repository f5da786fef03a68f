#include "serve/serve_command.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "serve/serve_http.h"
#include "serve/serve_paths.h"
#include "serve/serve_set.h"
#include "stop_signal.h"
#include "tarn/plan.h"

enum { LOOK_MICROSECONDS = 100000, LAST_ANSWERS_SECONDS = 5 };

// Raises the limit of open files to the number of connections, if the system allows it.
static void allow_files(int64_t connections) {
  struct rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  const rlim_t wanted = (rlim_t)connections + 100;
  if (files.rlim_cur >= wanted) return;
  files.rlim_cur = files.rlim_max == RLIM_INFINITY || wanted < files.rlim_max ? wanted : files.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &files);
}

// Prints notes for the user on standard error, and then one line on standard output for programs that wait for it.
static void say_started(const cli_command *command, const serve_options *options, const serve_socket *listener,
                        const serve_set *set, int tokens) {
  for (size_t m = 0; m < set->offers.count; m++) {
    const serve_offer *offer = &set->offers.items[m];
    fprintf(stderr, "tarn %s: %s:", command->name, set->models[m].found.path);
    for (int i = 0; i < SERVE_USES; i++)
      if (offer->uses[i]) fprintf(stderr, " /%s", serve_use_word((serve_use)i, offer->verb));
    fputc('\n', stderr);
  }
  if (tokens > 0)
    fprintf(stderr, "tarn %s: requests must carry %s%d token%s\n", command->name, tokens > 1 ? "one of " : "", tokens,
            tokens > 1 ? "s" : "");
  if (!listener->loopback && tokens == 0)
    fprintf(stderr,
            "tarn %s: warning: anyone who can reach %s may use the model: no token is required (--token-file)\n",
            command->name, listener->name);
  printf("http%s://%s/\n", options->certificate ? "s" : "", listener->name);
  fflush(stdout);
}

// With less, there would be no memory for connections and for the answers that report it: the thread of libmicrohttpd,
// which starts later, takes half of it for its stack.
static int check_memory(const cli_command *command) {
  enum { LEAST_MEGABYTES = 16 };
  const double left = 1e-6 * (double)tarn_memory_available();
  if (left == 0 || left >= LEAST_MEGABYTES) return -1;  // 0: unknown
  fprintf(stderr, "tarn %s: the model leaves %.1f MB of memory, and connections need %d MB\n", command->name, left,
          LEAST_MEGABYTES);
  return CLI_FAILURE;
}

// A share of the memory left by the model, enough for at least one request.
static int64_t most_pending(const serve_options *options) {
  enum { SHARE = 8 };
  if (options->max_pending > 0) return options->max_pending;
  const int64_t share = (int64_t)(tarn_memory_available() / SHARE);
  return share > options->max_body ? share : options->max_body;
}

static int serve(const cli_command *command, const serve_options *options, const serve_socket *listener,
                 serve_secret *secret, const serve_languages *languages, serve_set *set, tarn_work_queue *queue) {
  const serve_http_options http_options = {
      .max_body = options->max_body,
      .max_pending = most_pending(options),
      .connections = options->connections,
      .timeout = options->timeout,
      .capacity = options->queue,
      .offers = &set->offers,
      .started = (int64_t)time(NULL),
      .stream_bytes = options->stream_bytes,
      .languages = languages,
      .names = {.any = !listener->loopback && options->allow_hosts.count == 0, .own = &options->allow_hosts},
      .secret = secret,
      .rate = options->rate,
      .certificate = options->certificate,
      .key = options->key};
  serve_http *http;
  sig_atomic_t reloads = 0;
  stop_in_order(true);
  catch_reload_signal();
  int code = serve_http_open(command, &http, &http_options, listener, set->models[0].metrics, queue);
  if (code >= 0) return code;
  say_started(command, options, listener, set, secret->count);
  while (!stop_signal) {
    usleep(LOOK_MICROSECONDS);
    serve_http_look(http);
    // A full queue takes it the next time.
    const sig_atomic_t wanted = reload_signal;
    if (wanted != reloads && tarn_work_queue_add(queue, &set->reload, 1)) reloads = wanted;
  }
  fprintf(stderr, "tarn %s: stopping; waiting requests are still answered\n", command->name);
  serve_http_stop(http);
  tarn_work_queue_finish(queue);  // later requests are refused by the queue
  serve_http_close(&http, LAST_ANSWERS_SECONDS);
  return CLI_OK;
}

static int check_models(const cli_command *command, const serve_set *set) {
  for (size_t m = 0; m < set->offers.count; m++) {
    bool any = false;
    for (int i = 0; i < SERVE_USES; i++) any |= set->offers.items[m].uses[i];
    if (any) continue;
    fprintf(stderr, "tarn %s: %s: a model of this task cannot be served\n", command->name, set->models[m].found.path);
    return CLI_FAILURE;
  }
  return -1;
}

// The model of the command line and those of --model NAME=RUN. -1, or the exit code.
static int add_models(const cli_command *command, const serve_options *options, serve_set *set, serve_models model) {
  model.options = options->models;
  for (size_t i = 0; i <= options->more_models.count; i++) {
    char name[sizeof set->offers.items->id];
    const char *text = i > 0 ? options->more_models.items[i - 1] : options->name, *equals = strchr(text, '=');
    const size_t length = i == 0 ? strlen(text) : equals ? (size_t)(equals - text) : 0;
    if (length == 0 || length >= sizeof name || (i > 0 && !equals[1]))
      return cli_usage(command, "--model %s: NAME=RUN is expected", text);
    memcpy(name, text, length);
    name[length] = '\0';
    for (size_t k = 0; k < set->offers.count; k++)
      if (strcmp(set->offers.items[k].id, name) == 0)
        return cli_usage(command, "there are two models of the name %s", name);
    if (i > 0) model.options.given = equals + 1;
    if (set->offers.count == SERVE_SET_MODELS)
      return cli_usage(command, "there are more than %d models", SERVE_SET_MODELS);
    if (!serve_set_add(set, name, &model)) return cli_no_memory(command);
    set->offers.items[set->offers.count - 1].limits = (serve_limits){.texts = options->max_texts,
                                                                     .text_bytes = options->max_text,
                                                                     .tokens = options->max_tokens,
                                                                     .samples = options->max_samples};
  }
  return -1;
}

// Opens the socket before the model, which may take long to load: a port in use is reported at once.
static int open_models(const cli_command *command, const serve_options *options, const serve_socket *listener,
                       serve_secret *secret, const serve_languages *languages, serve_set *set) {
  tarn_work_queue_options queue_options;
  tarn_work_queue_default(&queue_options);
  queue_options.work = serve_set_work;
  queue_options.start = serve_set_start;
  queue_options.together = serve_request_together;
  queue_options.user = set;
  queue_options.capacity = options->queue;
  queue_options.max_items = options->batch_requests;
  queue_options.max_cost = options->batch_bytes;
  queue_options.wait = 1e-3 * options->wait;
  tarn_work_queue *queue;
  serve_paths_start();
  const tarn_status status = tarn_work_queue_open(&queue, &queue_options);
  int code = CLI_FAILURE;
  if (set->why[0])
    fprintf(stderr, "tarn %s: %s\n", command->name, set->why);
  else
    code = status == TARN_STATUS_OK ? check_models(command, set) : cli_report(command, status);
  for (size_t i = 0; i < set->offers.count; i++) set->models[i].queue = queue;
  if (code < 0) code = serve_languages_check(command, languages, set->offers.items[0].uses[SERVE_TRANSLATE]);
  if (code < 0) code = check_memory(command);
  if (code < 0) code = serve(command, options, listener, secret, languages, set, queue);
  tarn_work_queue_close(&queue);
  return code;
}

int serve_command(const cli_command *command, const serve_options *options) {
  static serve_secret secret;
  static serve_set set;
  serve_metrics metrics;
  serve_languages languages;
  serve_socket listener;
  allow_files(options->connections);
  int code = serve_names_read(command, &options->allow_hosts);
  if (code < 0) code = serve_languages_read(command, &languages, options->languages);
  if (code < 0) code = serve_secret_read(command, &secret, options->token_file);
  if (code < 0) code = serve_socket_open(command, &listener, options->host, (int)options->port);
  if (code >= 0) return code;
  serve_metrics_open(&metrics);
  serve_set_open(&set, command, options->model_memory);
  const serve_models model = {.metrics = &metrics,
                              .done = serve_http_done,
                              .most_requests = options->batch_requests,
                              .most_bytes = options->batch_bytes};
  code = add_models(command, options, &set, model);
  if (code < 0) code = open_models(command, options, &listener, &secret, &languages, &set);
  serve_set_close(&set);
  serve_metrics_close(&metrics);
  return code;
}
