// tarn serve: serves a model over HTTP.
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "model_options.h"
#include "serve/serve_command.h"
#include "stop_signal.h"

static const cli_command COMMAND = {
    "serve", "RUN|FILE", "Translate, score, generate or classify over HTTP.",
    "Answers requests in JSON to those of /translate, /score, /generate, /classify and /attend that fit the model's\n"
    "task, and to /health and /metrics. /openapi.json describes them; / is a page for trying the model by hand. RUN "
    "is\n"
    "a run directory (see --checkpoint), FILE a checkpoint. Waiting requests are computed together. Prints the "
    "address\n"
    "as one line when it listens; on SIGTERM or SIGINT it answers all waiting requests and ends. With --token-file, "
    "or\n"
    "TARN_TOKEN in the environment, requests must carry that token (Authorization: Bearer ...)."};

// Without libmicrohttpd the command still has its options and its manual page.
#ifndef TARN_HTTP
int serve_command(const cli_command *command, const serve_options *options) {
  (void)options;
  fprintf(stderr, "tarn %s: this build has no libmicrohttpd (docs/serving.md)\n", command->name);
  return CLI_FAILURE;
}
#endif

// The name of a model for clients: the last component of its path, without what a checkpoint's file ends with.
static void name_model(char *name, size_t room, const char *path) {
  static const char ending[] = ".safetensors";
  size_t end = strlen(path);
  while (end > 1 && path[end - 1] == '/') end--;
  size_t begin = end;
  while (begin > 0 && path[begin - 1] != '/') begin--;
  if (end - begin >= sizeof ending && memcmp(path + end - (sizeof ending - 1), ending, sizeof ending - 1) == 0)
    end -= sizeof ending - 1;
  snprintf(name, room, "%.*s", (int)(end - begin), path + begin);
}

// Rows of the table: sizes that requests and answers may have.
#define SIZE_OPTIONS(o)                                                                                             \
  {"max-text", CLI_INT, &(o).max_text, "BYTES", "longest text; longer ones are answered with 413", 1, 1 << 30},     \
      {"max-texts", CLI_INT, &(o).max_texts, "N", "most texts in a request", 1, 100000},                            \
      {"max-tokens",                                                                                                \
       CLI_INT,                                                                                                     \
       &(o).max_tokens,                                                                                             \
       "N",                                                                                                         \
       "most tokens that a request may ask to be generated, for all its texts",                                     \
       1,                                                                                                           \
       1 << 30},                                                                                                    \
      {"max-samples",                                                                                               \
       CLI_INT,                                                                                                     \
       &(o).max_samples,                                                                                            \
       "N",                                                                                                         \
       "most samples, of a text to translate or to continue, and most hypotheses of a search of continuations",     \
       1,                                                                                                           \
       1024},                                                                                                       \
      {"max-body", CLI_INT, &(o).max_body, "BYTES", "longest body of a request", 1, 1 << 30},                       \
      {"stream-bytes",                                                                                              \
       CLI_INT,                                                                                                     \
       &(o).stream_bytes,                                                                                           \
       "BYTES",                                                                                                     \
       "most bytes of a stream that its client has not read yet; with more the stream ends",                        \
       1024,                                                                                                        \
       1 << 30},                                                                                                    \
  {                                                                                                                 \
    "max-pending-bytes", CLI_INT, &(o).max_pending, "BYTES",                                                        \
        "most bytes of the bodies of all requests together that have no answer yet, others are answered with 503; " \
        "also of all streams together that wait to be read, others end. 0: an eighth of the memory that is "        \
        "available when the model is open",                                                                         \
        0, 1e15                                                                                                     \
  }

static int check_options(const serve_options *o) {
  if (o->max_pending > 0 && o->max_pending < o->max_body)
    return cli_usage(&COMMAND, "--max-pending-bytes is less than --max-body");
  return !o->certificate == !o->key ? -1 : cli_usage(&COMMAND, "--certificate and --key belong together");
}

