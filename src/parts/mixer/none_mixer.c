// No token mixer: the layer is its channel mixer alone, as in the FFN reservoir of Shen et al. (ACL 2021).
#include "parts/block.h"

const tarn__mixer_entry tarn__mixer_none = {
    .part = {.word = "none",
             .text = "no token mixer: the layer is its FFN only",
             .equation = "y = 0: there is no sublayer",
             .source = "Shen et al. 2021 (arXiv 2012.15045), as the FFN reservoir"},
    .empty = true,
    .causal = true,
    .decodes = true,
};
