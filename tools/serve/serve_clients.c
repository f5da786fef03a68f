#include "serve/serve_clients.h"

#include <stdlib.h>
#include <sys/socket.h>

#include "serve/serve_models.h"
#include "serve/serve_paths.h"

typedef enum client_state { RESTS, SENDS, WORKS, READS, CUT } client_state;

struct serve_client {
  serve_client *next, **link;
  int fd;
  client_state state;
  bool known;    // has received an answer
  double since;  // start of the current state: idle, sending or reading
};

void serve_clients_open(serve_clients *clients, serve_metrics *metrics, double timeout, bool secure) {
  *clients = (serve_clients){.metrics = metrics, .timeout = timeout, .secure = secure};
  pthread_mutex_init(&clients->lock, NULL);
}

void serve_clients_close(serve_clients *clients) {
  while (clients->first) serve_client_remove(clients, clients->first);
  pthread_mutex_destroy(&clients->lock);
}

int64_t serve_clients_count(serve_clients *clients) {
  pthread_mutex_lock(&clients->lock);
  const int64_t count = clients->count;
  pthread_mutex_unlock(&clients->lock);
  return count;
}

serve_client *serve_client_add(serve_clients *clients, int fd) {
  serve_client *client = calloc(1, sizeof *client);
  if (!client) return NULL;
  client->fd = fd;
  client->since = serve_seconds();
  pthread_mutex_lock(&clients->lock);
  client->next = clients->first;
  client->link = &clients->first;
  if (client->next) client->next->link = &client->next;
  clients->first = client;
  clients->count++;
  pthread_mutex_unlock(&clients->lock);
  return client;
}

void serve_client_remove(serve_clients *clients, serve_client *client) {
  if (!client) return;
  pthread_mutex_lock(&clients->lock);
  *client->link = client->next;
  if (client->next) client->next->link = client->link;
  clients->count--;
  pthread_mutex_unlock(&clients->lock);
  free(client);
}

static void set_state(serve_clients *clients, serve_client *client, client_state state) {
  if (!client) return;
  pthread_mutex_lock(&clients->lock);
  if (client->state != CUT) client->state = state;
  client->since = serve_seconds();
  if (state == RESTS) client->known = true;
  pthread_mutex_unlock(&clients->lock);
}

void serve_client_sends(serve_clients *clients, serve_client *client) { set_state(clients, client, SENDS); }
void serve_client_works(serve_clients *clients, serve_client *client) { set_state(clients, client, WORKS); }
void serve_client_reads(serve_clients *clients, serve_client *client) { set_state(clients, client, READS); }
void serve_client_rests(serve_clients *clients, serve_client *client) { set_state(clients, client, RESTS); }

bool serve_client_was_cut(serve_clients *clients, serve_client *client) {
  if (!client) return false;
  pthread_mutex_lock(&clients->lock);
  const bool cut = client->state == CUT;
  pthread_mutex_unlock(&clients->lock);
  return cut;
}

// libmicrohttpd answers only requests that it has read, so this answer is written directly. While a client sends,
// nothing else is written to it (a client that reads an answer gets none in the middle of it), and its socket stays
// open until it is removed, which waits for the lock.
static void cut_off(serve_clients *clients, serve_client *client) {
  static const char answer[] =
      "HTTP/1.1 408 Request Timeout\r\nContent-Type: application/json\r\nContent-Length: 47\r\nConnection: "
      "close\r\n\r\n"
      "{\"error\":\"the request took too long to arrive\"}";
  const bool silent = client->state == READS || (client->state == RESTS && client->known);
  if (!clients->secure && !silent && send(client->fd, answer, sizeof answer - 1, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
    serve_metrics_request(clients->metrics, serve_path_number(serve_path_find("")), 408, -1);
  else if (client->state != RESTS)
    serve_metrics_cut(clients->metrics);
  shutdown(client->fd, SHUT_RDWR);
  client->state = CUT;
}

void serve_clients_look(serve_clients *clients) {
  const double now = serve_seconds();
  pthread_mutex_lock(&clients->lock);
  for (serve_client *client = clients->first; client; client = client->next)
    if (client->state != WORKS && client->state != CUT && now - client->since > clients->timeout)
      cut_off(clients, client);
  pthread_mutex_unlock(&clients->lock);
}
