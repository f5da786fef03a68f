// Mutation of safetensors files: the format's length, its JSON and its offsets would swallow nearly every random
// change.
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"

enum { MOST_TEXT = 1 << 14 };

static uint32_t draw(uint32_t *state, uint32_t below) {
  *state = *state * 1664525u + 1013904223u;
  return below ? (*state >> 8) % below : 0;
}

// Changes a text by the fuzzer's own mutations. Bytes that JSON cannot have are made letters.
static void mutate_text(json_t *value) {
  static uint8_t text[MOST_TEXT];
  const size_t length = json_string_length(value);
  if (length > sizeof text / 2) return;
  memcpy(text, json_string_value(value), length);
  size_t size = LLVMFuzzerMutate(text, length, sizeof text / 2);
  for (size_t i = 0; i < size; i++)
    if (text[i] == 0 || text[i] >= 0x80) text[i] = 'a' + text[i] % 26;
  json_string_setn(value, (const char *)text, size);
}

static void mutate_number(json_t *value, uint32_t *state) {
  static const json_int_t often[] = {0, 1, -1, 2, 3, 8, 16, 255, 65536, 2147483647, 4294967296, 4611686018427387904};
  json_int_t now = json_integer_value(value);
  uint32_t how = draw(state, 3);
  if (how == 0)
    now = often[draw(state, sizeof often / sizeof *often)];
  else
    now = (json_int_t)((uint64_t)now + draw(state, 9) - 4);
  json_integer_set(value, now);
}

// Changes something at random below a value.
static void mutate_value(json_t *value, uint32_t *state, int depth) {
  if (json_is_string(value)) {
    mutate_text(value);
  } else if (json_is_integer(value)) {
    mutate_number(value, state);
  } else if (json_is_array(value) && json_array_size(value) > 0 && depth < 8) {
    mutate_value(json_array_get(value, draw(state, (uint32_t)json_array_size(value))), state, depth + 1);
  } else if (json_is_object(value) && json_object_size(value) > 0 && depth < 8) {
    // The metadata, whose texts are languages of their own, is taken half of the time.
    json_t *metadata = json_object_get(value, "__metadata__");
    void *at = json_object_iter(value);
    for (uint32_t skip = draw(state, (uint32_t)json_object_size(value)); skip > 0; skip--)
      at = json_object_iter_next(value, at);
    const char *key = json_object_iter_key(at);
    if (metadata && draw(state, 2))
      mutate_value(metadata, state, depth + 1);
    else if (draw(state, 24) == 0)
      json_object_del(value, key);
    else if (draw(state, 24) == 0)
      json_object_set(value, key, json_object_iter_value(json_object_iter(value)));
    else
      mutate_value(json_object_iter_value(at), state, depth + 1);
  }
}

static size_t join(uint8_t *data, size_t room, const uint8_t *head, size_t head_size, const uint8_t *rest,
                   size_t rest_size) {
  if (8 + head_size + rest_size > room) return 0;
  memmove(data + 8 + head_size, rest, rest_size);
  memcpy(data + 8, head, head_size);
  uint64_t length = head_size;
  memcpy(data, &length, sizeof length);
  return 8 + head_size + rest_size;
}

static size_t mutate_header(uint8_t *data, size_t head, size_t size, size_t room, uint32_t *state) {
  json_t *root = json_loadb((const char *)data + 8, head, 0, NULL);
  if (!root) return 0;
  mutate_value(root, state, 0);
  char *text = json_dumps(root, JSON_COMPACT);
  json_decref(root);
  if (!text) return 0;
  size_t result = join(data, room, (const uint8_t *)text, strlen(text), data + 8 + head, size - 8 - head);
  free(text);
  return result;
}

size_t fuzz_mutate_tensors(uint8_t *data, size_t size, size_t room, unsigned seed) {
  uint64_t head = 0;
  uint32_t state = seed;
  if (size >= 8) memcpy(&head, data, 8);
  if (size < 8 || head > size - 8) return LLVMFuzzerMutate(data, size, room);
  uint32_t how = draw(&state, 8);
  size_t result = 0;
  if (how < 5) result = mutate_header(data, (size_t)head, size, room, &state);
  if (how == 5 && size - 8 - head > 0) {  // the bytes of the tensors, as many as there are
    uint8_t *rest = data + 8 + head;
    const size_t bytes = size - 8 - (size_t)head, piece = 1 + draw(&state, 64), from = draw(&state, (uint32_t)bytes);
    const size_t now = piece < bytes - from ? piece : bytes - from;
    (void)LLVMFuzzerMutate(rest + from, now, now);
    result = size;
  }
  if (how == 6) {  // the header as bytes
    uint8_t *text = malloc(room);
    if (!text) return 0;
    memcpy(text, data + 8, (size_t)head);
    size_t now = LLVMFuzzerMutate(text, (size_t)head, room - 8 < head + 64 ? room - 8 : (size_t)head + 64);
    result = join(data, room, text, now, data + 8 + head, size - 8 - (size_t)head);
    free(text);
  }
  return result ? result : LLVMFuzzerMutate(data, size, room);
}
