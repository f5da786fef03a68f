#!/usr/bin/env python3
"""Makes adaptive_*.safetensors: vocabularies in bands, at the input and at the output.

    python3 tests/golden/make_adaptive.py [CASE...]   (needs torch and safetensors)

The network of make_transformer.py with adaptive inputs by the published equations (Baevski and Auli 2019; fairseq's
AdaptiveInput): a band's vectors, times its projection, and sqrt(d_model); and with torch.nn.AdaptiveLogSoftmaxWithLoss
(Grave et al. 2017) as the output, whose weights are the file's, shared with the input's or not. Its tails have no bias;
where the output has one, their last layer is exchanged for one with a bias. The files are those of make_transformer.py;
their metadata has the sizes of both vocabularies ("words").
"""
import math
import os
import sys

import torch
import torch.nn.functional as F

import make_transformer
from make_transformer import D, Case, Network, pad

E = 12
HERE = os.path.dirname(os.path.abspath(__file__))

# name: (norm, embeddings, encoder, decoder, further keys, input's cut-offs and factor, output's)
CASES = {
    "adaptive_none": ("post", "none", "L", "L", "", ([10, 25], 4.0), ([7, 19], 2.0)),
    "adaptive_decoder": ("pre", "decoder", "L", "L", "", ([8, 20], 2.0), ([8, 20], 2.0)),
    "adaptive_all": ("post", "all", "L", "L", "tie_adaptive_proj: yes", ([5, 11, 23], 2.5), ([5, 11, 23], 2.5)),
    "adaptive_input": ("pre", "encoder_decoder", "L", "L", "frozen_embeddings: both", ([12], 4.0), ([], 4.0)),
    "adaptive_softmax": ("pre", "none", "L", "L", f"embedding_size: {E}, output_bias: yes", ([], 4.0),
                         ([9, 17, 30], 3.0)),
}


def edges(cutoffs, words):
    return [0, *cutoffs, words]


