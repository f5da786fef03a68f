// Uses of public functions, one for each: on good arguments, and on bad ones. The files test_api_*.c share the
// functions of include/tarn between them; each says in which headers its own are. scripts/check_structure.sh checks
// that every function has a use.
#ifndef TARN_TESTS_API_H
#define TARN_TESTS_API_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "tarn/status.h"

// USE(tarn_x) in the table of a file stands for its function `static void use_tarn_x(void)`.
typedef struct api_use {
  const char *function;
  void (*use)(void);
  void (*address)(void);  // of the public function: there must be one
} api_use;
#define USE(function) \
  { #function, use_##function, (void (*)(void))function }

// How many errors the use that runs has seen, and as what.
static int api_refusals;

static inline void works(tarn_status status) {
  if (status != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

// Bad arguments: refused with this status and one line that has these words.
static inline void refuses(tarn_status status, tarn_status expected, const char *words) {
  const char *line = tarn_error_message();
  if (status != expected || !strstr(line, words) || strchr(line, '\n'))
    fail_msg("status %d and \"%s\", expected %d and \"%s\"", (int)status, line, (int)expected, words);
  api_refusals++;
}

static inline char *api_read(const char *header) {
  char path[512];
  snprintf(path, sizeof path, "%s/include/tarn/%s", TARN_SOURCE_DIR, header);
  FILE *file = fopen(path, "rb");
  if (!file) fail_msg("%s cannot be read", path);
  char *text = calloc(1, 1 << 20);
  assert_non_null(text);
  assert_in_range(fread(text, 1, (1 << 20) - 1, file), 1, (1 << 20) - 2);
  fclose(file);
  return text;
}

// The functions of a header: the name before the first parenthesis after TARN_API. Calls `see` with each, and with
// whether it returns a status.
static inline void api_functions(const char *header, void (*see)(const char *name, bool status)) {
  char *text = api_read(header);
  int count = 0;
  for (char *at = text; (at = strstr(at, "\nTARN_API ")) != NULL;) {
    char *open = strchr(at, '('), *name = open;
    assert_non_null(open);
    while (name[-1] == '_' || (name[-1] >= 'a' && name[-1] <= 'z') || (name[-1] >= '0' && name[-1] <= '9')) name--;
    *open = '\0';
    see(name, strncmp(at + strlen("\nTARN_API "), "tarn_status ", strlen("tarn_status ")) == 0);
    at = open + 1;
    count++;
  }
  if (count == 0) fail_msg("%s declares no function", header);
  free(text);
}

static const char *api_running;
static bool api_declared, api_gives_status;
static inline void api_note_status(const char *name, bool status) {
  if (strcmp(name, api_running) != 0) return;
  api_declared = true;
  api_gives_status = status;
}

static const char *const *api_headers;

static inline void api_run_use(void **state) {
  const api_use *use = *state;
  assert_non_null(use->address);
  api_running = use->function;
  api_declared = false;
  for (int i = 0; api_headers[i]; i++) api_functions(api_headers[i], api_note_status);
  if (!api_declared) fail_msg("%s() is in none of the headers of this file", use->function);
  api_refusals = 0;
  use->use();
  if (api_gives_status && api_refusals == 0) fail_msg("%s() was not given bad arguments", use->function);
}

// The main function of a file: its headers, NULL at the end; its table; cmocka's setup and teardown of the group.
static inline int api_main(const char *const *headers, const api_use *uses, size_t count, CMFixtureFunction open,
                           CMFixtureFunction close) {
  struct CMUnitTest *tests = calloc(count, sizeof *tests);
  if (!tests) return 1;
  api_headers = headers;
  for (size_t i = 0; i < count; i++)
    tests[i] =
        (struct CMUnitTest){uses[i].function, api_run_use, NULL, NULL, (void *)(uintptr_t)(const void *)&uses[i]};
  const int failed = _cmocka_run_group_tests("api", tests, count, open, close);
  free(tests);
  return failed;
}

#endif
