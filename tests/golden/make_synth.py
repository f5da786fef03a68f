#!/usr/bin/env python3
"""Makes the golden files of test_golden.c for HyperMixer and the Synthesizers, trained and frozen, alone and with
dot-product attention ("plus"), in encoder and decoder.

    python3 tests/golden/make_synth.py [CASE...]  (needs torch and safetensors; writes *.safetensors into its folder)

There is no package of them with these shapes, so the published equations are written down here, sentence by sentence:
    HyperMixer   W1, W2 = MLP1(x + p), MLP2(x + p); y = LN(W2 gelu(W1^T x))        (Mai et al. 2023, equations 1 to 4)
    dense        B = W2 relu(W1 x), y = softmax(B) G(x)                            (Tay et al. 2021, section 3.1)
    random       y = softmax(R) G(x)                                               (section 3.2)
    factorised   B = tile(A) * repeat(B); R = R1 R2^T                              (section 3.3)
    plus         y = softmax(a1 B + a2 Q K^T / sqrt(d)) G(x), a = softmax(m)       (section 3.4)
The rest of the network, and what a file holds, is that of make_transformer.py.
"""

import os
import sys

import torch
import torch.nn.functional as F

import make_transformer as base

D, HEADS, FFN = base.D, base.HEADS, base.FFN
LONGEST, HIDDEN, RANK, LEFT, RIGHT, MIXED = 17, 24, 3, 5, 4, 10

# A kind: (mixer, its keys, frozen)
KINDS = {
    "H": ("hypermixer", f"hidden: {MIXED}", "no"),
    "T": ("hypermixer", f"hidden: {MIXED}, tied: yes", "no"),
    "J": ("hypermixer", f"hidden: {MIXED}, token_positions: no, mixed_norm: no", "yes"),
    "D": ("synthesizer_dense", f"hidden: {HIDDEN // HEADS}", "no"),
    "E": ("synthesizer_dense", f"hidden: {HIDDEN // HEADS}, plus: yes", "no"),
    "G": ("synthesizer_dense", f"hidden: {HIDDEN // HEADS}, plus: yes", "yes"),
    "R": ("synthesizer_random", "", "no"),
    "S": ("synthesizer_random", "plus: yes, fixed: yes", "no"),
    "A": ("synthesizer_factorised_dense", f"hidden: {HIDDEN // HEADS}, factor: {LEFT}", "no"),
    "B": ("synthesizer_factorised_dense", f"hidden: {HIDDEN // HEADS}, factor: {LEFT}, plus: yes", "no"),
    "K": ("synthesizer_factorised_random", f"rank: {RANK}", "no"),
    "M": ("synthesizer_factorised_random", f"rank: {RANK}, plus: yes", "no"),
}
# name: (norm, embeddings, encoder pattern, decoder pattern)
CASES = {
    "synth_post": ("post", "none", "H R1 A R1", "E S M"),
    "synth_pre": ("pre", "all", "T J E B1 M B1", "D1 R A K D1 G"),
}