class AdaptiveCase(Case):
    def __init__(self, name):
        *case, self.keys, self.input, self.output = CASES[name]
        make_transformer.CASES[name] = case
        super().__init__(name)
        keys = [self.keys] if self.keys else []
        for word, (cutoffs, factor) in (("input", self.input), ("softmax", self.output)):
            if cutoffs:
                keys += [f"adaptive_{word}_cutoff: {cutoffs}", f"adaptive_{word}_factor: {factor}"]
        self.config = self.config.replace("dropout: 0 }", f"dropout: 0, {', '.join(keys)} }}", 1)

    def make_embeddings(self):
        super().make_embeddings()
        self.weights, self.trained = {}, {}
        frozen = "frozen_embeddings" in self.keys
        for use, words in (("source", self.vocab[0]), ("target", self.vocab[1])):
            self.make_input(self.tables[use], words, self.tables[use] == self.tables["output"], not frozen)
        self.make_output()

    def make_input(self, table, words, shared, trained):
        cutoffs, factor = self.input
        if not cutoffs:
            width = E if "embedding_size" in self.keys else D
            self.add(table, trained, words, width, scale=width**-0.5)
            if width < D:
                self.make_linear(table.replace("weight", "projection"), trained, D, width)
            return
        ends = edges(cutoffs, words)
        for band in range(len(cutoffs) + 1):
            width, name = int(D // factor**band), table.replace("weight", f"band{band + 1}")
            if f"{name}.weight" in self.weights:
                return
            classes = len(cutoffs) if shared and band == 0 else 0
            self.add(f"{name}.weight", trained, ends[band + 1] - ends[band] + classes, width, scale=D**-0.5)
            self.add(f"{name}.projection.weight", trained, D, width, scale=width**-0.5)

    def make_output(self):
        cutoffs, factor = self.output
        table = self.tables["output"]
        if not cutoffs:
            self.add(table, True, self.vocab[1], D, scale=D**-0.5)
            return
        ends = edges(cutoffs, self.vocab[1])
        for band in range(len(cutoffs) + 1):
            width, name = int(D // factor**band), table.replace("weight", f"band{band + 1}")
            rows = ends[band + 1] - ends[band] + (len(cutoffs) if band == 0 else 0)
            if f"{name}.weight" not in self.weights:
                self.add(f"{name}.weight", True, rows, width, scale=width**-0.5)
            if band > 0 and "tie_adaptive_proj" not in self.keys:
                self.add(f"output.band{band + 1}.projection.weight", True, width, D, scale=D**-0.5)
            if "output_bias" in self.keys:
                self.add(f"output.band{band + 1}.bias", True, 1, rows, scale=0.3)


class AdaptiveNetwork(Network):
    def embed(self, ids, table):
        cutoffs, _ = self.case.input
        name = self.case.tables[table]
        width = D if cutoffs else self.w[name].shape[1]
        half = width // 2
        rates = torch.exp(torch.arange(half, dtype=torch.float64) * (-math.log(10000.0) / (half - 1)))
        angles = torch.arange(ids.shape[1], dtype=torch.float64)[:, None] * rates[None, :]
        positions = torch.cat([torch.sin(angles), torch.cos(angles)], dim=1).to(self.dtype)
        if not cutoffs:
            x = math.sqrt(width) * F.embedding(ids, self.w[name]) + positions
            return F.linear(x, self.w[name.replace("weight", "projection.weight")],
                            self.w[name.replace("weight", "projection.bias")][0])
        x = torch.zeros(*ids.shape, D, dtype=self.dtype)
        ends = edges(cutoffs, self.case.vocab[table != "source"])
        for band in range(len(cutoffs) + 1):
            own = name.replace("weight", f"band{band + 1}")
            mask = (ids >= ends[band]) & (ids < ends[band + 1])
            vectors = F.embedding(ids[mask] - ends[band], self.w[f"{own}.weight"])
            x = x.masked_scatter(mask[..., None], F.linear(vectors, self.w[f"{own}.projection.weight"]).to(self.dtype))
        return math.sqrt(D) * x + positions

    def output(self, x, wanted):
        cutoffs, factor = self.case.output
        name = self.case.tables["output"]
        if not cutoffs:
            return F.cross_entropy(F.linear(x, self.w[name]), wanted, reduction="sum")
        biased = "output_bias" in self.case.keys
        module = torch.nn.AdaptiveLogSoftmaxWithLoss(D, self.case.vocab[1], cutoffs, factor, biased).to(self.dtype)
        weights = {"head.weight": self.w[name.replace("weight", "band1.weight")]}
        if biased:
            weights["head.bias"] = self.w["output.band1.bias"][0]
        for tail in range(len(cutoffs)):
            own = name.replace("weight", f"band{tail + 2}")
            projection = self.w.get(f"output.band{tail + 2}.projection.weight")
            if projection is None:
                projection = self.w[f"{own}.projection.weight"].t()
            weights[f"tail.{tail}.0.weight"] = projection
            weights[f"tail.{tail}.1.weight"] = self.w[f"{own}.weight"]
            if biased:
                bias = self.w[f"output.band{tail + 2}.bias"][0]
                module.tail[tail][1] = torch.nn.Linear(*reversed(self.w[f"{own}.weight"].shape)).to(self.dtype)
                weights[f"tail.{tail}.1.bias"] = bias
        with torch.autocast("cpu", enabled=False):  # which this module cannot do
            return -torch.func.functional_call(module, weights, (x.to(self.dtype), wanted)).output.sum()

    def losses(self, batch):
        source, source_padding = pad(batch["source_ids"], batch["source_offsets"])
        target, target_padding = pad(batch["target_in"], batch["target_offsets"])
        wanted, _ = pad(batch["target_out"], batch["target_offsets"])
        memory = self.stack(self.embed(source, "source"), "encoder", self.case.encoder, source_padding)
        x = self.stack(self.embed(target, "target"), "decoder", self.case.decoder, target_padding, memory,
                       source_padding)
        loss = self.output(x[~target_padding], wanted[~target_padding])
        return loss, loss


def make(name):
    make_transformer.SMOOTHING = 0.0
    make_transformer.make(name, HERE, lambda case: {"words": f"{case.vocab[0]} {case.vocab[1]}"})


if __name__ == "__main__":
    make_transformer.Case, make_transformer.Network = AdaptiveCase, AdaptiveNetwork
    for case_name in sys.argv[1:] or CASES:
        make(case_name)
