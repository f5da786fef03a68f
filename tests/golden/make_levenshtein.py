#!/usr/bin/env python3
"""Makes levenshtein_*.safetensors for test_golden.c: losses and gradients of the three policies of a Levenshtein
Transformer (Gu et al. 2019) for given roll-ins.

    python3 tests/golden/make_levenshtein.py     (needs torch and safetensors; writes *.safetensors into its folder)

Format and layers are those of make_transformer.py, but no layer is causal. The sentences that the deletion policy reads
are made here, from the most likely words of the token policy; the expert's deletions come from a table of the lengths of
common subsequences, whose way back takes equal tokens first, then insertions. Weights are drawn until the most likely
words are so by a margin that bf16 does not close. The batch has more tensors: target_in with placeholders, selected (their
rows) and targets (their words), kept_ids and kept_offsets (without them), and gaps (how many stand behind each token).
"""

import os
import random

import torch
import torch.nn.functional as F

import make_transformer as base
from make_transformer import D, EOS, pad

PLACEHOLDER, FIRST_WORD, MOST, MARGIN = 3, 4, 6, 0.4
# The words of each sentence that are left out.
LEFT_OUT = [[0, 3], [], [1], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], [0]]
LENGTHS = [5, 4, 3, 10, 1]

base.CASES |= {"levenshtein_post": ("post", "all", "L R", "L F L"),
               "levenshtein_pre": ("pre", "none", "R L", "L1 R L1")}
NAMES = ("levenshtein_post", "levenshtein_pre")


def deletions(a, b):
    """Which tokens of a the shortest way to b deletes."""
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            table[i][j] = (table[i - 1][j - 1] + 1 if a[i - 1] == b[j - 1]
                           else max(table[i - 1][j], table[i][j - 1]))
    i, j, deleted = len(a), len(b), [1] * len(a)
    while i and j:
        if a[i - 1] == b[j - 1]:
            i, j = i - 1, j - 1
            deleted[i] = 0
        elif table[i][j - 1] == table[i][j]:
            j -= 1
        else:
            i -= 1
    return deleted


class Case(base.Case):
    def __init__(self, name):
        super().__init__(name)
        self.config = self.config.replace("model: {", "model: { task: levenshtein,")
        self.config += f"levenshtein: {{ max_placeholders: {MOST} }}\n"
        self.add("output.deletion.weight", True, 2, D, scale=D**-0.5)
        self.add("output.placeholders.weight", True, MOST + 1, 2 * D, scale=(2 * D)**-0.5)

    def suits(self, batch):
        with torch.no_grad():
            logits = Network(self, torch.float64).words(batch)[0]
        best = logits.topk(2, dim=-1).values
        return (best[:, 0] - best[:, 1]).min().item() > MARGIN


class Network(base.Network):
    def attention(self, query, key, weight, bias, out, padding, causal):
        return super().attention(query, key, weight, bias, out, padding, False)

    def decode(self, ids, offsets, batch):
        source, source_padding = pad(batch["source_ids"], batch["source_offsets"])
        memory = self.stack(self.embed(source, "source"), "encoder", self.case.encoder, source_padding)
        target, padding = pad(ids, offsets)
        x = self.stack(self.embed(target, "target"), "decoder", self.case.decoder, padding, memory, source_padding)
        return [row[~mask] for row, mask in zip(x, padding)]

    def words(self, batch):
        """Logits of the token policy at placeholders."""
        states = torch.cat(self.decode(batch["target_in"], batch["target_offsets"], batch))
        rows = states[batch["selected"].long()]
        return F.linear(rows, self.w[self.case.tables["output"]]), rows

    def losses(self, batch):
        logits, _ = self.words(batch)
        targets = batch["targets"].long()
        loss = F.cross_entropy(logits, targets, reduction="sum", label_smoothing=base.SMOOTHING)
        nll = F.cross_entropy(logits, targets, reduction="sum")
        pairs = torch.cat([torch.cat([h[:-1], h[1:]], dim=1)
                           for h in self.decode(batch["kept_ids"], batch["kept_offsets"], batch)])
        placeholders = F.cross_entropy(F.linear(pairs, self.w["output.placeholders.weight"]), batch["gaps"].long(),
                                       reduction="sum")
        filled, true = batch["target_in"].clone(), batch["target_in"].clone()
        filled[batch["selected"].long()] = logits.argmax(dim=-1).int()
        true[batch["selected"].long()] = batch["targets"]
        inner = [h[1:-1] for h in self.decode(filled, batch["target_offsets"], batch)]
        wanted, starts = [], batch["target_offsets"].tolist()
        for begin, end in zip(starts, starts[1:]):
            wanted += deletions(filled[begin + 1:end - 1].tolist(), true[begin + 1:end - 1].tolist())
        assert 0 < sum(wanted) < len(wanted)
        deleted = F.cross_entropy(F.linear(torch.cat(inner), self.w["output.deletion.weight"]), torch.tensor(wanted),
                                  reduction="sum")
        return loss + placeholders + deleted, nll + placeholders + deleted

    def run(self, batch):
        loss, nll = self.losses(batch)
        (loss / batch["selected"].numel()).backward()
        return loss.item(), nll.item(), {name: w.grad for name, w in self.w.items() if w.requires_grad}


def make_batch(vocab):
    draw = random.Random(17)
    values = {name: [] for name in ("source_ids", "target_in", "kept_ids", "selected", "targets", "gaps")}
    offsets = {name: [0] for name in ("source_offsets", "target_offsets", "kept_offsets")}
    for length, count, left_out in zip(base.SOURCE_LENGTHS, LENGTHS, LEFT_OUT):
        values["source_ids"] += [draw.randrange(FIRST_WORD, vocab[0]) for _ in range(length - 1)] + [EOS]
        words = [draw.randrange(FIRST_WORD, vocab[1]) for _ in range(count)]
        begin = len(values["target_in"]) + 1
        values["selected"] += [begin + i for i in left_out]
        values["targets"] += [words[i] for i in left_out]
        values["target_in"] += [EOS] + [PLACEHOLDER if i in left_out else word for i, word in enumerate(words)] + [EOS]
        values["kept_ids"] += [EOS] + [word for i, word in enumerate(words) if i not in left_out] + [EOS]
        gap = 0
        for i in range(count):
            if i in left_out:
                gap += 1
            else:
                values["gaps"].append(gap)
                gap = 0
        values["gaps"].append(min(gap, MOST))
        for name, of in (("source", "source_ids"), ("target", "target_in"), ("kept", "kept_ids")):
            offsets[f"{name}_offsets"].append(len(values[of]))
    return {name: torch.tensor(value, dtype=torch.int32) for name, value in (values | offsets).items()}


if __name__ == "__main__":
    base.Case, base.Network, base.make_batch = Case, Network, make_batch
    for case_name in NAMES:
        base.make(case_name, os.path.dirname(os.path.abspath(__file__)))
