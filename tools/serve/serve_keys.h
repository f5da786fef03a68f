// The keys of a request's JSON object: a table of them, their values checked and stored.
#ifndef TARN_TOOLS_SERVE_KEYS_H
#define TARN_TOOLS_SERVE_KEYS_H

#include "serve/serve_request.h"

typedef enum serve_key_type {
  SERVE_KEY_OWN,      // read by its user
  SERVE_KEY_FLAG,     // value: bool
  SERVE_KEY_WHOLE,    // value: int64_t, low .. high
  SERVE_KEY_REAL,     // value: double, low .. high
  SERVE_KEY_WORD,     // value: int, the index of the word in `words`, which ends with NULL
  SERVE_KEY_STRINGS,  // value: serve_strings; a string that is not empty, or an array of such, each of at most `high`
                      // bytes if that is not 0
} serve_key_type;

typedef struct serve_key {
  const char *name;
  serve_key_type type;
  unsigned uses;  // bits 1 << serve_use for which it exists
  void *value;
  double low, high;
  const char *const *words;
} serve_key;

// Where strings are stored, in an array of malloc(); their texts are those of the body.
typedef struct serve_strings {
  const char ***memory, *const **items;
  size_t *count;
} serve_strings;

enum { SERVE_KEYS = 48, SERVE_KEY_STRINGS_MOST = 64, SERVE_KEY_STOP_BYTES = 256 };  // most keys of a table,
// strings of a key, bytes of a stop string, for which as much text is looked at after every token

// Reads request->body, an object, by a table of at most SERVE_KEYS keys; `path` is named in messages. `nulls`: null
// stands for a key that is not there. Strings have at most `string_bytes` bytes. False: the request was refused, with
// 400 (413 for a long string), for a key that is unknown or whose value is not allowed.
bool serve_keys_read(serve_request *request, const char *path, const serve_key *keys, size_t count, bool nulls,
                     int64_t string_bytes);

// Whether the body has this key, with a value other than null.
bool serve_keys_given(const serve_request *request, const char *name);

#endif
