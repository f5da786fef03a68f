#!/usr/bin/env python3
"""Makes evolved_*.safetensors for test_golden.c: loss and gradients of models of Evolved Transformer cells (So et al.
2019, arXiv 1901.11117), from the paper's figure.

    python3 tests/golden/make_evolved.py     (needs torch and safetensors; writes *.safetensors into its folder)

Format and layers are those of make_transformer.py. A cell of the encoder is the layers G B L, one of the decoder A B W;
H, C and E are the frozen forms of G, B and A.
"""

import os
import sys

import torch
import torch.nn.functional as F

import make_transformer as base
from make_transformer import D, HEADS

KINDS = {"G": "mixer: none, ffn: gated_linear",
         "H": "mixer: none, ffn: gated_linear, frozen: yes",
         "B": "mixer: evolved_conv, ffn: 0",
         "C": "mixer: evolved_conv, ffn: 0, frozen: yes",
         "A": f"mixer: evolved_attention, heads: {HEADS}, ffn: 0",
         "E": f"mixer: evolved_attention, heads: {HEADS}, ffn: 0, frozen: yes",
         "W": f"mixer: attention, heads: {HEADS}, ffn: {{ width: {base.FFN}, activation: swish }}"}
base.CASES |= {"evolved_pre": ("pre", "none", "G B L H C L", "A B W E C W"),
               "evolved_post": ("post", "all", "G C B1 L B1", "A C B1 E B1 W")}
base.CHANNELS["W"] = ("", base.FFN, False, F.silu)
# All trained kinds here; those of make_transformer.py include E, which is frozen here.
base.TRAINED = "LGBAW"
NAMES = ("evolved_pre", "evolved_post")


