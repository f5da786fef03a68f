#!/usr/bin/env python3
"""Makes swish_*.safetensors for test_golden.c: loss and gradients of models whose feed-forward networks have Swish with
beta (Ramachandran et al. 2017), constant or learned, alone or as a gate.

    python3 tests/golden/make_swish.py     (needs torch and safetensors)

Swish is the published equation; all else, and the form of the files, is that of make_transformer.py.
"""
import os

import make_transformer as base
import torch

# Kinds: (what stands in the description, inner width, whether there is a gate, beta, whether it is learned)
KINDS = {
    "A": ("{ width: 40, activation: { type: swish_beta, beta: 1.75, learned: no } }", 40, False, 1.75, False),
    "D": ("{ width: 48, activation: swish_beta }", 48, False, 1.0, True),
    "E": ("{ type: swiglu, width: 24, beta: 0.5, learned: yes }", 24, True, 0.5, True),
    "H": ("{ type: swiglu, width: 24, beta: 2.5 }", 24, True, 2.5, False),
    "K": ("{ width: 48, activation: { type: swish_beta, beta: 3 } }", 48, False, 3.0, True),
}
CASES = {"swish_post": ("post", "none", "A D1 K D1", "E H"), "swish_pre": ("pre", "decoder", "D E1 L E1 K", "A E")}
FROZEN = "K"


class Case(base.Case):
    def __init__(self, name):
        base.CASES[name] = CASES[name]
        super().__init__(name)
        for kind, (text, *_) in KINDS.items():
            frozen = "yes" if kind in FROZEN else "no"
            self.config += f"  {kind}: {{ mixer: attention, heads: {base.HEADS}, ffn: {text}, frozen: {frozen} }}\n"

    def make_layer(self, side, kind, name):
        super().make_layer(side, kind, name)
        if kind in KINDS and KINDS[kind][4]:
            self.add(f"{name}.ffn.beta", kind not in FROZEN, 1, 1, scale=0.0, mean=KINDS[kind][3])


class Network(base.Network):
    def channels(self, x, name, kind):
        if kind not in KINDS:
            return super().channels(x, name, kind)
        _, width, gated, beta, learned = KINDS[kind]
        beta = self.w[f"{name}.beta"][0, 0] if learned else beta
        hidden = self.linear(x, f"{name}.in")
        right = hidden[..., width:] if gated else hidden
        swish = right * torch.sigmoid(beta * right)
        return self.linear(hidden[..., :width] * swish if gated else swish, f"{name}.out")


base.TRAINED = "L" + "".join(kind for kind in KINDS if kind not in FROZEN)
base.CHANNELS = {kind: (text, width, gated, None) for kind, (text, width, gated, *_) in KINDS.items()}
base.Case, base.Network = Case, Network
if __name__ == "__main__":
    for case_name in CASES:
        base.make(case_name, os.path.dirname(os.path.abspath(__file__)))
