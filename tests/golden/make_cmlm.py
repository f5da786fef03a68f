#!/usr/bin/env python3
"""Makes cmlm_*.safetensors for test_golden.c: loss and gradients of conditional masked language models (Ghazvininejad et
al. 2019). The decoder sees the whole target, some of whose tokens are masks, and the loss is the sum of that of the masked
tokens and of that of the target's length, a softmax on the encoder's output at the end of the source.

    python3 tests/golden/make_cmlm.py     (needs torch and safetensors; writes *.safetensors into its folder)

Format and layers are those of make_transformer.py; batch/selected and batch/targets are the packed rows that are predicted
and their tokens.
"""

import os
import random

import torch
import torch.nn.functional as F

import make_transformer as base
from make_transformer import D, make_batch as make_pairs, pad

MASK, LONGEST = 5, 16
base.CASES |= {"cmlm_post": ("post", "all", "L R L", "L R L1 L1"), "cmlm_conv_pre": ("pre", "none", "L S", "C L F R")}
NAMES = ("cmlm_post", "cmlm_conv_pre")


class Case(base.Case):
    def __init__(self, name):
        super().__init__(name)
        self.config = self.config.replace("model: {", f"model: {{ task: masked-translation, max_length: {LONGEST},")
        self.add("output.length.weight", True, LONGEST, D, scale=D**-0.5)


class Network(base.Network):
    def attention(self, query, key, weight, bias, out, padding, causal):
        return super().attention(query, key, weight, bias, out, padding, False)

    def convolution(self, x, name, kind, padding, causal):
        return super().convolution(x, name, kind, padding, False)

    def losses(self, batch):
        source, source_padding = pad(batch["source_ids"], batch["source_offsets"])
        target, target_padding = pad(batch["target_in"], batch["target_offsets"])
        memory = self.stack(self.embed(source, "source"), "encoder", self.case.encoder, source_padding)
        x = self.stack(self.embed(target, "target"), "decoder", self.case.decoder, target_padding, memory, source_padding)
        states = x[~target_padding][batch["selected"].long()]
        words = F.linear(states, self.w[self.case.tables["output"]])
        ends = (~source_padding).sum(dim=1) - 1
        lengths = F.linear(memory[torch.arange(len(ends)), ends], self.w["output.length.weight"])
        tokens = (~target_padding).sum(dim=1) - 1
        of_lengths = F.cross_entropy(lengths, tokens, reduction="sum")
        wanted = batch["targets"].long()
        loss = F.cross_entropy(words, wanted, reduction="sum", label_smoothing=base.SMOOTHING)
        return loss + of_lengths, F.cross_entropy(words, wanted, reduction="sum") + of_lengths

    def run(self, batch):
        loss, nll = self.losses(batch)
        (loss / len(batch["targets"])).backward()
        return loss.item(), nll.item(), {name: w.grad for name, w in self.w.items() if w.requires_grad}


def make_batch(vocab):
    """Of each target 1 to all of its tokens are masked, but not its end."""
    draw = random.Random(13)
    batch = make_pairs(vocab)
    words, offsets = batch.pop("target_out").tolist(), batch["target_offsets"].tolist()
    selected, targets = [], []
    for begin, end in zip(offsets, offsets[1:]):
        tokens = range(begin, end - 1)
        for row in sorted(draw.sample(tokens, draw.randint(1, len(tokens)))) if tokens else []:
            selected.append(row)
            targets.append(words[row])
            words[row] = MASK
    batch |= {"target_in": torch.tensor(words, dtype=torch.int32), "selected": torch.tensor(selected, dtype=torch.int32),
              "targets": torch.tensor(targets, dtype=torch.int32)}
    return batch


if __name__ == "__main__":
    base.Case, base.Network, base.make_batch = Case, Network, make_batch
    for case_name in NAMES:
        base.make(case_name, os.path.dirname(os.path.abspath(__file__)))
