// The paths of a server.
#ifndef TARN_TOOLS_SERVE_PATHS_H
#define TARN_TOOLS_SERVE_PATHS_H

#include <stdbool.h>
#include <stddef.h>

#include "serve/serve_metrics.h"
#include "serve/serve_request.h"

// A file embedded in the program (cmake/embed.cmake).
typedef struct serve_file {
  const char *bytes;
  const size_t *size;
} serve_file;

typedef struct serve_path {
  const char *name;  // "/translate"; "" for unknown paths
  serve_use use;     // SERVE_USES: no use of the model
  serve_form form;
  const tarn_verb *verb;   // of SERVE_LABEL
  const char *type;        // of its answer
  bool open;               // accessible without a token
  const serve_file *file;  // the file to send; NULL: a generated answer
} serve_path;

// Builds the list of paths, before any other call here and in one thread.
void serve_paths_start(void);

// The entry of a path; for an unknown path the last one. What follows the path of a list names an item of it
// (serve_path_item()).
const serve_path *serve_path_find(const char *name);
// "NAME" of "/v1/models/NAME"; NULL: the path is the entry's own.
const char *serve_path_item(const serve_path *path, const char *name);
int serve_path_number(const serve_path *path);

// Their names, for metrics: the last one is "other". Returns their number.
int serve_paths_names(const char *names[SERVE_PATHS]);

#endif
