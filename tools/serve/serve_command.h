// Runs a server from start to end.
#ifndef TARN_TOOLS_SERVE_COMMAND_H
#define TARN_TOOLS_SERVE_COMMAND_H

#include "cli.h"
#include "serve/serve_models.h"

typedef struct serve_options {
  serve_models_options models;
  const char *host;
  int64_t port, queue, batch_requests, batch_bytes, max_text, max_texts, max_tokens, max_samples, max_body, max_pending;
  int64_t connections, stream_bytes;
  double wait, timeout, rate;         // milliseconds, seconds, requests per minute
  cli_list allow_hosts, more_models;  // NAME=RUN
  char name[256];                     // of the first model
  int64_t model_memory;
  const char *languages, *token_file, *certificate, *key;
} serve_options;

// Serves until a signal arrives, and returns the exit code.
int serve_command(const cli_command *command, const serve_options *options);

#endif
