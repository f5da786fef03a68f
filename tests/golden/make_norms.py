#!/usr/bin/env python3
"""Makes the golden files of test_golden.c for norms and what stands on branches: ScaleNorm, ReZero alone and with norms,
B2T, DeepNorm and Fixup, trained, frozen, and with frozen matrices alone, between encoder and decoder of unequal depths.

    python3 tests/golden/make_norms.py [CASE...]  (needs torch and safetensors; writes *.safetensors into its folder)

There is no package of them all, so the published equations are written down here, with PyTorch's own norms:
    ScaleNorm   y = g x / |x|                                                    (Nguyen and Salazar 2019, equation 5)
    ReZero      y = x + a f(x)                                                   (Bachlechner et al. 2020, equation 2)
    B2T         the input of a layer is added to what its last norm reads        (Takase et al. 2022, figure 2)
    DeepNorm    y = LN(alpha x + f(x)), alpha by the depths of both stacks       (Wang et al. 2022, figure 2)
    Fixup       y = x + a f(x + b)                                               (Zhang et al. 2019, figure 1)
The rest of the network, and what a file holds, is that of make_transformer.py.
"""

import os
import sys

import torch
import torch.nn.functional as F

import make_transformer as base

D, HEADS, FFN = base.D, base.HEADS, base.FFN

# A kind: (order of the norms, norm or None, whether there is a gate, what is frozen)
KINDS = {
    "S": ("pre", "scale", False, "no"), "P": ("post", "scale", False, "no"), "Q": ("post", "scale", False, "matrices"),
    "Z": ("none", None, True, "no"), "Y": ("pre", "rms", True, "no"), "X": ("pre", "layer", True, "no"),
    "W": ("post", "layer", True, "matrices"), "V": ("none", None, True, "matrices"), "T": ("none", None, True, "yes"),
    "B": ("b2t", "layer", False, "no"), "C": ("b2t", "rms", True, "matrices"), "E": ("b2t", "layer", False, "yes"),
    "N": ("deepnorm", "layer", False, "no"), "O": ("deepnorm", "scale", True, "matrices"),
    "M": ("deepnorm", "rms", False, "yes"),
    "U": ("fixup", None, False, "no"), "G": ("fixup", None, False, "matrices"), "H": ("fixup", None, False, "yes"),
}
# name: (embeddings, encoder pattern, decoder pattern)
CASES = {
    "norms_scale": ("none", "S P Q", "P S"),
    "norms_rezero": ("decoder", "Z Y V X", "X W Z1 Y Z1"),
    "norms_b2t": ("all", "B C1 E B C1", "B E C"),
    "norms_deepnorm": ("none", "N M N O N", "N M O"),
    "norms_fixup": ("decoder", "U G H", "U H G1 G1"),
}


class Case(base.Case):
    def __init__(self, name):
        self.embeddings, encoder, decoder = CASES[name]
        self.encoder, self.decoder = base.layer_sets(encoder), base.layer_sets(decoder)
        self.config = (
            f"model: {{ d_model: {D}, embeddings: {self.embeddings}, dropout: 0 }}\n"
            f"encoder: {{ layers: \"{encoder}\" }}\ndecoder: {{ layers: \"{decoder}\" }}\nkinds:\n")
        for kind in sorted(set(encoder + decoder) - set(" 1")):
            order, norm, gate, frozen = KINDS[kind]
            keys = f"norm: {order}, frozen: {frozen}"
            keys += f", norm_type: {norm}" if norm else ""
            keys += ", gate: scalar, gate_init: 0.5" if gate else ""
            self.config += f"  {kind}: {{ mixer: attention, heads: {HEADS}, ffn: {FFN}, {keys} }}\n"
        self.weights, self.sources, self.trained = {}, {}, {}
        joint = self.embeddings in ("all", "encoder_decoder", "encoder_output")
        self.vocab = (40, 40) if joint else (37, 41)
        self.make_embeddings()
        for side, layers in (("encoder", self.encoder), ("decoder", self.decoder)):
            for kind, set_name in layers:
                if f"{side}.{set_name}.ffn.in.weight" not in self.weights:
                    self.make_layer(side, kind, f"{side}.{set_name}")
            if self.order(layers[-1][0]) == "pre":
                self.make_own_norm(f"{side}.norm", KINDS[layers[-1][0]][1], True)

    def order(self, kind):
        return KINDS[kind][0]

    def make_own_norm(self, name, norm, trained):
        if norm == "scale":
            self.add(f"{name}.gain", trained, 1, 1, scale=0.3, mean=D**0.5)
        elif norm == "rms":
            self.add(f"{name}.gain", trained, 1, D, scale=0.1, mean=1.0)
        elif norm == "layer":
            self.make_norm(name, trained)

    def make_branch(self, name, kind, linears):
        order, norm, gate, frozen = KINDS[kind]
        vectors = frozen != "yes"
        for word, out, inputs, gain in linears:
            self.add(f"{name}.{word}.weight", frozen == "no", out, inputs, scale=gain * inputs**-0.5)
            self.add(f"{name}.{word}.bias", vectors, 1, out, scale=0.1)
        self.make_own_norm(f"{name}.norm", norm, vectors)
        if gate or order == "fixup":
            self.add(f"{name}.gate", vectors, 1, 1, scale=0.1, mean=0.4 if order == "fixup" else 0.7)
        if order == "fixup":
            self.add(f"{name}.shift", vectors, 1, 1, scale=0.3)

    def make_layer(self, side, kind, name):
        # Strong scores as in make_transformer.py, but not of a stream that no norm keeps small.
        gain = 0.7 if KINDS[kind][0] == "fixup" else 1.5
        self.make_branch(f"{name}.self_attn", kind, [("qkv", 3 * D, D, gain), ("out", D, D, 0.4)])
        if side == "decoder":
            self.make_branch(f"{name}.cross_attn", kind, [("q", D, D, gain), ("kv", 2 * D, D, 1.0), ("out", D, D, 1.0)])
        self.make_branch(f"{name}.ffn", kind, [("in", FFN, D, 1.0), ("out", D, FFN, 1.0)])


