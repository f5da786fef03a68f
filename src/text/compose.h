// Unicode's composed form, NFC.
#ifndef TARN_TEXT_COMPOSE_H
#define TARN_TEXT_COMPOSE_H

#include <stddef.h>

#include "base/status.h"
#include "tarn/vocab.h"

// Makes *text point to its composed form in `room`, or leaves it where it is in that form. Invalid UTF-8 becomes
// U+FFFD. Fails with MEMORY, or with DATA for more than 2^28 bytes.
tarn_status tarn__compose(tarn_vocab_text *room, const char **text, size_t *length) TARN_CHECKED;

#endif
