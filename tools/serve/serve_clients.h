// The connections of a server, with the time each has spent sending its request or reading its answer. Clients that
// take too long are disconnected, whether they are stalled or send a byte per second.
#ifndef TARN_TOOLS_SERVE_CLIENTS_H
#define TARN_TOOLS_SERVE_CLIENTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "serve/serve_metrics.h"

typedef struct serve_client serve_client;

typedef struct serve_clients {
  pthread_mutex_t lock;  // protects the following, and every client
  serve_client *first;
  int64_t count;
  serve_metrics *metrics;
  double timeout;  // seconds
  bool secure;     // TLS: answers cannot be written directly
} serve_clients;

void serve_clients_open(serve_clients *clients, serve_metrics *metrics, double timeout, bool secure);
void serve_clients_close(serve_clients *clients);
int64_t serve_clients_count(serve_clients *clients);

// A new connection; NULL without memory, in which case it is not monitored.
serve_client *serve_client_add(serve_clients *clients, int fd);
void serve_client_remove(serve_clients *clients, serve_client *client);

// State changes of a client; NULL is ignored. It starts sending a request; has sent it and waits; is being sent its
// answer; has received it.
void serve_client_sends(serve_clients *clients, serve_client *client);
void serve_client_works(serve_clients *clients, serve_client *client);
void serve_client_reads(serve_clients *clients, serve_client *client);
void serve_client_rests(serve_clients *clients, serve_client *client);
bool serve_client_was_cut(serve_clients *clients, serve_client *client);

// Disconnects clients that have been sending, reading or idle for longer than the timeout, with answer 408 if only part
// of a request, or nothing at all, has arrived.
void serve_clients_look(serve_clients *clients);

#endif
