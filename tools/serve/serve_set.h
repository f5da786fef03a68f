// The models of a server: read when a request names them, forgotten when others need their memory (the least recently
// used first), and read again on demand. All on the queue's thread.
#ifndef TARN_TOOLS_SERVE_SET_H
#define TARN_TOOLS_SERVE_SET_H

#include "cli.h"
#include "serve/serve_models.h"

enum { SERVE_SET_MODELS = 256 };

typedef struct serve_set {
  const cli_command *command;  // for messages
  int64_t memory;              // bytes that all models may take; 0: any number
  serve_models models[SERVE_SET_MODELS];
  int64_t bytes[SERVE_SET_MODELS], used[SERVE_SET_MODELS];  // measured when it was read; when it was used last
  serve_offers offers;                                      // of them
  int64_t clock;
  serve_pause pause;
  char why[600];         // what is wrong with a model, in place of the library's message; "": nothing
  serve_request reload;  // in the queue: asks to read the models again
} serve_set;

// Adds a model with this name; of `options` the model is `given`. False: there is no memory.
void serve_set_open(serve_set *set, const cli_command *command, int64_t memory);
bool serve_set_add(serve_set *set, const char *name, const serve_models *model);
void serve_set_close(serve_set *set);

// Callbacks of the queue, with the set as `user`: finds all models and reads the first; computes a batch.
tarn_status serve_set_start(void *set);
void serve_set_work(void *set, void *const *requests, size_t count);

#endif
