#!/usr/bin/env python3
"""Makes the golden files of test_classifier_golden.c: loss, gradients and answers of small classifiers and regression
models as PyTorch computes them.

    python3 tests/golden/make_classifier.py   (needs torch and safetensors; writes classifier_*.safetensors into its folder)

The layers are those of make_transformer.py; what is here is a body of one stack, its second sentences, and the head. A
file holds what make_transformer.py says, but for the batch: ids, offsets, second (where second sentences begin), labels
(int32) or numbers (fp32); and answer/value, double: log-probabilities [n, classes] or numbers [n].
"""
import os
import random
import sys

import make_funnel as funnel
import make_transformer as base
import torch
import torch.nn.functional as F
from make_transformer import D, FFN, HEADS, Case, Network, layer_sets, pad

VOCAB, EOS, SMOOTHING, HIDDEN = 40, 2, 0.1, 24
LENGTHS = [6, 11, 2, 14, 4, 9]
SECOND = [3, 6, 2, 9, 2, 9]  # a sentence's length: it has one sentence only

# name: (side, norm, pattern, pool, hidden, outputs; 1 is regression)
CASES = {
    "classifier_cls": ("encoder", "post", "L L", "cls", HIDDEN, 3),
    "classifier_mean": ("encoder", "pre", "R L R1", "mean", 0, 2),
    "classifier_last": ("decoder", "pre", "L L1 R L1", "last", 0, 5),
    "classifier_number": ("encoder", "post", "R L", "mean", HIDDEN, 1),
    "classifier_funnel": ("encoder", "post", "L R L L1 L1", "cls", HIDDEN, 3),
    "classifier_funnel_mean": ("encoder", "pre", "L R L", "mean", 0, 2),
}
# Layers behind which rows are pooled (Dai et al. 2020).
POOLS = {"classifier_funnel": (1, 3), "classifier_funnel_mean": (2,)}


class Classifier(Case):
    def __init__(self, name):
        self.side, self.norm, pattern, self.pool, self.hidden, self.outputs = CASES[name]
        self.layers = layer_sets(pattern)
        self.segments = 2 if self.side == "encoder" else 0
        task = "regression" if self.outputs == 1 else "classification"
        labels = "" if self.outputs == 1 else f", labels: \"{'|'.join(f'c{i}' for i in range(self.outputs))}\""
        self.config = (
            f"model: {{ task: {task}, d_model: {D}, norm: {self.norm}, dropout: 0, segments: {self.segments} }}\n"
            f"{self.side}: {{ layers: \"{pattern}\" }}\n"
            f"head: {{ pool: {self.pool}, hidden: {self.hidden}{labels} }}\n"
            "kinds:\n"
            f"  L: {{ mixer: attention, heads: {HEADS}, ffn: {FFN} }}\n"
            f"  R: {{ mixer: attention, heads: {HEADS}, ffn: {FFN}, frozen: yes }}\n")
        self.pools = POOLS.get(name, ())
        if self.pools:
            self.config = self.config.replace("layers:", f"pool_after: {list(self.pools)}, layers:")
        self.weights, self.sources, self.trained = {}, {}, {}
        self.vocab = self.outputs  # what make_batch() depends on
        self.tables = {"text": "embeddings.weight"}
        self.add("embeddings.weight", True, VOCAB, D, scale=D**-0.5)
        if self.segments:
            self.add("embeddings.segments.weight", True, 2, D, scale=0.5)
        for kind, set_name in self.layers:
            if f"{self.side}.{set_name}.ffn.in.weight" not in self.weights:
                self.make_layer("encoder", kind, f"{self.side}.{set_name}")  # without cross-attention
        if self.norm == "pre":
            self.make_norm(f"{self.side}.norm", True)
        if self.hidden:
            self.make_linear("output.dense", True, self.hidden, D)
        self.make_linear("output", True, self.outputs, self.hidden or D, 2.0)


