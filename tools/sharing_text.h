// Savings from sharing, as text.
#ifndef TARN_TOOLS_SHARING_TEXT_H
#define TARN_TOOLS_SHARING_TEXT_H

#include <stdbool.h>
#include <stdint.h>

enum { SHARING_TEXT = 160 };

// "; sharing saves 3.10 M more (layers 2.10 M, embeddings 1.00 M)" for `all` parameters, `layers` of which are in
// layers; names only one kind if the other is not shared; "" if nothing is. `millions`: in millions, with two decimals.
const char *sharing_text(char text[SHARING_TEXT], int64_t all, int64_t layers, bool millions);

#endif
