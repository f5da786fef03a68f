#!/usr/bin/env python3
"""Makes transparent_*.safetensors and branched_*.safetensors for test_golden.c: loss and gradients of models with
Transparent attention (Bapna et al. 2018) and with the branches of a Weighted Transformer (Ahmed et al. 2018), from the
papers' equations.

    python3 tests/golden/make_transparent.py     (needs torch and safetensors; writes *.safetensors into its folder)

Format and layers are those of make_transformer.py.
"""

import os
import sys

import torch
import torch.nn.functional as F

import make_transformer as base
from make_transformer import D, HEADS

WIDTH = 20  # of a branch
BRANCHED = "BW"  # W is frozen
base.CASES |= {"transparent_post": ("post", "decoder", "L R L1 L1", "L L1 L1"),
               "transparent_pre": ("pre", "none", "L L R", "L R L"),
               "branched_post": ("post", "all", "B W L B", "B1 W B1"),
               "branched_pre": ("pre", "none", "B1 W B1", "B L")}
base.TRAINED += "B"
base.FIRST_SEEDS["branched_pre"] = 5  # as there, tarn rounds other sums to bf16 than PyTorch
NAMES = ("transparent_post", "transparent_pre", "branched_post", "branched_pre")


class Case(base.Case):
    def __init__(self, name):
        super().__init__(name)
        self.transparent = name.startswith("transparent")
        if self.transparent:
            self.config = self.config.replace("decoder: { layers:", "decoder: { transparent_attention: yes, layers:")
            for j in range(len(self.decoder)):
                self.add(f"decoder.transparent.layer{j + 1}", True, 1, len(self.encoder) + 1, scale=1.0)
        else:
            for kind, frozen in (("B", "no"), ("W", "yes")):
                self.config += (f"  {kind}: {{ mixer: branched_attention, heads: {HEADS}, branch_ffn: {WIDTH}, "
                                f"ffn: 0, frozen: {frozen} }}\n")

    def order(self, kind):
        return self.norm if kind in BRANCHED else super().order(kind)

    def make_layer(self, side, kind, name):
        if kind not in BRANCHED:
            return super().make_layer(side, kind, name)
        trained = kind in base.TRAINED
        own = f"{name}.self_attn"
        self.make_linear(f"{own}.qkv", trained, 3 * D, D, 1.5)
        for i in range(HEADS):
            self.make_linear(f"{own}.branch{i + 1}.out", trained, D, D // HEADS, 2.0)
            self.make_linear(f"{own}.branch{i + 1}.ffn_in", trained, WIDTH, D, 2.0)
            self.make_linear(f"{own}.branch{i + 1}.ffn_out", trained, D, WIDTH, 2.0)
        self.add(f"{own}.kappa", trained, 1, HEADS, scale=0.7)
        self.add(f"{own}.alpha", trained, 1, HEADS, scale=0.7)
        self.make_norm(f"{own}.norm", trained)
        if side == "decoder":
            self.make_linear(f"{name}.cross_attn.q", trained, D, D, 1.5)
            self.make_linear(f"{name}.cross_attn.kv", trained, 2 * D, D)
            self.make_linear(f"{name}.cross_attn.out", trained, D, D)
            self.make_norm(f"{name}.cross_attn.norm", trained)


class Network(base.Network):
    def branches(self, x, own, padding, causal):
        length = x.shape[1]
        hidden = padding[:, None, :].expand(-1, length, -1)
        if causal:
            hidden = hidden | torch.triu(torch.ones(length, length, dtype=torch.bool), 1)
        q, k, v = self.linear(x, f"{own}.qkv").chunk(3, dim=-1)
        kappa, alpha = (torch.softmax(self.w[f"{own}.{name}"][0], dim=0) for name in ("kappa", "alpha"))
        total = 0.0
        for i in range(HEADS):
            at = slice(i * D // HEADS, (i + 1) * D // HEADS)
            scores = (q[..., at] @ k[..., at].transpose(1, 2) / (D // HEADS)**0.5).masked_fill(hidden, -torch.inf)
            head = torch.softmax(scores, dim=-1) @ v[..., at]
            branch = f"{own}.branch{i + 1}"
            inner = F.relu(self.linear(kappa[i] * self.linear(head, f"{branch}.out"), f"{branch}.ffn_in"))
            total = total + alpha[i] * self.linear(inner, f"{branch}.ffn_out")
        return total

    def layer(self, x, name, kind, padding, memory=None, memory_padding=None):
        if memory is not None and self.case.transparent:
            memory = self.memories[self.layer_number]
            self.layer_number += 1
        if kind not in BRANCHED:
            return super().layer(x, name, kind, padding, memory, memory_padding)
        own, order = f"{name}.self_attn", self.case.order(kind)
        x = self.sublayer(x, own, order, lambda h: self.branches(h, own, padding, memory is not None))
        if memory is None:
            return x
        cross = f"{name}.cross_attn"
        weight = torch.cat([self.w[f"{cross}.q.weight"], self.w[f"{cross}.kv.weight"]])
        bias = torch.cat([self.w[f"{cross}.q.bias"][0], self.w[f"{cross}.kv.bias"][0]])
        return self.sublayer(x, cross, order, lambda h: self.attention(
            h, memory, weight, bias, f"{cross}.out", memory_padding, False))

    def stack(self, x, side, layers, *masks):
        self.layer_number = 0
        if not self.case.transparent or side == "decoder":
            return super().stack(x, side, layers, *masks)
        outputs = [x]
        for kind, set_name in layers:
            x = self.layer(x, f"{side}.{set_name}", kind, *masks)
            outputs.append(x)
        self.memories = []
        for j in range(len(self.case.decoder)):
            shares = torch.softmax(self.w[f"decoder.transparent.layer{j + 1}"][0], dim=0)
            memory = sum(share * h for share, h in zip(shares, outputs))
            pre = self.case.order(layers[-1][0]) == "pre"
            self.memories.append(self.layer_norm(memory, f"{side}.norm") if pre else memory)
        return x


if __name__ == "__main__":
    base.Case, base.Network = Case, Network
    for case_name in sys.argv[1:] or NAMES:
        base.make(case_name, os.path.dirname(os.path.abspath(__file__)))
