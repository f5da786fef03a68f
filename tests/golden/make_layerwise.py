#!/usr/bin/env python3
"""Makes layerwise_*.safetensors for test_golden.c: loss and gradients of models whose Linformer layers share one
projection of keys and values over the tokens (Wang et al. 2020: layerwise sharing), trained or frozen.

    python3 tests/golden/make_layerwise.py     (needs torch, safetensors, performer-pytorch and linformer)

Everything but that sharing is that of make_linear.py.
"""

import os

import make_linear as linear
import make_transformer as base

TABLES = {"e": "encoder.shared.e.tokens.weight", "f": "encoder.shared.f.tokens.weight"}  # f is frozen
CASES = {"layerwise_post": ("post", "none", "e f e1 f e1", "L"), "layerwise_pre": ("pre", "decoder", "e1 L e f e1", "L")}
for kind, trained in (("e", True), ("f", False)):
    text = f"mixer: linformer, rows: {linear.ROWS}, tokens: {linear.TOKENS}, sharing: layerwise"
    linear.KINDS[kind] = (text, trained, "key_value")
base.CASES.update(CASES)
linear.CASES.update(CASES)
base.TRAINED += "e"


class Case(linear.Case):
    def make_layer(self, side, kind, name):
        super().make_layer(side, kind, name)
        own = f"{name}.self_attn.tokens.weight"
        if kind in TABLES:
            shape, trained = self.weights.pop(own).shape, self.trained.pop(own)
            self.add(TABLES[kind], trained, *shape, scale=0.25)


class Network(linear.Network):
    def mixed(self, q, k, v, name, form, causal):
        if self.now[0] in TABLES:
            self.w[f"{name}.self_attn.tokens.weight"] = self.w[TABLES[self.now[0]]]
        return super().mixed(q, k, v, name, form, causal)

    def run(self, batch):
        loss, nll, gradients = super().run(batch)
        return loss, nll, {name: gradient for name, gradient in gradients.items() if name in self.case.weights}


if __name__ == "__main__":
    base.Case, base.Network = Case, Network
    for case_name in CASES:
        base.make(case_name, os.path.dirname(os.path.abspath(__file__)))
