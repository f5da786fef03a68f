// The pattern language: "(R L)*4" -> the layers of a stack, and back; and placements by rule.
//
//   pattern := item+             items are separated by spaces
//   item    := name | '(' pattern ')', then optionally '*' N
//   name    := a kind, then optionally digits that name a set of weights: R, R1, R12
#ifndef TARN_CONFIG_PATTERN_H
#define TARN_CONFIG_PATTERN_H

#include <stdbool.h>

#include "base/status.h"
#include "description/description.h"

enum { TARN__PATTERN_TEXT = 32768 };  // size for the longest canonical pattern with its zero byte

// Reads a pattern into layers[0 .. *count - 1], from the bottom to the top; `layers` has room for TARN_CONFIG_LAYERS.
// Fails with TARN_STATUS_USAGE and a line that begins with the position in the pattern. For a misspelt kind it suggests
// one that `fits` (NULL: any).
tarn_status tarn__pattern_parse(tarn_layer *layers, int32_t *count, const char *pattern, const tarn_kind *kinds,
                                int32_t kind_count, bool (*fits)(const tarn_kind *kind)) TARN_CHECKED;

// Whether a set belongs to a bare use, "layer3": no kind is called "layer", and names of kinds contain no digits.
bool tarn__pattern_is_bare(const char *set);

// The shorter of: one group repeated, "(R L)*4", or runs, "L*2 R L". It depends only on the layers, and
// tarn__pattern_parse() reads it back. Fails only for layers that cannot result from a pattern.
tarn_status tarn__pattern_write(char text[TARN__PATTERN_TEXT], const tarn_layer *layers, int32_t count,
                                const tarn_kind *kinds) TARN_CHECKED;

#define TARN__PLACE_RULE_MAP(X)                                                                                  \
  X(TARN__PLACE_ALTERNATE, "alternate", "reservoirs and trained layers by turns, the alternating block centred") \
  X(TARN__PLACE_BOTTOM, "bottom", "all reservoirs next to the embeddings")                                       \
  X(TARN__PLACE_MIDDLE, "middle", "all reservoirs together, centred")                                            \
  X(TARN__PLACE_TOP, "top", "all reservoirs above the trained layers")

#define TARN__PLACE_VALUE(value, word, text) value,
typedef enum tarn__place_rule { TARN__PLACE_RULE_MAP(TARN__PLACE_VALUE) TARN__PLACE_COUNT } tarn__place_rule;
#undef TARN__PLACE_VALUE

// A placement by rule (Shen et al. 2021): the positions of `reservoirs` of `of` layers.
typedef struct tarn__placement {
  int64_t reservoirs, of;
  tarn__place_rule rule;
  const char *trained, *reservoir;  // each a kind or a named set
} tarn__placement;

// Writes the placement as a pattern of `of` names.
tarn_status tarn__place_pattern(char text[TARN__PATTERN_TEXT], const tarn__placement *place) TARN_CHECKED;

#endif
