#!/usr/bin/env python3
"""Makes shaw_*.safetensors for test_golden.c: loss and gradients of models with relative keys and values (Shaw et al.
2018).

    python3 tests/golden/make_relative.py     (needs torch, transformers and safetensors)

What queries have in common with relative keys is computed by the code of the transformers package's Wav2Vec2-BERT; the
relative values are the paper's equation (3), one vector for each pair of tokens. All else, and the form of the files,
is that of make_attention.py and make_transformer.py.
"""
import os
import types

import make_transformer as base
import torch
from make_transformer import D, FFN, HEADS
from transformers.models.wav2vec2_bert.modeling_wav2vec2_bert import _apply_relative_key_position_encoding

WIDTH = D // HEADS
KV_HEADS = {"W": 1, "X": 2}
CASES = {
    # name: (norm, embeddings, encoder pattern, decoder pattern, greatest distance, whether there are relative values);
    # sentences have up to 14 tokens; R is frozen, with its tables
    "shaw_post": ("post", "all", "L R X1 L X1", "L W R", 3, True),
    "shaw_pre": ("pre", "none", "X R L1 L1", "X1 L X1", 16, True),
    "shaw_keys": ("pre", "decoder", "L R", "W L", 5, False),
}


class Case(base.Case):
    def __init__(self, name):
        *description, self.reach, self.values = CASES[name]
        base.CASES[name] = tuple(description)
        super().__init__(name)
        values = "" if self.values else ", values: no"
        positions = f"{{ type: shaw, max_relative_position: {self.reach}{values} }}"
        self.config = self.config.replace("dropout: 0 }", f"dropout: 0, positions: {positions} }}")
        for kind, heads in KV_HEADS.items():
            self.config += f"  {kind}: {{ mixer: attention, heads: {HEADS}, kv_heads: {heads}, ffn: {FFN} }}\n"

    def make_layer(self, side, kind, name):
        super().make_layer(side, kind, name)
        trained = kind in base.TRAINED
        for table in ("relative_k", "relative_v")[:1 + self.values]:
            self.add(f"{name}.self_attn.{table}.weight", trained, 2 * self.reach + 1, WIDTH, scale=0.7)
        if kind not in KV_HEADS:
            return
        kv = WIDTH * KV_HEADS[kind]
        for part in ("weight", "bias"):
            del self.weights[f"{name}.self_attn.qkv.{part}"]
        self.make_linear(f"{name}.self_attn.q", True, D, D, 1.5)
        self.make_linear(f"{name}.self_attn.kv", True, 2 * kv, D, 1.5)
        if side == "decoder":
            self.make_linear(f"{name}.cross_attn.kv", True, 2 * kv, D)


class Network(base.Network):
    def embed(self, ids, table):
        return D**0.5 * torch.nn.functional.embedding(ids, self.w[self.case.tables[table]])

    def relative_scores(self, name, q):
        table = self.w[f"{name}.relative_k.weight"]
        module = types.SimpleNamespace(left_max_position_embeddings=self.case.reach,
                                       right_max_position_embeddings=self.case.reach, scaling=WIDTH**-0.5,
                                       distance_embedding=lambda ids: torch.nn.functional.embedding(ids, table))
        return _apply_relative_key_position_encoding(module, q, q)[1]

    def relative_values(self, name, weights):
        if not self.case.values:
            return 0.0
        length = weights.shape[-1]
        distance = torch.arange(length)[None, :] - torch.arange(length)[:, None]
        vectors = self.w[f"{name}.relative_v.weight"][distance.clamp(-self.case.reach, self.case.reach) +
                                                      self.case.reach]
        return (weights[..., None] * vectors).sum(dim=3)

    def attend(self, name, queries, keys, unseen, own):
        if f"{name}.qkv.weight" in self.w:
            q, k, v = self.linear(queries, f"{name}.qkv").chunk(3, dim=2)
        else:
            q = self.linear(queries, f"{name}.q")
            k, v = self.linear(keys, f"{name}.kv").chunk(2, dim=2)
        q, k, v = (t.unflatten(2, (-1, WIDTH)).transpose(1, 2) for t in (q, k, v))
        k, v = (t.repeat_interleave(HEADS // t.shape[1], dim=1) for t in (k, v))
        scores = q @ k.transpose(2, 3) * WIDTH**-0.5
        if own:
            scores = scores + self.relative_scores(name, q)
        weights = torch.softmax(scores.masked_fill(unseen, -torch.inf), dim=3)
        y = weights @ v
        if own:
            y = y + self.relative_values(name, weights)
        return self.linear(y.transpose(1, 2).flatten(2), f"{name}.out")

    def layer(self, x, name, kind, padding, memory=None, memory_padding=None):
        order, length = self.case.order(kind), x.shape[1]
        unseen = padding[:, None, None, :]
        if memory is not None:
            unseen = unseen | torch.ones(length, length, dtype=torch.bool).triu(1)
        own, cross = f"{name}.self_attn", f"{name}.cross_attn"
        x = self.sublayer(x, own, order, lambda h: self.attend(own, h, h, unseen, True))
        if memory is not None:
            far = memory_padding[:, None, None, :]
            x = self.sublayer(x, cross, order, lambda h: self.attend(cross, h, memory, far, False))
        return self.sublayer(x, f"{name}.ffn", order, lambda h: self.channels(h, f"{name}.ffn", kind))


base.TRAINED += "".join(KV_HEADS)
base.Case, base.Network = Case, Network
if __name__ == "__main__":
    for case_name in CASES:
        base.make(case_name, os.path.dirname(os.path.abspath(__file__)))
