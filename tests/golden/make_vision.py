#!/usr/bin/env python3
"""Makes the golden files of test_classifier_golden.c that are of images: loss, gradients and answers of small vision
transformers (Dosovitskiy et al. 2021) as PyTorch computes them.

    python3 tests/golden/make_vision.py   (needs torch and safetensors; writes vision_*.safetensors into its folder)

The layers are those of make_transformer.py. What is here is the way from pixels to rows as in the paper's code: a
convolution whose kernel is as wide as its step, a class token, learned positions; and the head. tarn has the convolution's
bias and the class token as the rows of one table, and its kernel as a matrix. A file holds what make_transformer.py says,
but for the batch: images [n, height, width, channels] (int32, 0 to 255), labels (int32); and answer/value, double:
log-probabilities [n, classes].
"""
import os
import random

import make_transformer as base
import torch
import torch.nn.functional as F
from make_transformer import D, FFN, HEADS, Case, Network, layer_sets

SMOOTHING, HIDDEN, IMAGES = 0.1, 24, 6

# name: (norm, pattern, pool, hidden, classes, (height, width, channels), patch)
CASES = {
    "vision_cls": ("pre", "R L1 R L1", "cls", HIDDEN, 3, (12, 8, 1), 4),
    "vision_mean": ("post", "L R", "mean", 0, 5, (6, 9, 3), 3),
}


class Vision(Case):
    def __init__(self, name):
        self.norm, pattern, self.pool, self.hidden, self.outputs, self.size, self.patch = CASES[name]
        height, width, channels = self.size
        self.layers = layer_sets(pattern)
        self.rows = height // self.patch * (width // self.patch) + (self.pool == "cls")
        labels = "|".join(f"c{i}" for i in range(self.outputs))
        self.config = (
            f"model: {{ task: image-classification, d_model: {D}, norm: {self.norm}, dropout: 0, positions: learned }}\n"
            f"image: {{ patch: {self.patch}, height: {height}, width: {width}, channels: {channels} }}\n"
            f"encoder: {{ layers: \"{pattern}\" }}\n"
            f"head: {{ pool: {self.pool}, hidden: {self.hidden}, labels: \"{labels}\" }}\n"
            "kinds:\n"
            f"  L: {{ mixer: attention, heads: {HEADS}, ffn: {FFN} }}\n"
            f"  R: {{ mixer: attention, heads: {HEADS}, ffn: {FFN}, frozen: yes }}\n")
        self.weights, self.sources, self.trained = {}, {}, {}
        self.vocab = (self.outputs, self.size)  # what make_batch() depends on
        inputs = self.patch**2 * channels
        self.add("embeddings.input.weight", True, 2, D, scale=0.5)
        self.add("embeddings.patches.weight", True, D, inputs, scale=inputs**-0.5)
        self.add("embeddings.positions.weight", True, self.rows, D, scale=0.5)
        for kind, set_name in self.layers:
            if f"encoder.{set_name}.ffn.in.weight" not in self.weights:
                self.make_layer("encoder", kind, f"encoder.{set_name}")
        if self.norm == "pre":
            self.make_norm("encoder.norm", True)
        if self.hidden:
            self.make_linear("output.dense", True, self.hidden, D)
        self.make_linear("output", True, self.outputs, self.hidden or D, 2.0)


class Body(Network):
    def answers(self, batch):
        patch, channels = self.case.patch, self.case.size[2]
        pixels = ((batch["images"].double() - 127.5) / 127.5).float().to(self.dtype).permute(0, 3, 1, 2)
        class_token, bias = self.w["embeddings.input.weight"]
        kernel = self.w["embeddings.patches.weight"].view(D, channels, patch, patch)
        x = F.conv2d(pixels, kernel, bias, stride=patch).flatten(2).transpose(1, 2)
        if self.case.pool == "cls":
            x = torch.cat([class_token.to(x.dtype).expand(len(x), 1, D), x], dim=1)
        x = x + self.w["embeddings.positions.weight"]
        x = self.stack(x, "encoder", self.case.layers, None)
        x = x[:, 0] if self.case.pool == "cls" else x.mean(dim=1)
        if self.case.hidden:
            x = torch.tanh(self.linear(x, "output.dense"))
        return self.linear(x, "output")

    def run(self, batch):
        answers, wanted = self.answers(batch), batch["labels"].long()
        loss = F.cross_entropy(answers, wanted, reduction="sum", label_smoothing=SMOOTHING)
        nll = F.cross_entropy(answers, wanted, reduction="sum")
        (loss / IMAGES).backward()
        return loss.item(), nll.item(), {name: w.grad for name, w in self.w.items() if w.requires_grad}


def make_batch(what):
    outputs, (height, width, channels) = what
    draw = random.Random(11)
    images = [draw.randrange(256) for _ in range(IMAGES * height * width * channels)]
    return {"images": torch.tensor(images, dtype=torch.int32).view(IMAGES, height, width, channels),
            "labels": torch.tensor([draw.randrange(outputs) for _ in range(IMAGES)], dtype=torch.int32)}


def make(name, folder):
    case, batch, loss, nll, gradients, worst = base.find(name)
    with torch.no_grad():
        answers = F.log_softmax(Body(case, torch.float64).answers(batch), dim=1)
    base.save(os.path.join(folder, f"{name}.safetensors"), case, batch, loss, nll, gradients, {"answer/value": answers},
              {"label_smoothing": repr(SMOOTHING)})
    print(f"{case.seed}: loss {loss:.6f}, nll {nll:.6f}, PyTorch fp32 against fp64 {worst:.1e}")


if __name__ == "__main__":
    base.Case, base.Network, base.make_batch = Vision, Body, make_batch
    for case_name in CASES:
        make(case_name, os.path.dirname(os.path.abspath(__file__)))
