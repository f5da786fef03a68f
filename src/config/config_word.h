// The words of choices, for messages and files.
#ifndef TARN_CONFIG_CONFIG_WORD_H
#define TARN_CONFIG_CONFIG_WORD_H

#include "base/status.h"

// The word of a value of the key ("kinds.NAME.mixer"), as in the description; "": none.
const char *tarn__config_word(const char *key, int value);

// The allowed words of a key, for a message, added one by one. Zero-initialise.
typedef struct tarn__known_words {
  char list[400];  // "one, two", and "..." for words that do not fit
} tarn__known_words;

void tarn__known_add(tarn__known_words *known, const char *word);
// Fails: "given" is not one of ...; `is`: "not", "neither a number nor".
tarn_status tarn__known_fail(const tarn__known_words *known, const char *is, const char *given);

#endif
