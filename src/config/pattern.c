#include "config/pattern.h"

#include <stdio.h>
#include <string.h>

#include "tarn/text.h"

enum { DEEPEST = 16, MOST_SETS = 9999 };
static const char BARE[] = "layer";  // followed by its depth: the set of a bare use

typedef struct reader {
  const char *text;
  size_t at;
  size_t item;  // beginning of the item that a message refers to
  tarn_layer *layers;
  int32_t count;
  const tarn_kind *kinds;
  int32_t kind_count;
  bool (*fits)(const tarn_kind *kind);  // NULL: all may be suggested
} reader;

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

static void skip_spaces(reader *r) {
  while (is_space(r->text[r->at])) r->at++;
}

// Reads digits as a number of at most `most`; -1 if it is larger or begins with 0.
static int32_t read_number(reader *r, int32_t most) {
  int32_t number = r->text[r->at] == '0' ? -1 : 0;
  for (; is_digit(r->text[r->at]); r->at++) {
    if (number >= 0) number = number * 10 + (r->text[r->at] - '0');
    if (number > most) number = -1;
  }
  return number;
}

static tarn_status find_kind(const reader *r, int32_t *kind, const char *name) {
  const char *names[TARN_CONFIG_KINDS];
  size_t count = 0;
  for (*kind = 0; *kind < r->kind_count; (*kind)++) {
    if (strcmp(r->kinds[*kind].name, name) == 0) return TARN_STATUS_OK;
    if (!r->fits || r->fits(&r->kinds[*kind])) names[count++] = r->kinds[*kind].name;
  }
  const char *near = tarn_text_nearest(name, names, count);
  TARN_REQUIRE(!near, USAGE, "kind \"%s\" is not defined under kinds; did you mean \"%s\"?", name, near);
  return tarn__fail(TARN_STATUS_USAGE, "kind \"%s\" is not defined under kinds", name);
}

static tarn_status read_name(reader *r) {
  size_t at = r->at;
  char name[TARN_CONFIG_KIND_NAME];
  while (is_letter(r->text[r->at])) r->at++;
  size_t length = r->at - at;
  TARN_REQUIRE(length < sizeof name, USAGE, "a kind's name has at most %zu letters", sizeof name - 1);
  memcpy(name, r->text + at, length);
  name[length] = 0;
  int32_t kind;
  TARN_TRY(find_kind(r, &kind, name));
  int32_t set = 0;
  if (is_digit(r->text[r->at])) {
    set = read_number(r, MOST_SETS);
    TARN_REQUIRE(set > 0, USAGE, "the number of a set is 1 to %d, without a zero in front", (int)MOST_SETS);
    TARN_REQUIRE(!is_letter(r->text[r->at]), USAGE, "letters after the number of a set");
  }
  TARN_REQUIRE(r->count < TARN_CONFIG_LAYERS, USAGE, "more than %d layers", (int)TARN_CONFIG_LAYERS);
  tarn_layer *layer = &r->layers[r->count++];
  *layer = (tarn_layer){.kind = kind};
  if (set > 0) snprintf(layer->set, sizeof layer->set, "%s%d", name, set);
  return TARN_STATUS_OK;
}

// Repeats the layers from `first` on if a '*' follows.
static tarn_status read_repeat(reader *r, int32_t first) {
  size_t before = r->at;
  skip_spaces(r);
  if (r->text[r->at] != '*') {
    r->at = before;
    return TARN_STATUS_OK;
  }
  r->item = r->at++;
  skip_spaces(r);
  TARN_REQUIRE(is_digit(r->text[r->at]), USAGE, "a number must follow the *");
  int32_t times = read_number(r, TARN_CONFIG_LAYERS);
  int32_t length = r->count - first;
  TARN_REQUIRE(times > 0, USAGE, "an item is repeated 1 to %d times", (int)TARN_CONFIG_LAYERS);
  TARN_REQUIRE(first + times * length <= TARN_CONFIG_LAYERS, USAGE, "more than %d layers", (int)TARN_CONFIG_LAYERS);
  for (int32_t i = 1; i < times; i++) {
    memcpy(&r->layers[r->count], &r->layers[first], (size_t)length * sizeof *r->layers);
    r->count += length;
  }
  char next = r->text[r->at];
  TARN_REQUIRE(next == 0 || next == ')' || is_space(next), USAGE, "a space must follow a number of repeats");
  skip_spaces(r);
  TARN_REQUIRE(r->text[r->at] != '*', USAGE, "a second *; put the first repeat in parentheses");
  return TARN_STATUS_OK;
}

