#!/usr/bin/env python3
"""Makes head_width_*.safetensors for test_golden.c: loss and gradients of models whose attention has heads of another
width than d_model / heads, as T5's have (d_kv).

    python3 tests/golden/make_head_width.py     (needs torch and safetensors; writes *.safetensors into its folder)

Attention is PyTorch's scaled_dot_product_attention; all else, and the form of the files, is that of make_transformer.py.
"""

import os
import sys

import torch
import torch.nn.functional as F

import make_transformer as base
from make_transformer import D, FFN

# kind: (heads, heads of keys and values, width of a head)
WIDTHS = {"W": (3, 3, 5), "X": (4, 2, 12), "Y": (2, 2, 24)}  # Y is frozen
base.CASES |= {"head_width_post": ("post", "all", "L W X1 X1", "X W1 W1"),
               "head_width_pre": ("pre", "none", "W Y X", "Y X L W")}
base.TRAINED = "LWX"
NAMES = ("head_width_post", "head_width_pre")


class Case(base.Case):
    def __init__(self, name):
        super().__init__(name)
        for kind, (heads, kv_heads, width) in WIDTHS.items():
            self.config += (f"  {kind}: {{ mixer: attention, heads: {heads}, kv_heads: {kv_heads}, head_width: {width}, "
                            f"ffn: {FFN}, frozen: {'no' if kind in base.TRAINED else 'yes'} }}\n")

    def make_layer(self, side, kind, name):
        if kind not in WIDTHS:
            super().make_layer(side, kind, name)
            return
        trained = kind in base.TRAINED
        heads, kv_heads, width = WIDTHS[kind]
        inner, kv = heads * width, kv_heads * width
        own, cross = f"{name}.self_attn", f"{name}.cross_attn"
        if kv == inner:
            self.make_linear(f"{own}.qkv", trained, 3 * inner, D, 1.5)
        else:
            self.make_linear(f"{own}.q", trained, inner, D, 1.5)
            self.make_linear(f"{own}.kv", trained, 2 * kv, D, 1.5)
        self.make_linear(f"{own}.out", trained, D, inner, 0.4)
        self.make_norm(f"{own}.norm", trained)
        if side == "decoder":
            self.make_linear(f"{cross}.q", trained, inner, D, 1.5)
            self.make_linear(f"{cross}.kv", trained, 2 * kv, D)
            self.make_linear(f"{cross}.out", trained, D, inner)
            self.make_norm(f"{cross}.norm", trained)
        self.make_linear(f"{name}.ffn.in", trained, FFN, D)
        self.make_linear(f"{name}.ffn.out", trained, D, FFN)
        self.make_norm(f"{name}.ffn.norm", trained)


class Network(base.Network):
    def attend(self, name, kind, queries, keys, padding, causal):
        heads, kv_heads, width = WIDTHS[kind]
        if f"{name}.qkv.weight" in self.w:
            q, k, v = self.linear(queries, f"{name}.qkv").chunk(3, dim=2)
        else:
            q = self.linear(queries, f"{name}.q")
            k, v = self.linear(keys, f"{name}.kv").chunk(2, dim=2)
        q, k, v = (t.unflatten(2, (-1, width)).transpose(1, 2) for t in (q, k, v))
        seen = ~padding[:, None, None, :].expand(-1, heads, queries.shape[1], -1)
        if causal:
            seen = seen & torch.ones(queries.shape[1], keys.shape[1], dtype=torch.bool).tril()
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen, enable_gqa=True)
        return self.linear(y.transpose(1, 2).flatten(2), f"{name}.out")

    def layer(self, x, name, kind, padding, memory=None, memory_padding=None):
        if kind not in WIDTHS:
            return super().layer(x, name, kind, padding, memory, memory_padding)
        order, own, cross = self.case.order(kind), f"{name}.self_attn", f"{name}.cross_attn"
        x = self.sublayer(x, own, order, lambda h: self.attend(own, kind, h, h, padding, memory is not None))
        if memory is not None:
            x = self.sublayer(x, cross, order, lambda h: self.attend(cross, kind, h, memory, memory_padding, False))
        return self.sublayer(x, f"{name}.ffn", order, lambda h: self.channels(h, f"{name}.ffn", kind))


if __name__ == "__main__":
    base.Case, base.Network = Case, Network
    for case_name in sys.argv[1:] or NAMES:
        base.make(case_name, os.path.dirname(os.path.abspath(__file__)))
