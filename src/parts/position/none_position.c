// No positions: only mixers know the order of tokens.
#include "parts/block.h"

const tarn__position_entry tarn__position_none = {
    .part = {.word = "none", .text = "no positions are added", .equation = "x_t = scale embedding_t", .source = "none"},
};
