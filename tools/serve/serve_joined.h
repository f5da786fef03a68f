// Continuations, and translations by models that write token by token: requests join the running batch at its next
// token, and leave it when they are complete (tarn_generator_serve(), tarn_translator_serve()).
#ifndef TARN_TOOLS_SERVE_JOINED_H
#define TARN_TOOLS_SERVE_JOINED_H

#include "serve/serve_models.h"

// Computes some requests and all that join them from the queue, until none waits that may. Each is given to
// models->done when it has its answer.
void serve_joined_run(serve_models *models, serve_request *const *requests, size_t count);

#endif
