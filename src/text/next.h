// The source of text for training a vocabulary.
#ifndef TARN_TEXT_NEXT_H
#define TARN_TEXT_NEXT_H

#include <stddef.h>

#include "tarn/status.h"

// Returns the next line of text (*text is NULL after the last one); the line is valid until the next call.
typedef tarn_status (*tarn__text_next)(void *user, const char **text, size_t *length);

#endif
