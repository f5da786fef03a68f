#!/usr/bin/env python3
"""Makes funnel_*.safetensors for test_golden.c: loss and gradients of models whose encoders are Funnel-Transformers (Dai et
al. 2020): rows pooled by twos between blocks, repeated behind the last block and added to the first block's output.

    python3 tests/golden/make_funnel.py     (needs torch and safetensors; writes *.safetensors into its folder)

Format and layers are those of make_transformer.py.
"""

import os

import torch.nn.functional as F

import make_transformer as base

base.CASES |= {"funnel_post": ("post", "decoder", "L R L1 L1 L", "L"), "funnel_pre": ("pre", "none", "L L1 R L1", "L R")}
# Layers behind which rows are pooled, and the one behind which they are repeated.
POOLS = {"funnel_post": ((2, 3), 4), "funnel_pre": ((1,), 4)}


class Case(base.Case):
    def __init__(self, name):
        super().__init__(name)
        self.pool_after, self.upsample_after = POOLS[name]
        keys = f"pool_after: {list(self.pool_after)}, upsample_after: {self.upsample_after}, layers:"
        self.config = self.config.replace("encoder: { layers:", f"encoder: {{ {keys}")


def pool(x, padding):
    """The means of two rows each, of those that there are."""
    if x.shape[1] % 2:
        x, padding = F.pad(x, (0, 0, 0, 1)), F.pad(padding, (0, 1), value=True)
    there = (~padding).to(x.dtype).unflatten(1, (-1, 2))
    counts = there.sum(dim=2)
    sums = (x.unflatten(1, (-1, 2)) * there[..., None]).sum(dim=2)
    return sums / counts.clamp(min=1)[..., None], counts == 0


class Network(base.Network):
    def stack(self, x, side, layers, padding, *others):
        if side == "decoder":
            return super().stack(x, side, layers, padding, *others)
        whole, first, times = padding, None, 0
        for depth, (kind, set_name) in enumerate(layers, 1):
            x = self.layer(x, f"{side}.{set_name}", kind, padding)
            if depth in self.case.pool_after:
                first = x if first is None else first
                x, padding = pool(x, padding)
                times += 1
            if depth == self.case.upsample_after:
                x = x.repeat_interleave(2**times, dim=1)[:, :first.shape[1]] + first
                padding = whole
        return self.layer_norm(x, f"{side}.norm") if self.case.order(layers[-1][0]) == "pre" else x


if __name__ == "__main__":
    base.Case, base.Network = Case, Network
    for case_name in POOLS:
        base.make(case_name, os.path.dirname(os.path.abspath(__file__)))
