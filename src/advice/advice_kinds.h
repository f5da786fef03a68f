// Frozen kinds for a configuration that has only trained ones.
#ifndef TARN_ADVICE_ADVICE_KINDS_H
#define TARN_ADVICE_ADVICE_KINDS_H

#include "advice/advice_memory.h"

enum { TARN__ADVICE_KINDS = 8 };  // most new kinds of a form

// A kind of frozen layer in the record, and what it becomes.
typedef struct tarn__advice_kind {
  const tarn_kind *frozen, *trained;  // of the record
  const tarn_kind *given;             // the trained kind of the configuration in whose place it stands
  char name[TARN_CONFIG_KIND_NAME];
} tarn__advice_kind;

typedef struct tarn__advice_kinds {
  tarn__advice_kind items[TARN__ADVICE_KINDS];
  size_t count;
} tarn__advice_kinds;

// The kind of the list, added to it if it is not there, under a name that the configuration does not use.
tarn_status tarn__advice_kind_find(const tarn__advice_kind **out, tarn__advice_kinds *kinds, const tarn_config *given,
                                   const tarn__advice_kind *wanted) TARN_CHECKED;

// Whether layers of all mixers have this key of a kind.
bool tarn__advice_is_general(const char *key);

// The map of a new kind, key by key. Those that are left out have their default without being written.
enum { TARN__ADVICE_KEYS = 64 };
typedef struct tarn__advice_map {
  const char *keys[TARN__ADVICE_KEYS], *values[TARN__ADVICE_KEYS];
  bool left[TARN__ADVICE_KEYS];
  size_t count;
} tarn__advice_map;

// Fills the map with that of the given kind, changed in the keys in which the record's frozen kind differs from its
// trained one. *obstacle is set where they cannot be carried over.
tarn_status tarn__advice_kind_map(tarn__advice_map *map, const char **obstacle, struct tarn__advice_memory *m,
                                  const tarn__advice_pair *pair, const tarn__advice_kind *kind) TARN_CHECKED;
// "kinds.NAME={ ... }" in the arena.
tarn_status tarn__advice_kind_text(const char **text, struct tarn__advice_memory *m, const tarn__advice_map *map,
                                   const char *name) TARN_CHECKED;

#endif
