#!/usr/bin/env python3
"""Makes universal_*.safetensors for test_golden.c: loss and gradients of Universal Transformers (Dehghani et al. 2019)
with embeddings of steps and adaptive computation time (Graves 2016), row by row as the papers' equations have it.

    python3 tests/golden/make_universal.py     (needs torch and safetensors; writes *.safetensors into its folder)

Format and layers are those of make_transformer.py. Gradients are those of the loss and the ponder costs; result/loss is
without these. Seeds are tried until no row's halting is close and rows halt in several steps.
"""

import math
import os

import torch

import make_transformer as base
from make_transformer import D

POSITIONS = {"universal_steps": "none", "universal_act": "none", "universal_both": "sinusoidal"}
base.CASES |= {"universal_steps": ("post", "decoder", "L1 L1 L1", "L1 R1 L1 R1"),
               "universal_act": ("pre", "none", "L1 L1 L1 L1", "L1 L1 L1"),
               "universal_both": ("post", "all", "L1 L1 L1 L1", "L1 F1 L1 F1 L1 F1")}
# Of encoder and decoder: (layers of a step, embeddings, threshold, weight of the ponder cost)
STEPS = {"universal_steps": ((1, True, 0, 0), (2, True, 0, 0)),
         "universal_act": ((1, False, 0.9, 0.3), (1, False, 0.8, 0.2)),
         "universal_both": ((1, True, 0.9, 0.2), (2, True, 0.8, 0.0))}
LEAST_MARGIN = 0.02  # of a sum of probabilities and the threshold


class Case(base.Case):
    def __init__(self, name):
        super().__init__(name)
        self.steps = dict(zip(("encoder", "decoder"), STEPS[name]))
        self.positions = POSITIONS[name]
        self.config = self.config.replace("dropout: 0 }", f"dropout: 0, positions: {self.positions} }}")
        for side, (_, embeds, threshold, weight) in self.steps.items():
            keys = ", step_embeddings: yes" if embeds else ""
            if threshold:
                keys += f", act_threshold: {threshold}, act_loss_weight: {weight}"
                self.add(f"{side}.halting.weight", True, 1, D, scale=D**-0.5)
                self.add(f"{side}.halting.bias", True, 1, 1, scale=0.1, mean=-0.5)
            start = self.config.index(f"{side}: {{ layers:")
            end = self.config.index(" }", start)
            self.config = self.config[:end] + keys + self.config[end:]

    def suits(self, batch):
        network = Network(self, torch.float64)
        with torch.no_grad():
            network.losses(batch)
        halting = any(threshold for _, _, threshold, _ in self.steps.values())
        return not halting or (network.margin >= LEAST_MARGIN and len(network.counts) > 2)


class Network(base.Network):
    def __init__(self, case, dtype):
        super().__init__(case, dtype)
        self.margin, self.counts, self.ponder = math.inf, set(), 0.0

    def embed(self, ids, table):
        x = super().embed(ids, table)
        return x if self.case.positions != "none" else x - self.sinusoids(ids.shape[1])

    def sinusoids(self, length):
        return torch.stack([self.sinusoid(i) for i in range(length)])

    def sinusoid(self, number):
        half = D // 2
        rates = torch.exp(torch.arange(half, dtype=torch.float64) * (-math.log(10000.0) / (half - 1)))
        return torch.cat([torch.sin(number * rates), torch.cos(number * rates)]).to(self.dtype)

    def stack(self, x, side, layers, padding, *others):
        period, embeds, threshold, weight = self.case.steps[side]
        steps = len(layers) // period
        outputs, halting = [], []
        running = torch.ones_like(padding)
        total = torch.zeros(padding.shape, dtype=self.dtype)
        for t in range(steps):
            before = x
            if embeds:
                x = x + self.sinusoids(x.shape[1]) + self.sinusoid(t)
            if threshold:
                p = torch.sigmoid(self.linear(x, f"{side}.halting")[..., 0])
                halts = (total + p > threshold) if t < steps - 1 else torch.ones_like(running)
                if t < steps - 1:
                    gaps = (total + p - threshold).abs()[running & ~padding]
                    self.margin = min([self.margin] + gaps.tolist())
                w = torch.where(running, torch.where(halts, 1.0 - total, p), torch.zeros_like(p))
                halting.append((running & halts & ~padding, w))
            for kind, set_name in layers[t * period:(t + 1) * period]:
                x = self.layer(x, f"{side}.{set_name}", kind, padding, *others)
            if threshold:
                x = torch.where(running[..., None], x, before)
                outputs.append(w[..., None] * x)
                total = torch.where(running & ~halts, total + p, total)
                running = running & ~halts
        if threshold:
            x = sum(outputs)
            rows = (~padding).sum()
            for t, (here, w) in enumerate(halting):
                if here.any():
                    self.counts.add((side, t))
                self.ponder = self.ponder + weight * ((t + 1.0 + w) * here).sum() / rows
        return self.layer_norm(x, f"{side}.norm") if self.case.order(layers[-1][0]) == "pre" else x

    def run(self, batch):
        self.ponder = 0.0
        loss, nll = self.losses(batch)
        (loss / batch["target_in"].numel() + self.ponder).backward()
        return loss.item(), nll.item(), {name: w.grad for name, w in self.w.items() if w.requires_grad}


if __name__ == "__main__":
    base.Case, base.Network = Case, Network
    for case_name in POSITIONS:
        base.make(case_name, os.path.dirname(os.path.abspath(__file__)))
