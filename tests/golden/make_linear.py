#!/usr/bin/env python3
"""Makes golden files of test_golden.c for linear attention, Performer and Linformer.

    python3 tests/golden/make_linear.py [CASE...]  (needs torch, safetensors and performer-pytorch)

The network and the files are those of make_transformer.py. Self-attention is that of performer-pytorch, sentence by
sentence: its linear_attention() and, in the decoder, causal_linear_attention_noncuda(), on the features elu + 1
(Katharopoulos et al. 2020) or its softmax_kernel() (Choromanski et al. 2021). The numbers that the package adds for
safety, and which the published equations do not have, are 0 here: eps of both functions.
"""

import os
import sys

import torch
import torch.nn.functional as F
from performer_pytorch.performer_pytorch import (causal_linear_attention_noncuda, gaussian_orthogonal_random_matrix,
                                                 linear_attention, softmax_kernel)

import make_transformer as base

FEATURES = 20
# Kinds: (what stands in the description, trained, whether features are those of the softmax kernel)
KINDS = {"W": ("mixer: linear_attention", True, False), "X": ("mixer: linear_attention", False, False)}
CASES = {
    "linear_post": ("post", "none", "W X1 W X1", "W X W1 W1"),
    "linear_pre": ("pre", "all", "X W1 L W1", "X1 W X1"),
}
base.CASES.update(CASES)
base.TRAINED += "".join(kind for kind, (_, trained, _) in KINDS.items() if trained)


class Case(base.Case):
    def __init__(self, name):
        super().__init__(name)
        for kind, (text, trained, _) in KINDS.items():
            self.config += f"  {kind}: {{ {text}, heads: {base.HEADS}, ffn: {base.FFN}"
            self.config += " }\n" if trained else ", frozen: yes }\n"

    def make_layer(self, side, kind, name):
        super().make_layer(side, kind, name)
        if kind in KINDS and KINDS[kind][2]:
            torch.manual_seed(len(self.weights))
            own = f"{name}.self_attn.features.weight"
            self.weights[own] = gaussian_orthogonal_random_matrix(FEATURES, base.D // base.HEADS)
            self.trained[own] = False


class Network(base.Network):
    def layer(self, x, name, kind, *rest):
        self.now = (kind, name)
        return super().layer(x, name, kind, *rest)

    def attention(self, query, key, weight, bias, out, padding, causal):
        kind, name = self.now
        if query is not key or kind not in KINDS:
            return super().attention(query, key, weight, bias, out, padding, causal)
        result = torch.zeros_like(query)
        for i, rows in enumerate((~padding).sum(dim=1).tolist()):
            qkv = F.linear(query[i, :rows], weight, bias)
            q, k, v = (t.unflatten(1, (base.HEADS, -1)).transpose(0, 1)[None] for t in qkv.chunk(3, dim=1))
            if KINDS[kind][2]:
                features = self.w[f"{name}.self_attn.features.weight"]
                q, k = (softmax_kernel(t, projection_matrix=features, is_query=first, eps=0.0)
                        for t, first in ((q, True), (k, False)))
            else:
                q, k = F.elu(q) + 1, F.elu(k) + 1
            y = causal_linear_attention_noncuda(q, k, v, eps=0.0) if causal else linear_attention(q, k, v)
            y = self.linear(y[0].transpose(0, 1).flatten(1), out)
            result = torch.cat([result[:i], F.pad(y, (0, 0, 0, query.shape[1] - rows))[None], result[i + 1:]])
        return result


if __name__ == "__main__":
    base.Case, base.Network = Case, Network
    for case_name in sys.argv[1:] or CASES:
        base.make(case_name, os.path.dirname(os.path.abspath(__file__)))
