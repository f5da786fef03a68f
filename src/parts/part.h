// Keys of a description, and the entries of the tables that own some of them.
//
// A part of a layer (its token mixer, its channel mixer, its norm, its activation) or of a model (its position scheme)
// is an entry of a table. An entry owns its word and its keys; from them come reading, checks, "did you mean", writing
// and the documentation. The reader of descriptions (src/config) walks through these tables and knows no entry.
#ifndef TARN_PARTS_PART_H
#define TARN_PARTS_PART_H

#include "description/description.h"

typedef enum tarn__part_table {
  TARN__TABLE_MIXER,
  TARN__TABLE_CHANNEL,
  TARN__TABLE_NORM,
  TARN__TABLE_POSITION,
  TARN__TABLE_ACTIVATION,
  TARN__TABLE_COUNT
} tarn__part_table;

typedef enum tarn__option_type {
  TARN__OPTION_BOOL,      // bool
  TARN__OPTION_INTEGER,   // int64_t
  TARN__OPTION_REAL,      // double
  TARN__OPTION_WORD,      // an enum
  TARN__OPTION_TEXT,      // const char *
  TARN__OPTION_INTEGERS,  // const int64_t *, with the count in the next field
  TARN__OPTION_FREEZE,    // const tarn_freeze *, with the count in the next field
  TARN__OPTION_PATTERN,   // tarn_stack
  TARN__OPTION_PART       // tarn_part_use: a word, or a map of `type` and the keys of that entry
} tarn__option_type;

// A key.
typedef struct tarn__option {
  const char *name;
  tarn__option_type type;
  size_t offset;                  // of the field in its structure
  double least, most;             // of numbers
  bool open_least, open_most;     // whether the limit itself is outside the range
  const tarn_config_word *words;  // of type WORD
  int word_count;
  const char *before;   // optional prefix of a word: "valid/" of measures, as in the names of scores. NULL: none
  const char *value;    // the default in file syntax; NULL: none, or see `derived`
  const char *derived;  // the default in words if it depends on other keys
  const char *unit;     // NULL: none
  const char *help;
  bool later;        // written only if it differs from its default, and never if that is derived from other keys than
                     // one of the model: descriptions from before there was this key stay the same text
  bool random;       // if above 0, outputs differ between steps: a probability of dropping something,
                     // how far something is shifted
  const char *also;  // names in other programs, separated by spaces, for "did you mean"
  // Of type PART.
  tarn__part_table table;
  bool beside;  // the keys of the entry are siblings of this key, which is a word alone
  // The key of the table's first entry that a plain number sets; the number 0: there is no such part. Such a part is
  // written as that number if all its other keys have their defaults. NULL: none.
  const char *number;
  size_t inherits;  // offset of its default in tarn_config_model; 0: `value`, or the first entry
} tarn__option;

// The first fields of an option, by type.
#define TARN__KEY_BOOL(structure, field) .type = TARN__OPTION_BOOL, .offset = offsetof(structure, field)
#define TARN__KEY_INTEGER(structure, field, low, high) \
  .type = TARN__OPTION_INTEGER, .offset = offsetof(structure, field), .least = low, .most = high
#define TARN__KEY_REAL(structure, field, low, high) \
  .type = TARN__OPTION_REAL, .offset = offsetof(structure, field), .least = low, .most = high
#define TARN__KEY_WORD(structure, field, list)                                    \
  .type = TARN__OPTION_WORD, .offset = offsetof(structure, field), .words = list, \
  .word_count = (int)(sizeof(list) / sizeof *(list))
#define TARN__KEY_PART(structure, field, of) \
  .type = TARN__OPTION_PART, .offset = offsetof(structure, field), .table = of
#define TARN__KEY_BELOW_MOST .open_most = true
#define TARN__KEY_ABOVE_LEAST .open_least = true

// The place of a part in a description, for its checks.
typedef struct tarn__part_site tarn__part_site;

// Common to the entries of all tables; the first member of each table's structure.
typedef struct tarn__part {
  const char *word;  // in a description
  const char *text;  // its meaning, for the documentation
  // What it computes, in plain text with line ends, and the publication, "Author and Author 2019 (arXiv 1234.56789)":
  // for its page in docs/parts.
  const char *equation, *source;
  const char *also;  // names in other programs, separated by spaces; NULL: none
  const tarn__option *options;
  int option_count;
  size_t size;  // of the structure filled by the options; 0: it has no keys
  // Fills in defaults that depend on other keys, and checks conditions that an option cannot express. NULL: nothing.
  tarn_status (*resolve)(const tarn__part_site *site, void *keys);
} tarn__part;

// The options of an entry whose structure of keys is `structure`.
#define TARN__PART_KEYS(structure, list) \
  .options = list, .option_count = (int)(sizeof(list) / sizeof *(list)), .size = sizeof(structure)

struct tarn__part_site {
  const tarn_config_model *model;
  const tarn_kind *kind;  // NULL: the part is one of the whole model
  bool in_encoder;        // a layer of the encoder, or of a decoder that is not causal, is of this kind
  bool attends;           // a layer of a decoder with an encoder is, and cross-attention follows its mixer
  const char *path;       // of the map that has the part's keys: "kinds.R", "kinds.R.norm_type"
  // Fails with the line of the key "kinds.R.heads", or of its parent.
  tarn_status (*fail)(const tarn__part_site *site, const char *key, const char *text);
  const void *root;
};

// Fails for a key of the part; `key` begins below site->path.
tarn_status tarn__part_fail(const tarn__part_site *site, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Whether a word is among words separated by spaces, `_` and `-` being alike. `list` may be NULL.
bool tarn__part_listed(const char *list, const char *word);

#endif
