#include "stop_signal.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

volatile sig_atomic_t stop_signal;
volatile sig_atomic_t save_signal;
volatile sig_atomic_t reload_signal;

static volatile sig_atomic_t in_order;
static const char *ending;  // the message of a process that has nothing to save

static void on_stop(int number) {
  if (in_order) {
    stop_signal = number;
    return;
  }
  const ssize_t written = write(STDERR_FILENO, ending, strlen(ending));
  (void)written;
  signal(number, SIG_DFL);
  raise(number);  // delivered after the handler returns
}

static void on_save(int number) {
  (void)number;
  save_signal++;
}

static void on_reload(int number) {
  (void)number;
  reload_signal++;
}

static void catch (int number, void (*handler)(int), int flags) {
  struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, NULL);
}

void ignore_save_signal(void) { signal(SIGUSR1, SIG_IGN); }

void catch_stop_signals(const char *line) {
  struct sigaction hangup;
  ending = line;
  catch (SIGUSR1, on_save, SA_RESTART);
  catch (SIGINT, on_stop, (int)(SA_RESTART | SA_RESETHAND));
  catch (SIGTERM, on_stop, (int)(SA_RESTART | SA_RESETHAND));
  if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN) catch (SIGHUP, on_stop, SA_RESTART);
}

void catch_reload_signal(void) { catch (SIGHUP, on_reload, SA_RESTART); }

void stop_in_order(bool open) {
  in_order = open;
  if (!open && *ending) ending = "tarn: stopped; all is saved\n";
}