// Reads items until the end of the text or the parenthesis that closes this group.
static tarn_status read_items(reader *r, int depth) {
  for (;;) {
    skip_spaces(r);
    int32_t first = r->count;
    size_t at = r->at;
    char c = r->text[at];
    r->item = at;
    if (c == 0 || (c == ')' && depth > 0)) return TARN_STATUS_OK;
    TARN_REQUIRE(c != ')', USAGE, "a parenthesis is closed that was not opened");
    TARN_REQUIRE(c != '*', USAGE, "a * without an item before it");
    if (c == '(') {
      TARN_REQUIRE(depth < DEEPEST, USAGE, "parentheses are nested too deeply");
      r->at++;
      TARN_TRY(read_items(r, depth + 1));
      r->item = at;
      TARN_REQUIRE(r->text[r->at] == ')', USAGE, "this parenthesis is never closed");
      TARN_REQUIRE(r->count > first, USAGE, "nothing in these parentheses");
      r->at++;
    } else {
      TARN_REQUIRE(is_letter(c), USAGE, "expected a kind or a parenthesis");
      TARN_TRY(read_name(r));
    }
    TARN_TRY(read_repeat(r, first));
  }
}

// Names the sets of bare uses by depth, and finds for each layer the lowest one with the same set.
static void name_sets(tarn_layer *layers, int32_t count) {
  for (int32_t i = 0; i < count; i++) {
    tarn_layer *layer = &layers[i];
    layer->first = 0;
    if (layer->set[0] == 0) {
      snprintf(layer->set, sizeof layer->set, "%s%d", BARE, i + 1);
      layer->first = i;
      continue;
    }
    while (strcmp(layers[layer->first].set, layer->set) != 0) layer->first++;
  }
}

tarn_status tarn__pattern_parse(tarn_layer *layers, int32_t *count, const char *pattern, const tarn_kind *kinds,
                                int32_t kind_count, bool (*fits)(const tarn_kind *kind)) {
  reader r = {.text = pattern, .layers = layers, .kinds = kinds, .kind_count = kind_count, .fits = fits};
  *count = 0;
  tarn_status status = read_items(&r, 0);
  if (status != TARN_STATUS_OK) return tarn__fail_prefix(status, "at character %zu: ", r.item + 1);
  TARN_REQUIRE(r.count > 0, USAGE, "the pattern is empty");
  name_sets(layers, r.count);
  *count = r.count;
  return TARN_STATUS_OK;
}

bool tarn__pattern_is_bare(const char *set) {
  return strncmp(set, BARE, strlen(BARE)) == 0 && is_digit(set[strlen(BARE)]);
}

// The notation of a layer: the kind for a bare use, the name of a named set.
static const char *layer_name(const tarn_layer *layers, int32_t i, const tarn_kind *kinds) {
  return tarn__pattern_is_bare(layers[i].set) ? kinds[layers[i].kind].name : layers[i].set;
}

static bool same(const tarn_layer *layers, int32_t a, int32_t b, const tarn_kind *kinds) {
  return strcmp(layer_name(layers, a, kinds), layer_name(layers, b, kinds)) == 0;
}

// The smallest p such that the layers are one group of p repeated.
static int32_t period(const tarn_layer *layers, int32_t count, const tarn_kind *kinds) {
  for (int32_t p = 1; p < count; p++) {
    if (count % p != 0) continue;
    int32_t i = p;
    while (i < count && same(layers, i, i - p, kinds)) i++;
    if (i == count) return p;
  }
  return count;
}

