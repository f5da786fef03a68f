// The option table: one line a key of the description language. It drives reading, overrides, defaults, messages,
// writing, the documentation and --help.
#ifndef TARN_CONFIG_CONFIG_OPTIONS_H
#define TARN_CONFIG_CONFIG_OPTIONS_H

#include "base/memory.h"
#include "config/pattern.h"
#include "tarn/config.h"

typedef enum tarn__option_type {
  TARN__OPTION_BOOL,      // bool
  TARN__OPTION_INTEGER,   // int64_t
  TARN__OPTION_REAL,      // double
  TARN__OPTION_WORD,      // an enum
  TARN__OPTION_TEXT,      // const char *
  TARN__OPTION_INTEGERS,  // const int64_t *, with the count in the next field
  TARN__OPTION_FREEZE,    // const tarn_freeze *, with the count in the next field
  TARN__OPTION_PATTERN    // tarn_stack
} tarn__option_type;

typedef struct tarn__option {
  const char *name;
  tarn__option_type type;
  size_t offset;                  // of the field in the section's structure
  double least, most;             // of numbers
  bool open_least, open_most;     // whether the limit itself is outside the range
  const tarn_config_word *words;  // of type WORD
  int word_count;
  const char *value;    // the default as written in a file; NULL: none, or see `derived`
  const char *derived;  // the default in words where it depends on other keys
  const char *unit;     // NULL: none
  const char *help;
  bool later;        // written only where it differs from `value` (a number), and never where it has a derived default:
                     // descriptions from before there was this key stay the same text
  unsigned mixers;   // of kinds: set of the mixers (1 << id) whose layers have this key; 0: all
  const char *also;  // names that other programs use for it, separated by spaces, for "did you mean"
} tarn__option;

// A map of the file and the structure that it fills.
typedef struct tarn__section {
  const char *path;  // "train"; "kinds" stands for each map below it
  const tarn__option *options;
  int count;
  size_t offset;  // of the section's structure in tarn_config, where it lies there
} tarn__section;

typedef enum tarn__section_id {
  TARN__SECTION_MODEL,
  TARN__SECTION_ENCODER,
  TARN__SECTION_ENCODER_PLACE,  // fills a tarn__placement
  TARN__SECTION_DECODER,
  TARN__SECTION_DECODER_PLACE,
  TARN__SECTION_KINDS,           // fills a tarn_kind
  TARN__SECTION_KINDS_BACKSKIP,  // fills the tarn_backskip of a tarn_kind
  TARN__SECTION_DATA,
  TARN__SECTION_TRAIN,
  TARN__SECTION_VALID,
  TARN__SECTION_TRANSLATE,
  TARN__SECTION_SETS,  // fills a tarn_config_set
  TARN__SECTION_COUNT
} tarn__section_id;

const tarn__section *tarn__config_section(tarn__section_id id);

// A field that has no value yet because its default is derived: the word past the last one, 0 (of an integer that is at
// least 1), NaN, or NULL.
void tarn__option_unset(const tarn__option *option, void *section);

// Reads the text of one value into its field; TEXT is copied into the arena. Fails with TARN_STATUS_USAGE and a line
// that names neither file nor key. Not for INTEGERS, FREEZE and PATTERN.
tarn_status tarn__option_set(const tarn__option *option, void *section, const char *text,
                             tarn__arena *arena) TARN_CHECKED;

// Sets a number to 0, yes or no to no, a word to the first one: for keys that a layer with its mixer does not have.
void tarn__option_clear(const tarn__option *option, void *section);

// Whether a layer of this kind has the key.
bool tarn__option_applies(const tarn__option *option, const tarn_kind *kind);

// Reads one integer in the option's range.
tarn_status tarn__option_integer(const tarn__option *option, int64_t *out, const char *text) TARN_CHECKED;

// The shortest decimal text that reads back to the same double.
enum { TARN__REAL_TEXT = 32 };
void tarn__real_text(char text[TARN__REAL_TEXT], double value);

#endif