class Case(base.Case):
    def __init__(self, name):
        self.norm, self.embeddings, encoder, decoder = CASES[name]
        self.encoder, self.decoder = base.layer_sets(encoder), base.layer_sets(decoder)
        self.config = (
            f"model: {{ d_model: {D}, norm: {self.norm}, embeddings: {self.embeddings}, dropout: 0, "
            f"max_length: {LONGEST} }}\n"
            f"encoder: {{ layers: \"{encoder}\" }}\ndecoder: {{ layers: \"{decoder}\" }}\nkinds:\n")
        for kind in sorted(set(encoder + decoder) - set(" 1")):
            mixer, keys, frozen = KINDS[kind]
            heads = "" if mixer == "hypermixer" else f"heads: {HEADS}, "
            self.config += f"  {kind}: {{ mixer: {mixer}, {heads}{keys + ', ' if keys else ''}ffn: {FFN}, "
            self.config += f"frozen: {frozen} }}\n"
        self.weights, self.sources, self.trained = {}, {}, {}
        self.vocab = (40, 40) if self.embeddings == "all" else (37, 41)
        self.make_embeddings()
        for side, layers in (("encoder", self.encoder), ("decoder", self.decoder)):
            for kind, set_name in layers:
                if f"{side}.{set_name}.ffn.in.weight" not in self.weights:
                    self.make_layer(side, kind, f"{side}.{set_name}")
            if self.norm == "pre":
                self.make_norm(f"{side}.norm", True)

    def make_hyper(self, name, keys, trained):
        for network in ("first",) if "tied" in keys else ("first", "second"):
            self.add(f"{name}.{network}.in.weight", trained, D, D, scale=D**-0.5)
            self.add(f"{name}.{network}.out.weight", trained, MIXED, D, scale=0.7 * D**-0.5)
        if "token_positions" not in keys:
            self.add(f"{name}.positions.weight", trained, LONGEST, D, scale=0.7)
        if "mixed_norm" not in keys:
            self.make_norm(f"{name}.mixed_norm", trained)

    def make_synthesizer(self, name, mixer, keys, trained):
        plus, random = "plus" in keys, trained and "fixed" not in keys
        if mixer.endswith("dense"):
            self.make_linear(f"{name}.token", trained, HIDDEN, D)
        if mixer == "synthesizer_dense":
            self.make_linear(f"{name}.logits", trained, HEADS * LONGEST, HIDDEN // HEADS, 1.5)
        elif mixer == "synthesizer_random":
            self.add(f"{name}.logits.weight", random, HEADS * LONGEST, LONGEST, scale=1.0)
        elif mixer == "synthesizer_factorised_dense":
            self.make_linear(f"{name}.factors", trained, HEADS * (LEFT + RIGHT), HIDDEN, 2.0)
        else:
            self.add(f"{name}.rows.weight", random, LONGEST, HEADS * RANK, scale=1.0)
            self.add(f"{name}.columns.weight", random, HEADS * LONGEST, RANK, scale=1.0)
        self.make_linear(f"{name}.qkv" if plus else f"{name}.value", trained, (3 if plus else 1) * D, D, 1.5)
        if plus:
            self.add(f"{name}.mix.bias", trained, 1, 2, scale=0.5)
        self.make_linear(f"{name}.out", trained, D, D)

    def make_layer(self, side, kind, name):
        mixer, keys, frozen = KINDS[kind]
        trained = frozen == "no"
        if mixer == "hypermixer":
            self.make_hyper(f"{name}.hyper", keys, trained)
            self.make_norm(f"{name}.hyper.norm", trained)
        else:
            self.make_synthesizer(f"{name}.synthesizer", mixer, keys, trained)
            self.make_norm(f"{name}.synthesizer.norm", trained)
        if side == "decoder":
            self.make_linear(f"{name}.cross_attn.q", trained, D, D, 1.5)
            self.make_linear(f"{name}.cross_attn.kv", trained, 2 * D, D)
            self.make_linear(f"{name}.cross_attn.out", trained, D, D)
            self.make_norm(f"{name}.cross_attn.norm", trained)
        self.make_linear(f"{name}.ffn.in", trained, FFN, D)
        self.make_linear(f"{name}.ffn.out", trained, D, FFN)
        self.make_norm(f"{name}.ffn.norm", trained)


class Network(base.Network):
    def hyper(self, x, name, keys):
        """One sentence [n, D]."""
        read = x if "token_positions" in keys else x + self.w[f"{name}.positions.weight"][:len(x)]

        def network(which):
            return F.gelu(read @ self.w[f"{name}.{which}.in.weight"].T) @ self.w[f"{name}.{which}.out.weight"].T

        first = network("first")
        second = first if "tied" in keys else network("second")
        y = second @ F.gelu(first.T @ x)
        return y if "mixed_norm" in keys else self.layer_norm(y, f"{name}.mixed_norm")

    def logits(self, x, name, mixer):
        """[HEADS, n, n] of one sentence."""
        n = len(x)
        if mixer == "synthesizer_random":
            return self.w[f"{name}.logits.weight"].view(HEADS, LONGEST, LONGEST)[:, :n, :n]
        if mixer == "synthesizer_factorised_random":
            rows = self.w[f"{name}.rows.weight"][:n].view(n, HEADS, RANK).transpose(0, 1)
            return rows @ self.w[f"{name}.columns.weight"].view(HEADS, LONGEST, RANK)[:, :n].transpose(1, 2)
        hidden = F.relu(self.linear(x, f"{name}.token"))
        if mixer == "synthesizer_dense":
            weight = self.w[f"{name}.logits.weight"].view(HEADS, LONGEST, HIDDEN // HEADS)
            bias = self.w[f"{name}.logits.bias"].view(HEADS, 1, LONGEST)
            return (hidden.view(n, HEADS, -1).transpose(0, 1) @ weight.transpose(1, 2) + bias)[:, :, :n]
        factors = self.linear(hidden, f"{name}.factors").view(n, HEADS, LEFT + RIGHT).transpose(0, 1)
        left, right = factors.split([LEFT, RIGHT], dim=2)
        return (left.repeat(1, 1, RIGHT) * right.repeat_interleave(LEFT, dim=2))[:, :, :n]

    def synthesizer(self, x, name, mixer, keys, causal):
        n = len(x)
        scores = self.logits(x, name, mixer)

        def heads(y):
            return y.view(n, HEADS, D // HEADS).transpose(0, 1)

        if "plus" in keys:
            q, k, value = (heads(y) for y in self.linear(x, f"{name}.qkv").split(D, dim=1))
            share = torch.softmax(self.w[f"{name}.mix.bias"][0], dim=0)
            scores = share[0] * scores + share[1] * (q @ k.transpose(1, 2)) / (D // HEADS)**0.5
        else:
            value = heads(self.linear(x, f"{name}.value"))
        if causal:
            scores = scores.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), -torch.inf)
        y = torch.softmax(scores, dim=2) @ value
        return self.linear(y.transpose(0, 1).reshape(n, D), f"{name}.out")

    def mix(self, x, name, kind, padding, causal):
        mixer, keys, _ = KINDS[kind]
        lengths = (~padding).sum(dim=1).tolist()
        sentences = [x[s, :n] for s, n in enumerate(lengths)]
        if mixer == "hypermixer":
            mixed = [self.hyper(sentence, name, keys) for sentence in sentences]
        else:
            mixed = [self.synthesizer(sentence, name, mixer, keys, causal) for sentence in sentences]
        padded = torch.nn.utils.rnn.pad_sequence(mixed, batch_first=True)
        return F.pad(padded, (0, 0, 0, x.shape[1] - padded.shape[1]))

    def layer(self, x, name, kind, padding, memory=None, memory_padding=None):
        order = self.case.norm
        own = f"{name}.hyper" if KINDS[kind][0] == "hypermixer" else f"{name}.synthesizer"
        x = self.sublayer(x, own, order, lambda h: self.mix(h, own, kind, padding, memory is not None))
        if memory is not None:
            cross = f"{name}.cross_attn"
            weight = torch.cat([self.w[f"{cross}.q.weight"], self.w[f"{cross}.kv.weight"]])
            bias = torch.cat([self.w[f"{cross}.q.bias"][0], self.w[f"{cross}.kv.bias"][0]])
            x = self.sublayer(x, cross, order, lambda h: self.attention(
                h, memory, weight, bias, f"{cross}.out", memory_padding, False))
        return self.sublayer(x, f"{name}.ffn", order, lambda h: self.linear(
            F.relu(self.linear(h, f"{name}.ffn.in")), f"{name}.ffn.out"))


if __name__ == "__main__":
    base.Case, base.Network = Case, Network
    for case_name in sys.argv[1:] or CASES:
        base.make(case_name, os.path.dirname(os.path.abspath(__file__)))