class Case(base.Case):
    def __init__(self, name):
        super().__init__(name)
        for kind, keys in KINDS.items():
            self.config += f"  {kind}: {{ {keys} }}\n"

    def order(self, kind):
        return "pre" if kind in "GH" else super().order(kind)

    def make_wide_norm(self, name, trained, width):
        self.add(f"{name}.gain", trained, 1, width, scale=0.1, mean=1.0)
        self.add(f"{name}.bias", trained, 1, width, scale=0.1)

    def make_kernel(self, name, trained, width, channels):
        self.add(name, trained, 1, width * channels, scale=width**-0.5)

    def make_layer(self, side, kind, name):
        trained = kind in base.TRAINED
        if kind in "GH":
            self.make_linear(f"{name}.ffn.in", trained, 2 * D, D)
            self.make_norm(f"{name}.ffn.norm", trained)
        elif kind in "BC":
            if f"{name}.{'conv' if side == 'encoder' else 'causal_conv'}.kernel" in self.weights:
                return  # a shared set, which base.Case knows by its FFN
            if side == "encoder":
                own = f"{name}.conv"
                self.make_linear(f"{own}.wide", trained, 4 * D, D)
                self.make_linear(f"{own}.narrow", trained, D // 2, 3 * D)
                self.make_wide_norm(f"{own}.mixed_norm", trained, 4 * D)
                self.make_kernel(f"{own}.kernel", trained, 9, 4 * D)
                self.make_linear(f"{own}.out", trained, D // 2, 4 * D)
            else:
                own = f"{name}.causal_conv"
                self.make_kernel(f"{own}.left_kernel", trained, 11, D)
                self.make_linear(f"{own}.left", trained, 2 * D, D)
                self.make_kernel(f"{own}.right_kernel", trained, 7, D)
                self.make_linear(f"{own}.right", trained, D // 2, D)
                self.make_wide_norm(f"{own}.mixed_norm", trained, 2 * D)
                self.make_kernel(f"{own}.kernel", trained, 7, 2 * D)
                self.make_linear(f"{own}.out", trained, D, 2 * D)
            self.make_norm(f"{own}.norm", trained)
        elif kind in "AE":
            self.make_linear(f"{name}.self_attn.qkv", trained, 3 * D, D, 1.5)
            self.make_linear(f"{name}.self_attn.out", trained, D, D, 0.4)
            self.make_linear(f"{name}.cross_attn.q", trained, D, D, 1.5)
            self.make_linear(f"{name}.cross_attn.kv", trained, 2 * D, D)
            self.make_linear(f"{name}.cross_attn.out", trained, D, D)
            self.make_norm(f"{name}.self_attn.norm", trained)
        else:
            super().make_layer(side, kind, name)


class Network(base.Network):
    def separable(self, x, kernel, name, width, causal):
        """A convolution with a kernel for each channel, and a projection. Rows of padding are zeros."""
        before = width - 1 if causal else width // 2
        padded = F.pad(x.transpose(1, 2), (before, width - 1 - before))
        channels = x.shape[-1]
        taps = self.w[kernel].view(width, channels).t()[:, None, :]
        return self.linear(F.conv1d(padded, taps, groups=channels).transpose(1, 2), name)

    def convolutions(self, x, name, padding, causal):
        hide = padding[:, :, None]
        x = x.masked_fill(hide, 0.0)
        if causal:
            own = f"{name}.causal_conv"
            wide = F.relu(self.separable(x, f"{own}.left_kernel", f"{own}.left", 11, True))
            narrow = self.separable(x, f"{own}.right_kernel", f"{own}.right", 7, True)
        else:
            own = f"{name}.conv"
            wide = F.relu(self.linear(x, f"{own}.wide"))
            taps = self.w[f"{own}.narrow.weight"].view(D // 2, 3, D).transpose(1, 2)
            narrow = F.conv1d(x.transpose(1, 2), taps, self.w[f"{own}.narrow.bias"][0], padding="same")
            narrow = F.relu(narrow.transpose(1, 2))
        mixed = wide + F.pad(narrow, (0, wide.shape[-1] - narrow.shape[-1]))
        norm = f"{own}.mixed_norm"
        mixed = F.layer_norm(mixed, mixed.shape[-1:], self.w[f"{norm}.gain"][0], self.w[f"{norm}.bias"][0], 1e-5)
        mixed = mixed.masked_fill(hide, 0.0)
        y = self.separable(mixed, f"{own}.kernel", f"{own}.out", 7 if causal else 9, causal)
        return F.pad(y, (0, D - y.shape[-1]))

    def heads(self, query, key, weight, bias, out, heads, padding, causal):
        """As base.Network.attention(), with any number of heads."""
        length = query.shape[1]
        mask = torch.triu(torch.ones(length, length, dtype=torch.bool), 1) if causal else None
        y, _ = F.multi_head_attention_forward(
            query.transpose(0, 1), key.transpose(0, 1), key.transpose(0, 1), D, heads, weight, bias, None, None, False,
            0.0, self.w[f"{out}.weight"], self.w[f"{out}.bias"][0], training=False, key_padding_mask=padding,
            need_weights=False, attn_mask=mask)
        return y.transpose(0, 1)

    def both(self, x, name, padding, memory, memory_padding):
        own, cross = f"{name}.self_attn", f"{name}.cross_attn"
        weight = torch.cat([self.w[f"{cross}.q.weight"], self.w[f"{cross}.kv.weight"]])
        bias = torch.cat([self.w[f"{cross}.q.bias"][0], self.w[f"{cross}.kv.bias"][0]])
        return (self.heads(x, x, self.w[f"{own}.qkv.weight"], self.w[f"{own}.qkv.bias"][0], f"{own}.out", 2 * HEADS,
                           padding, True)
                + self.heads(x, memory, weight, bias, f"{cross}.out", HEADS, memory_padding, False))

    def layer(self, x, name, kind, padding, memory=None, memory_padding=None):
        order = self.case.order(kind)
        if kind in "GH":
            return self.sublayer(x, f"{name}.ffn", order, lambda h: F.glu(self.linear(h, f"{name}.ffn.in"), dim=-1))
        if kind in "BC":
            causal = memory is not None
            own = f"{name}.{'causal_conv' if causal else 'conv'}"
            return self.sublayer(x, own, order, lambda h: self.convolutions(h, name, padding, causal))
        if kind in "AE":
            return self.sublayer(x, f"{name}.self_attn", order,
                                 lambda h: self.both(h, name, padding, memory, memory_padding))
        return super().layer(x, name, kind, padding, memory, memory_padding)


if __name__ == "__main__":
    base.Case, base.Network = Case, Network
    for case_name in sys.argv[1:] or NAMES:
        base.make(case_name, os.path.dirname(os.path.abspath(__file__)))
