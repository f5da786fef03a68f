// No token mixer: the layer is its channel mixer alone, as in the FFN reservoir of Shen et al. (ACL 2021).
#include "parts/block.h"

const tarn__mixer_entry tarn__mixer_none = {
    .part = {.word = "none", .text = "no token mixer: the layer is its FFN only"},
    .empty = true,
    .causal = true,
    .decodes = true,
};