int cmd_serve(int argc, char **argv) {
  serve_options o = {.host = "127.0.0.1",
                     .port = 8080,
                     .queue = 256,
                     .batch_requests = 64,
                     .batch_bytes = 16384,
                     .max_text = 10000,
                     .max_texts = 100,
                     .max_tokens = 4096,
                     .max_samples = 64,
                     .max_body = 1 << 20,
                     .stream_bytes = 1 << 20,
                     .connections = 1000,
                     .wait = 3,
                     .timeout = 30};
  model_options model = {.precision = "auto", .overlong = "truncate"};
  cli_list paths = {0};
  const cli_option table[] = {
      {"host", CLI_TEXT, &o.host, "ADDRESS", "address or name to listen on", 0, 0},
      {"port", CLI_INT, &o.port, "N", "port to listen on; 0: any free one", 0, 65535},
      {"beam", CLI_INT, &o.models.beam, "N",
       "hypotheses of a translation, and the most that a request may ask for; 0: the model's translate.beam", 0, 1024},
      {"queue", CLI_INT, &o.queue, "N", "requests that may wait; others are answered with 429", 1, 100000},
      {"batch", CLI_INT, &o.batch_requests, "N", "most requests that are computed together", 1, 1024},
      {"batch-bytes", CLI_INT, &o.batch_bytes, "N", "most bytes of text that are computed together", 1, 1 << 30},
      {"wait", CLI_REAL, &o.wait, "MS",
       "milliseconds at most that a batch waits for more requests while it has fewer than the last one had", 0, 1000},
      SIZE_OPTIONS(o),
      {"allow-host", CLI_LIST, &o.allow_hosts, "NAME",
       "a name by which the server may be asked (headers Host and Origin), besides those of loopback; may be given "
       "several "
       "times. On loopback all others are refused, elsewhere only where this is given",
       0, 0},
      {"languages", CLI_TEXT, &o.languages, "TAG,...",
       "languages of the model, which the page and /health name: tags such as de or pt-BR, of a translation model "
       "those "
       "of source and target (de,en)",
       0, 0},
      {"model", CLI_LIST, &o.more_models, "NAME=RUN",
       "another model, for requests whose \"model\" is NAME; may be given several times", 0, 0},
      {"model-memory", CLI_INT, &o.model_memory, "BYTES",
       "most memory of all models; the least recently used one is forgotten for another. 0: as much as there is", 0,
       1e15},
      {"timeout", CLI_REAL, &o.timeout, "S",
       "seconds for a request to arrive (else 408), to wait for its turn (else 503), and for its answer to be read",
       0.1, 86400},
      {"connections", CLI_INT, &o.connections, "N", "most connections at a time", 1, 1000000},
      {"token-file", CLI_TEXT, &o.token_file, "FILE", "file with tokens, one a line, one of which requests must carry",
       0, 0},
      {"rate", CLI_REAL, &o.rate, "N",
       "requests to a model per minute with each token, or of all if none is required, and as many at once, or one; "
       "others are answered with 429. 0: any number",
       0, 1e9},
      {"certificate", CLI_TEXT, &o.certificate, "FILE", "TLS: the certificate, PEM; --key belongs to it", 0, 0},
      {"key", CLI_TEXT, &o.key, "FILE", "TLS: the private key, PEM", 0, 0},
      MODEL_OVERLONG_OPTION(model, "texts"),
      MODEL_PRECISION_OPTION(model),
      MODEL_RUN_OPTIONS(model),
      LIMIT_OPTIONS(model.limits),
      {0}};
  int code = cli_parse(&COMMAND, table, argc, argv, &paths, 1, 1);
  if (code < 0) catch_stop_signals("tarn serve: stopped\n");
  if (code < 0) code = model_options_set(&COMMAND, &model, &o.models.precision, &o.models.overlong, &o.models.threads);
  if (code < 0) code = check_options(&o);
#ifndef TARN_HTTP
  if (code < 0) code = serve_command(&COMMAND, &o);
#endif
  if (code < 0) code = model_options_choice(&COMMAND, &o.models.choice, model.checkpoint);
  if (code < 0) {
    name_model(o.name, sizeof o.name, paths.items[0]);
    o.models.given = paths.items[0];
    code = serve_command(&COMMAND, &o);
  }
  cli_list_free(&paths);
  cli_list_free(&o.more_models);
  cli_list_free(&o.allow_hosts);
  return code;
}
