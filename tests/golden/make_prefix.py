#!/usr/bin/env python3
"""Makes prefix_*.safetensors for test_golden.c: loss and gradients of decoder-only translation models (prefix language
models: Liu et al. 2018, Raffel et al. 2020), each sentence by itself with one mask: the source sees all of itself, the
target the source and what is before it.

    python3 tests/golden/make_prefix.py     (needs torch and safetensors; writes *.safetensors into its folder)

Format and layers are those of make_transformer.py.
"""

import math
import os

import torch
import torch.nn.functional as F

import make_transformer as base
from make_transformer import D, HEADS

base.CASES |= {"prefix_post": ("post", "all", "", "L R L1 L1"), "prefix_pre": ("pre", "encoder_decoder", "", "L1 F L1 R")}
NAMES = ("prefix_post", "prefix_pre")


class Case(base.Case):
    def __init__(self, name):
        norm, embeddings, _, decoder = base.CASES[name]
        base.CASES[name] = (norm, embeddings, "L", decoder)  # an encoder that is then taken away
        super().__init__(name)
        base.CASES[name] = (norm, embeddings, "", decoder)
        self.config = self.config.replace("model: {", "model: { task: translation,").replace("encoder: { layers: \"L\" }\n", "")
        for name in [name for name in self.weights if name.startswith("encoder.") or ".cross_attn." in name]:
            del self.weights[name], self.sources[name], self.trained[name]


class Network(base.Network):
    def attend(self, x, own, mask):
        """Of one sentence [length, D]."""
        q, k, v = (part.unflatten(1, (HEADS, -1)).transpose(0, 1) for part in self.linear(x, f"{own}.qkv").chunk(3, dim=1))
        scores = (q @ k.transpose(1, 2) / math.sqrt(D // HEADS)).masked_fill(mask, -torch.inf)
        return self.linear((torch.softmax(scores, dim=-1) @ v).transpose(0, 1).flatten(1), f"{own}.out")

    def sentence(self, x, mask):
        for kind, set_name in self.case.decoder:
            name, order = f"decoder.{set_name}", self.case.order(kind)
            if kind != "F":
                own = f"{name}.self_attn"
                x = self.sublayer(x, own, order, lambda h: self.attend(h, own, mask))
            x = self.sublayer(x, f"{name}.ffn", order, lambda h: self.channels(h, f"{name}.ffn", kind))
        return self.layer_norm(x, "decoder.norm") if self.case.order(self.case.decoder[-1][0]) == "pre" else x

    def losses(self, batch):
        outputs = []
        both = [batch["source_offsets"], batch["target_offsets"]]
        for s in range(len(both[0]) - 1):
            source = batch["source_ids"][both[0][s]:both[0][s + 1]].long()
            target = batch["target_in"][both[1][s]:both[1][s + 1]].long()
            ids, prefix = torch.cat([source, target]), len(source)
            mask = torch.triu(torch.ones(len(ids), len(ids), dtype=torch.bool), 1)
            mask[:, :prefix] = False  # the source
            outputs.append(self.sentence(self.embed(ids[None], "source")[0], mask)[prefix:])
        logits = F.linear(torch.cat(outputs), self.w[self.case.tables["output"]])
        wanted = batch["target_out"].long()
        loss = F.cross_entropy(logits, wanted, reduction="sum", label_smoothing=base.SMOOTHING)
        return loss, F.cross_entropy(logits, wanted, reduction="sum")


if __name__ == "__main__":
    base.Case, base.Network = Case, Network
    for case_name in NAMES:
        base.make(case_name, os.path.dirname(os.path.abspath(__file__)))