class Body(Network):
    def layer(self, x, name, kind, padding, memory=None, memory_padding=None):
        order, own, ffn = self.case.order(kind), f"{name}.self_attn", f"{name}.ffn"
        x = self.sublayer(x, own, order, lambda h: self.attention(
            h, h, self.w[f"{own}.qkv.weight"], self.w[f"{own}.qkv.bias"][0], f"{own}.out", padding,
            self.case.side == "decoder"))
        return self.sublayer(x, ffn, order, lambda h: self.linear(F.relu(self.linear(h, f"{ffn}.in")), f"{ffn}.out"))

    def pooled_stack(self, x, padding):
        for depth, (kind, set_name) in enumerate(self.case.layers, 1):
            x = self.layer(x, f"{self.case.side}.{set_name}", kind, padding)
            if depth in self.case.pools:
                x, padding = funnel.pool(x, padding)
        return (self.layer_norm(x, f"{self.case.side}.norm") if self.case.norm == "pre" else x), padding

    def answers(self, batch):
        ids, padding = pad(batch["ids"], batch["offsets"])
        x = self.embed(ids, "text")
        if self.case.segments:
            places = torch.arange(ids.shape[1])[None, :]
            x = x + F.embedding((places >= batch["second"].long()[:, None]).long(), self.w["embeddings.segments.weight"])
        x, padding = self.pooled_stack(x, padding)
        lengths = (~padding).sum(dim=1)
        if self.case.pool == "cls":
            x = x[:, 0]
        elif self.case.pool == "last":
            x = x[torch.arange(len(lengths)), lengths - 1]
        else:
            x = x.masked_fill(padding[:, :, None], 0.0).sum(dim=1) / lengths[:, None]
        if self.case.hidden:
            x = torch.tanh(self.linear(x, "output.dense"))
        return self.linear(x, "output")

    def run(self, batch):
        answers = self.answers(batch)
        if self.case.outputs == 1:
            answers = answers[:, 0]
            loss = nll = ((answers - batch["numbers"].to(self.dtype))**2).sum()
        else:
            wanted = batch["labels"].long()
            loss = F.cross_entropy(answers, wanted, reduction="sum", label_smoothing=SMOOTHING)
            nll = F.cross_entropy(answers, wanted, reduction="sum")
        (loss / len(LENGTHS)).backward()
        return loss.item(), nll.item(), {name: w.grad for name, w in self.w.items() if w.requires_grad}


def make_batch(outputs):
    draw = random.Random(11)
    ids, offsets = [], [0]
    for length, second in zip(LENGTHS, SECOND):
        row = [draw.randrange(3, VOCAB) for _ in range(length)]
        row[second - 1] = row[-1] = EOS
        ids += row
        offsets.append(len(ids))
    batch = {"ids": ids, "offsets": offsets, "second": SECOND}
    tensors = {name: torch.tensor(values, dtype=torch.int32) for name, values in batch.items()}
    if outputs == 1:
        tensors["numbers"] = torch.tensor([draw.uniform(-2, 5) for _ in LENGTHS], dtype=torch.float32)
    else:
        tensors["labels"] = torch.tensor([draw.randrange(outputs) for _ in LENGTHS], dtype=torch.int32)
    return tensors


def make(name, folder):
    case, batch, loss, nll, gradients, worst = base.find(name)
    with torch.no_grad():
        answers = Body(case, torch.float64).answers(batch)
    answers = answers[:, 0] if case.outputs == 1 else F.log_softmax(answers, dim=1)
    base.save(os.path.join(folder, f"{name}.safetensors"), case, batch, loss, nll, gradients, {"answer/value": answers},
              {"label_smoothing": repr(SMOOTHING if case.outputs > 1 else 0.0)})
    print(f"{case.seed}: loss {loss:.6f}, nll {nll:.6f}, PyTorch fp32 against fp64 {worst:.1e}")


if __name__ == "__main__":
    base.Case, base.Network, base.make_batch = Classifier, Body, make_batch
    for case_name in sys.argv[1:] or CASES:
        make(case_name, os.path.dirname(os.path.abspath(__file__)))
