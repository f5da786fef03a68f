// The paths of a server, and what is there.
#ifndef TARN_TOOLS_SERVE_PATHS_H
#define TARN_TOOLS_SERVE_PATHS_H

#include <stdbool.h>
#include <stddef.h>

#include "serve/serve_metrics.h"
#include "serve/serve_request.h"

// A file that is part of the program (cmake/embed.cmake).
typedef struct serve_file {
  const char *bytes;
  const size_t *size;
} serve_file;

typedef struct serve_path {
  const char *name;        // "/translate"; "" for all that there is not
  serve_use use;           // SERVE_USES: none of the model
  const tarn_verb *verb;   // of SERVE_LABEL
  const char *type;        // of its answer
  bool open;               // without a token too
  const serve_file *file;  // that is the answer; NULL: it is made
} serve_path;

// Lists the paths, before anything else here and in one thread.
void serve_paths_start(void);

// The entry of a path; of one that there is not, the last one.
const serve_path *serve_path_find(const char *name);
int serve_path_number(const serve_path *path);

// Their names, for metrics: the last one is "other". Returns how many there are.
int serve_paths_names(const char *names[SERVE_PATHS]);

#endif
