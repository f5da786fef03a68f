// The words of choices, for messages and files.
#ifndef TARN_CONFIG_CONFIG_WORD_H
#define TARN_CONFIG_CONFIG_WORD_H

// The word of a value of the key ("kinds.NAME.mixer"), as in the description; "" if there is none.
const char *tarn__config_word(const char *key, int value);

#endif
