#include "base/load_module.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// NULL if there is no such file.
static void *open_there(const char *folder, const tarn__module_place *place) {
  char path[4096];
  const int length = snprintf(path, sizeof path, "%s/%s", folder, place->file);
  if (length >= (int)sizeof path || access(path, R_OK) != 0) return NULL;
  return dlopen(path, place->flags);
}

// The file that contains this code, to be freed with free(); NULL if unknown. For the program itself the system only
// knows argv[0], which is useless if it was found on the path.
static char *own_file(void) {
  Dl_info own;
  struct link_map *map = NULL;
  if (dladdr1((const void *)&tarn__module_load, &own, (void **)&map, RTLD_DL_LINKMAP) == 0 || !map) return NULL;
  return realpath(map->l_name && *map->l_name ? map->l_name : "/proc/self/exe", NULL);
}

void *tarn__module_load(const tarn__module_place *place, const char **why) {
  const char *const behind[] = {"", "/tarn", "/../lib/tarn", place->installed};
  static _Thread_local char line[256];
  char folder[2048], there[4096];
  void *library = NULL;
  const char *named = getenv(place->variable);
  dlerror();  // discards earlier errors
  if (named) {
    library = open_there(named, place);
  } else {
    char *real = own_file();
    const char *slash = real ? strrchr(real, '/') : NULL;
    if (slash) snprintf(folder, sizeof folder, "%.*s", (int)(slash - real), real);
    for (size_t i = 0; slash && !library && i < sizeof behind / sizeof *behind; i++) {
      snprintf(there, sizeof there, "%s%s", folder, behind[i]);
      library = open_there(there, place);
    }
    free(real);
  }
  if (library) return library;
  *why = dlerror();
  if (!*why && named) {
    snprintf(line, sizeof line, "there is none where %s says", place->variable);
    *why = line;
  } else if (!*why) {
    *why = "there is none beside the program, nor where it is installed";
  }
  return NULL;
}
