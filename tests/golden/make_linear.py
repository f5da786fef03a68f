#!/usr/bin/env python3
"""Makes golden files of test_golden.c for linear attention, Performer and Linformer.

    python3 tests/golden/make_linear.py [CASE...]  (needs torch, safetensors, performer-pytorch and linformer)

The network and the files are those of make_transformer.py. Self-attention is that of performer-pytorch, sentence by
sentence: its linear_attention() and, in the decoder, causal_linear_attention_noncuda(), on the features elu + 1
(Katharopoulos et al. 2020) or its softmax_kernel() (Choromanski et al. 2021). The numbers that the package adds for
safety, and which the published equations do not have, are 0 here: eps of both functions. Linformer's is that of the
package linformer, head by head, with tables that are apart or the same as `sharing` says.
"""

import os
import sys

import torch
import torch.nn.functional as F
from linformer import LinformerSelfAttention
from performer_pytorch.performer_pytorch import (causal_linear_attention_noncuda, gaussian_orthogonal_random_matrix,
                                                 linear_attention, softmax_kernel)

import make_transformer as base

FEATURES, ROWS, TOKENS = 20, 6, 24
# Kinds: (what stands in the description, trained, what of the above)
KINDS = {
    "W": ("mixer: linear_attention", True, "elu"),
    "X": ("mixer: linear_attention", False, "elu"),
    "p": (f"mixer: performer, features: {FEATURES}", True, "softmax"),
    "q": (f"mixer: performer, features: {FEATURES}", False, "softmax"),
    "a": (f"mixer: linformer, rows: {ROWS}, tokens: {TOKENS}", True, "headwise"),
    "b": (f"mixer: linformer, rows: {ROWS}, tokens: {TOKENS}, sharing: key_value", True, "key_value"),
    "c": (f"mixer: linformer, rows: {ROWS}, tokens: {TOKENS}, sharing: none", True, "none"),
    "d": (f"mixer: linformer, rows: {ROWS}, tokens: {TOKENS}", False, "headwise"),
}
TABLES = {"headwise": 2, "key_value": 1, "none": 2 * base.HEADS}
CASES = {
    "linear_post": ("post", "none", "W X1 W X1", "W X W1 W1"),
    "linear_pre": ("pre", "all", "X W1 L W1", "X1 W X1"),
    "performer_post": ("post", "none", "p q1 p q1", "p q p1 p1"),
    "performer_pre": ("pre", "all", "q p1 L p1", "q1 p q1"),
    "linformer_post": ("post", "none", "a d1 b", "L"),
    "linformer_pre": ("pre", "all", "c1 b a1 L c1 a1", "L"),
}
base.CASES.update(CASES)
base.TRAINED += "".join(kind for kind, (_, trained, _) in KINDS.items() if trained)


class Case(base.Case):
    def __init__(self, name):
        super().__init__(name)
        self.config = self.config.replace("model: {", f"model: {{ max_length: {TOKENS},")
        for kind, (text, trained, _) in KINDS.items():
            if kind not in CASES[name][2] + CASES[name][3]:
                continue
            self.config += f"  {kind}: {{ {text}, heads: {base.HEADS}, ffn: {base.FFN}"
            self.config += " }\n" if trained else ", frozen: yes }\n"

    def make_layer(self, side, kind, name):
        super().make_layer(side, kind, name)
        form = KINDS[kind][2] if kind in KINDS else None
        if form in TABLES:
            self.add(f"{name}.self_attn.tokens.weight", kind in base.TRAINED, TOKENS, TABLES[form] * ROWS, scale=0.25)
        if form == "softmax":
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
        results = []
        for i, rows in enumerate((~padding).sum(dim=1).tolist()):
            qkv = F.linear(query[i, :rows], weight, bias)
            q, k, v = (t.unflatten(1, (base.HEADS, -1)).transpose(0, 1)[None] for t in qkv.chunk(3, dim=1))
            y = self.mixed(q, k, v, name, KINDS[kind][2], causal)[0].transpose(0, 1).flatten(1)
            results.append(F.pad(self.linear(y, out), (0, 0, 0, query.shape[1] - rows)))
        return torch.stack(results)

    def mixed(self, q, k, v, name, form, causal):
        """Of one sentence, all [1, heads, rows, columns of a head]."""
        if form in TABLES:
            parts = self.w[f"{name}.self_attn.tokens.weight"].split(ROWS, dim=1)
            tables = {"headwise": lambda h: parts, "key_value": lambda h: parts * 2,
                      "none": lambda h: (parts[h], parts[base.HEADS + h])}[form]
            return torch.stack([self.linformer(q[0, h], k[0, h], v[0, h], *tables(h))
                                for h in range(base.HEADS)])[None]
        if form == "softmax":
            features = self.w[f"{name}.self_attn.features.weight"]
            q, k = (softmax_kernel(t, projection_matrix=features, is_query=first, eps=0.0)
                    for t, first in ((q, True), (k, False)))
        else:
            q, k = F.elu(q) + 1, F.elu(k) + 1
        return causal_linear_attention_noncuda(q, k, v, eps=0.0) if causal else linear_attention(q, k, v)

    def linformer(self, q, k, v, keys, values):
        """One head [rows, columns] with its tables."""
        module = LinformerSelfAttention(q.shape[1], TOKENS, k=ROWS, heads=1)
        del module.to_q, module.to_k, module.to_v, module.to_out, module.proj_k, module.proj_v
        module.to_q, module.to_k, module.to_v = lambda x: q[None], lambda x: k[None], lambda x: v[None]
        module.to_out, module.proj_k, module.proj_v = lambda x: x, keys, values
        return module(q[None])[0]


if __name__ == "__main__":
    base.Case, base.Network = Case, Network
    for case_name in sys.argv[1:] or CASES:
        base.make(case_name, os.path.dirname(os.path.abspath(__file__)))