static int32_t run_length(const tarn_layer *layers, int32_t i, int32_t end, const tarn_kind *kinds) {
  int32_t n = 1;
  while (i + n < end && same(layers, i, i + n, kinds)) n++;
  return n;
}

tarn_status tarn__pattern_write(char text[TARN__PATTERN_TEXT], const tarn_layer *layers, int32_t count,
                                const tarn_kind *kinds) {
  TARN_REQUIRE(count >= 1 && count <= TARN_CONFIG_LAYERS, INTERNAL, "a stack of %d layers", (int)count);
  int32_t group = period(layers, count, kinds);
  bool grouped = group > 1 && group < count;
  int32_t end = grouped ? group : count;
  size_t used = grouped ? 1 : 0;
  strcpy(text, grouped ? "(" : "");
  for (int32_t i = 0; i < end;) {
    int32_t n = run_length(layers, i, end, kinds);
    char item[TARN_CONFIG_SET_NAME + 16];
    const char *name = layer_name(layers, i, kinds);
    int length = n > 1 ? snprintf(item, sizeof item, "%s*%d ", name, n) : snprintf(item, sizeof item, "%s ", name);
    memcpy(text + used, item, (size_t)length + 1);
    used += (size_t)length;
    i += n;
  }
  text[--used] = 0;  // the space after the last item
  if (grouped) snprintf(text + used, 16, ")*%d", count / group);
  return TARN_STATUS_OK;
}

static bool is_name(const char *text) {
  if (strlen(text) >= TARN_CONFIG_SET_NAME || !is_letter(*text)) return false;
  while (is_letter(*text)) text++;
  while (is_digit(*text)) text++;
  return *text == 0;
}

// The number of layers below the block with reservoirs, and the distance between two reservoirs in it.
static tarn_status arrange(const tarn__placement *place, int64_t *below, int64_t *step) {
  int64_t spare = place->of - place->reservoirs;
  *step = 1;
  *below = 0;
  switch (place->rule) {
    case TARN__PLACE_BOTTOM:
      return TARN_STATUS_OK;
    case TARN__PLACE_TOP:
      *below = spare;
      return TARN_STATUS_OK;
    case TARN__PLACE_MIDDLE:
      *below = spare / 2;
      return TARN_STATUS_OK;
    case TARN__PLACE_ALTERNATE:
    case TARN__PLACE_COUNT:
      break;
  }
  int64_t block = place->reservoirs > 0 ? 2 * place->reservoirs - 1 : 0;
  TARN_REQUIRE(block <= place->of, USAGE, "%d reservoirs cannot alternate among %d layers; at most %d can",
               (int)place->reservoirs, (int)place->of, (int)(place->of + 1) / 2);
  *step = 2;
  *below = (place->of - block) / 2;
  return TARN_STATUS_OK;
}

tarn_status tarn__place_pattern(char text[TARN__PATTERN_TEXT], const tarn__placement *place) {
  TARN_REQUIRE(is_name(place->trained) && is_name(place->reservoir), USAGE,
               "trained and reservoir must each be a kind or a named set, such as L or L1");
  TARN_REQUIRE(place->of >= 1 && place->of <= TARN_CONFIG_LAYERS && place->reservoirs >= 0, USAGE,
               "%d reservoirs of %d layers cannot be", (int)place->reservoirs, (int)place->of);
  TARN_REQUIRE(place->reservoirs <= place->of, USAGE, "%d reservoirs do not fit in %d layers", (int)place->reservoirs,
               (int)place->of);
  int64_t below = 0;
  int64_t step = 1;
  TARN_TRY(arrange(place, &below, &step));
  size_t used = 0;
  for (int64_t i = 0; i < place->of; i++) {
    int64_t inside = i - below;
    bool reservoir = inside >= 0 && inside % step == 0 && inside / step < place->reservoirs;
    const char *name = reservoir ? place->reservoir : place->trained;
    used += (size_t)snprintf(text + used, TARN__PATTERN_TEXT - used, "%s ", name);
  }
  text[used - 1] = 0;
  return TARN_STATUS_OK;
}
