// Modules: shared libraries of this project that are loaded when they are first needed.
#ifndef TARN_BASE_LOAD_MODULE_H
#define TARN_BASE_LOAD_MODULE_H

// Where a module may be. The folders are searched in this order, except that a set environment variable names the only
// one: that of the program or library with this code, tarn/ and ../lib/tarn/ below it, and `installed` relative to it.
typedef struct tarn__module_place {
  const char *file;       // "tarn-mpi-openmpi.so"
  const char *variable;   // of the environment: the folder
  const char *installed;  // "/../lib/x86_64-linux-gnu/tarn"
  int flags;              // of dlopen()
} tarn__module_place;

// Returns the library, for dlsym(); or NULL, with the reason in *why.
void *tarn__module_load(const tarn__module_place *place, const char **why);

#endif
