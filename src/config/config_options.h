// The option tables: one line per key of the description language. They drive reading, overrides, defaults, messages,
// writing, the documentation and --help. Keys of parts are defined by their entries (parts/part.h).
#ifndef TARN_CONFIG_CONFIG_OPTIONS_H
#define TARN_CONFIG_CONFIG_OPTIONS_H

#include "base/memory.h"
#include "config/pattern.h"
#include "description/description.h"
#include "parts/part.h"

// A map of the file and the structure it is read into.
typedef struct tarn__section {
  const char *path;  // "train"; "kinds" stands for each map below it
  const tarn__option *options;
  int count;
  size_t offset;  // of the section's structure in tarn_config, if it is there
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
  TARN__SECTION_MASKING,      // written for tasks that have it, according to tarn__task
  TARN__SECTION_LEVENSHTEIN,  // the same
  TARN__SECTION_HEAD,         // the same
  TARN__SECTION_IMAGE,        // the same
  TARN__SECTION_TRAIN,
  TARN__SECTION_VALID,
  TARN__SECTION_TRANSLATE,
  TARN__SECTION_SETS,      // fills a tarn_config_scored_set
  TARN__SECTION_DYNAMICS,  // written if it has an input
  TARN__SECTION_COUNT
} tarn__section_id;

const tarn__section *tarn__config_section(tarn__section_id id);

// Marks a field as unset, for a derived default: one past the last word, 0 (for an integer that is at least 1), NaN,
// NULL, or no part.
void tarn__option_unset(const tarn__option *option, void *section);

// Reads one value from text into its field; the text is copied into the arena. Fails with TARN_STATUS_USAGE and a line
// that names neither file nor key. Not for INTEGERS, FREEZE, PATTERN and PART.
tarn_status tarn__option_set(const tarn__option *option, void *section, const char *text,
                             tarn__arena *arena) TARN_CHECKED;

// Reads one integer in the option's range.
tarn_status tarn__option_integer(const tarn__option *option, int64_t *out, const char *text) TARN_CHECKED;

// The shortest decimal text that reads back to the same double.
enum { TARN__REAL_TEXT = 32 };
void tarn__real_text(char text[TARN__REAL_TEXT], double value);

// The word of a value without its optional prefix: "bleu" of "valid/bleu".
const char *tarn__config_bare_word(const tarn__option *option, const char *text);

#endif
