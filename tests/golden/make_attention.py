#!/usr/bin/env python3
"""Makes relative_*.safetensors and grouped_*.safetensors for test_golden.c: loss and gradients of models with relative
biases (T5) and with fewer heads of keys and values than of queries (grouped-query and multi-query attention).

    python3 tests/golden/make_attention.py     (needs torch, transformers and safetensors)

The biases are made by the transformers package's T5Attention, from its own buckets; attention is PyTorch's
scaled_dot_product_attention, which shares heads of keys and values by itself (enable_gqa). The queries and keys of
grouped_pre are turned by the code of the package's LLaMA. All else, and the form of the files, is that of
make_transformer.py.
"""
import os

import make_transformer as base
import torch
import torch.nn.functional as F
from make_transformer import D, FFN, HEADS
from transformers import T5Config
from transformers.models.llama import modeling_llama as llama
from transformers.models.t5.modeling_t5 import T5Attention

BUCKETS, MAX_DISTANCE = 8, 9  # sentences have up to 14 tokens
KV_HEADS = {"W": 1, "X": 2}
CASES = {
    # name: (norm, embeddings, encoder pattern, decoder pattern, positions); R is frozen, and reads the trained biases
    "relative_post": ("post", "all", "L R X1 L X1", "L W R",
                      f"{{ type: t5, buckets: {BUCKETS}, max_distance: {MAX_DISTANCE} }}"),
    "relative_pre": ("pre", "none", "L R L1 L1", "X L", f"{{ type: t5, buckets: {BUCKETS}, max_distance: {MAX_DISTANCE} }}"),
    "grouped_post": ("post", "none", "W X L W1 W1", "X1 W X1", "sinusoidal"),
    "grouped_pre": ("pre", "decoder", "X W R", "W L X", "rotary"),
}


class Case(base.Case):
    def __init__(self, name):
        *description, self.positions = CASES[name]
        base.CASES[name] = tuple(description)
        super().__init__(name)
        self.config = self.config.replace("dropout: 0 }", f"dropout: 0, positions: {self.positions} }}")
        for kind, heads in KV_HEADS.items():
            self.config += f"  {kind}: {{ mixer: attention, heads: {HEADS}, kv_heads: {heads}, ffn: {FFN} }}\n"
        if "t5" in self.positions:
            for side in ("encoder", "decoder"):
                self.add(f"{side}.biases.weight", True, BUCKETS, HEADS, scale=1.0)

    def make_layer(self, side, kind, name):
        super().make_layer(side, kind, name)
        if kind not in KV_HEADS:
            return
        kv = D // HEADS * KV_HEADS[kind]
        for part in ("weight", "bias"):
            del self.weights[f"{name}.self_attn.qkv.{part}"]
        self.make_linear(f"{name}.self_attn.q", True, D, D, 1.5)
        self.make_linear(f"{name}.self_attn.kv", True, 2 * kv, D, 1.5)
        if side == "decoder":
            self.make_linear(f"{name}.cross_attn.kv", True, 2 * kv, D)


class Network(base.Network):
    def embed(self, ids, table):
        if self.case.positions == "sinusoidal":
            return super().embed(ids, table)
        return D**0.5 * F.embedding(ids, self.w[self.case.tables[table]])

    def biases(self, side, length):
        if "t5" not in self.case.positions:
            return torch.zeros(1, HEADS, length, length, dtype=self.dtype)
        config = T5Config(d_model=D, d_kv=D // HEADS, num_heads=HEADS, relative_attention_num_buckets=BUCKETS,
                          relative_attention_max_distance=MAX_DISTANCE, is_decoder=side == "decoder")
        module = T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
        del module.relative_attention_bias.weight  # a parameter, in whose place a tensor with ours can stand
        module.relative_attention_bias.weight = self.w[f"{side}.biases.weight"]
        return module.compute_bias(length, length)

    def turned(self, q, k):
        if self.case.positions != "rotary":
            return q, k
        # The package's own angles are fp32.
        rates = 10000.0 ** -(torch.arange(0, D // HEADS, 2, dtype=torch.float64) / (D // HEADS))
        angles = (torch.arange(q.shape[2])[:, None] * rates).repeat(1, 2)[None]
        return llama.apply_rotary_pos_emb(q, k, angles.cos().to(self.dtype), angles.sin().to(self.dtype))

    def attend(self, name, out, queries, keys, mask, own):
        """mask: what is added to scores, -inf where a query does not see a key."""
        if f"{name}.qkv.weight" in self.w:
            q, k, v = self.linear(queries, f"{name}.qkv").chunk(3, dim=2)
        else:
            q = self.linear(queries, f"{name}.q")
            k, v = self.linear(keys, f"{name}.kv").chunk(2, dim=2)
        q, k, v = (t.unflatten(2, (-1, D // HEADS)).transpose(1, 2) for t in (q, k, v))
        if own:
            q, k = self.turned(q, k)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask.expand(len(q), HEADS, -1, -1), enable_gqa=True)
        return self.linear(y.transpose(1, 2).flatten(2), out)

    def layer(self, x, name, kind, padding, memory=None, memory_padding=None):
        order, length = self.case.order(kind), x.shape[1]
        unseen = padding[:, None, None, :]
        if memory is not None:
            unseen = unseen | torch.ones(length, length, dtype=torch.bool).triu(1)
        mask = self.biases(name.split(".")[0], length).masked_fill(unseen, -torch.inf)
        own, cross = f"{name}.self_attn", f"{name}.cross_attn"
        x = self.sublayer(x, own, order, lambda h: self.attend(own, f"{own}.out", h, h, mask, True))
        if memory is not None:
            mask = torch.zeros(1, 1, length, memory.shape[1], dtype=self.dtype)
            mask = mask.masked_fill(memory_padding[:, None, None, :], -torch.inf)
            x = self.sublayer(x, cross, order, lambda h: self.attend(cross, f"{cross}.out", h, memory, mask, False))
        return self.sublayer(x, f"{name}.ffn", order, lambda h: self.channels(h, f"{name}.ffn", kind))


base.TRAINED += "".join(KV_HEADS)
base.Case, base.Network = Case, Network
for case_name in CASES:
    base.make(case_name, os.path.dirname(os.path.abspath(__file__)))