class Network(base.Network):
    def norm(self, x, name, norm):
        if norm == "scale":
            return self.w[f"{name}.gain"][0, 0] * x / (x.square().sum(-1, keepdim=True) + D * 1e-5).sqrt()
        if norm == "rms":
            return F.rms_norm(x, (D,), self.w[f"{name}.gain"][0], 1e-5)
        return self.layer_norm(x, name)

    def alpha(self, decoder):
        n, m = len(self.case.encoder), len(self.case.decoder)
        return (3 * m) ** 0.25 if decoder else 0.81 * (n**4 * m) ** (1 / 16)

    def branch(self, x, bottom, name, kind, decoder, function):
        """A sublayer; `bottom` is the input of its layer, where it is the last one."""
        order, norm, gate, _ = KINDS[kind]
        if order == "fixup":
            return x + self.w[f"{name}.gate"][0, 0] * function(x + self.w[f"{name}.shift"][0, 0])
        y = function(self.norm(x, f"{name}.norm", norm) if order == "pre" else x)
        if gate:
            y = self.w[f"{name}.gate"][0, 0] * y
        if order in ("pre", "none"):
            return x + y
        if order == "b2t" and bottom is not None:
            y = y + bottom
        return self.norm((self.alpha(decoder) if order == "deepnorm" else 1.0) * x + y, f"{name}.norm", norm)

    def layer(self, x, name, kind, padding, memory=None, memory_padding=None):
        decoder, bottom = memory is not None, x
        own, cross = f"{name}.self_attn", f"{name}.cross_attn"
        x = self.branch(x, None, own, kind, decoder, lambda h: self.attention(
            h, h, self.w[f"{own}.qkv.weight"], self.w[f"{own}.qkv.bias"][0], f"{own}.out", padding, decoder))
        if decoder:
            weight = torch.cat([self.w[f"{cross}.q.weight"], self.w[f"{cross}.kv.weight"]])
            bias = torch.cat([self.w[f"{cross}.q.bias"][0], self.w[f"{cross}.kv.bias"][0]])
            x = self.branch(x, None, cross, kind, decoder, lambda h: self.attention(
                h, memory, weight, bias, f"{cross}.out", memory_padding, False))
        return self.branch(x, bottom, f"{name}.ffn", kind, decoder, lambda h: self.linear(
            F.relu(self.linear(h, f"{name}.ffn.in")), f"{name}.ffn.out"))

    def stack(self, x, side, layers, *masks):
        for kind, set_name in layers:
            x = self.layer(x, f"{side}.{set_name}", kind, *masks)
        top = layers[-1][0]
        return self.norm(x, f"{side}.norm", KINDS[top][1]) if self.case.order(top) == "pre" else x


if __name__ == "__main__":
    base.Case, base.Network = Case, Network
    for case_name in sys.argv[1:] or CASES:
        base.make(case_name, os.path.dirname(os.path.abspath(__file__)))
