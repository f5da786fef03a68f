// Parts of a description: the entry that a key names, and its keys.
#ifndef TARN_CONFIG_CONFIG_PART_H
#define TARN_CONFIG_CONFIG_PART_H

#include "config/config_options.h"
#include "config/yaml_tree.h"
#include "parts/table/part_table.h"
#include "task/task.h"

// The word of a part in the description; "" if there is none.
const char *tarn__part_word(const tarn_part_use *use);

// The value of a numeric key of a kind or of one of its parts: "dropout", "heads" of its mixer, "ffn.width". Yes is 1
// and no is 0. False, with *value 0, if a layer of this kind has no such key.
bool tarn__kind_number(const tarn_kind *kind, const char *key, double *value);

// The same for a key of a part itself.
bool tarn__part_number(const tarn_part_use *use, const char *key, double *value);

// Fails with USAGE, naming kind and mixer, if a layer of the decoder cannot decode token by token, which translation
// and generation require.
tarn_status tarn__config_check_decoding(const tarn_config *config) TARN_CHECKED;

// The option of an entry by name; NULL: none.
const tarn__option *tarn__part_option(const tarn__part *part, const char *name);

// Initialises *use with the entry and the defaults of its keys. Derived keys remain unset, except those that the model
// provides.
tarn_status tarn__part_begin(tarn_part_use *use, const tarn__part *part, const tarn_config_model *model,
                             tarn__arena *arena) TARN_CHECKED;

// Whether text for the option's key is a word that is not in the table.
bool tarn__part_is_word(const tarn__option *option, const char *text);

// Sets a part from one word, or for options with `number` from a number. Fails with a line that names neither file nor
// key.
tarn_status tarn__part_set(const tarn__option *option, tarn_part_use *use, const char *text,
                           const tarn_config_model *model, tarn__arena *arena) TARN_CHECKED;

// Converts the parts above a key of this path from words or numbers to equivalent maps, so that the key can be set.
tarn_status tarn__parts_open(tarn__yaml *tree, tarn__yaml_node *root, const char *path) TARN_CHECKED;

// Sets the default of a part's option: that of the model, or its value.
tarn_status tarn__part_set_default(const tarn__option *option, tarn_part_use *use, const tarn_config_model *model,
                                   tarn__arena *arena) TARN_CHECKED;

// Whether two values of an option are equal; for a part, entry and all keys.
bool tarn__option_same(const tarn__option *option, const void *field, const void *other);
bool tarn__part_same(const tarn_part_use *use, const tarn_part_use *other);

// Whether a word, or a number, describes a part completely.
bool tarn__part_is_plain(const tarn__option *option, const tarn_part_use *use, const tarn_config_model *model);

// Whether a field has its default. Only for options whose default depends at most on the model.
bool tarn__option_is_default(const tarn__option *option, const void *field, const tarn_config_model *model);

// A key below a kind: "heads", "ffn.width".
enum { TARN__KIND_KEY = 64 };

// Finds the first probability above 0 with which a layer of the kind drops something, and its key; false if there is
// none.
bool tarn__kind_random(char key[TARN__KIND_KEY], const tarn_kind *kind, double *p);
// The same for the position scheme: random shifts of positions.
bool tarn__positions_random(char key[TARN__KIND_KEY], const tarn_config *config, double *p);

// The position scheme's table for a stack, which its self-attentions share: number of heads, and whether it is trained,
// which is the case if a layer that reads it is not frozen. False: there is none. Layers removed by layers_to_keep are
// included: a model stays valid when it is pruned.
bool tarn__config_biases(const tarn_config *config, tarn__stack_id id, int64_t *heads, bool *trained);

// For a kind with a channel mixer whose width `ffn: NUMBER` sets: a pointer to it; NULL if there is none.
int64_t *tarn__kind_width(const tarn_kind *kind);
// The key below the kind that sets only this: "ffn", or "ffn.width" if the part has other keys set.
void tarn__kind_width_key(char key[TARN__KIND_KEY], const tarn_kind *kind, const tarn_config_model *model);

// The last word of that longer key.
const char *tarn__kind_width_name(void);

// A part that a part of the kind has as a key ("ffn.activation"); NULL: no such key.
const tarn_part_use *tarn__kind_part(const tarn_kind *kind, const char *key);
// A kind's feed-forward network, for messages: the word of its type, or "nothing".
const char *tarn__kind_channel_word(const tarn_kind *kind);

// "a, b and c": the words of a table's entries that `which` accepts (NULL: all).
enum { TARN__PART_LIST = 512 };
const char *tarn__part_list(char list[TARN__PART_LIST], tarn__part_table table,
                            bool (*which)(const tarn__part *part, const void *user), const void *user);
// Predicates for it: entries with the key `user`; mixers that a decoder can have; mixers that decode token by token.
bool tarn__part_has_key(const tarn__part *part, const void *user);
bool tarn__part_is_causal(const tarn__part *part, const void *user);
bool tarn__part_decodes(const tarn__part *part, const void *user);

// Resolves and checks the parts of the model, of a kind.
tarn_status tarn__parts_resolve_model(const tarn_config *config, const tarn__yaml_node *root) TARN_CHECKED;
tarn_status tarn__parts_resolve_kind(const tarn_config *config, const tarn_kind *kind,
                                     const tarn__yaml_node *root) TARN_CHECKED;

// Checks parts against their place: mixers in the decoder must be causal, those of a validation that decodes must
// decode token by token, and a position scheme that rotates queries and keys needs a layer that has them.
tarn_status tarn__parts_check_places(const tarn_config *config, const tarn__yaml_node *root) TARN_CHECKED;
// The second of these checks, for the section or set at `path` that requests BLEU.
tarn_status tarn__parts_check_bleu(const tarn_config *config, const tarn__yaml_node *root,
                                   const char *path) TARN_CHECKED;

#endif
