// The connections of a server, and how long each has been sending its request or reading its answer: clients that take
// too long are cut off, whether nothing moves or a byte a second.
#ifndef TARN_TOOLS_SERVE_CLIENTS_H
#define TARN_TOOLS_SERVE_CLIENTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "serve/serve_metrics.h"

typedef struct serve_client serve_client;

typedef struct serve_clients {
  pthread_mutex_t lock;  // of all that follows, and of every client
  serve_client *first;
  int64_t count;
  serve_metrics *metrics;
  double timeout;  // seconds
  bool secure;     // TLS: no answer can be written to them from here
} serve_clients;

void serve_clients_open(serve_clients *clients, serve_metrics *metrics, double timeout, bool secure);
void serve_clients_close(serve_clients *clients);
int64_t serve_clients_count(serve_clients *clients);

// A new connection; NULL without memory, and then nobody looks after it.
serve_client *serve_client_add(serve_clients *clients, int fd);
void serve_client_remove(serve_clients *clients, serve_client *client);

// What a client does; NULL is passed over. It sends a request from here on; has sent it, and waits; is sent
// its answer; has it.
void serve_client_sends(serve_clients *clients, serve_client *client);
void serve_client_works(serve_clients *clients, serve_client *client);
void serve_client_reads(serve_clients *clients, serve_client *client);
void serve_client_rests(serve_clients *clients, serve_client *client);
bool serve_client_was_cut(serve_clients *clients, serve_client *client);

// Cuts off those who have been sending, reading or resting for longer than the timeout: with the answer 408 if a part
// of a request, or nothing at all, has come from them.
void serve_clients_look(serve_clients *clients);

#endif
