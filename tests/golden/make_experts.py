#!/usr/bin/env python3
"""Makes experts_*.safetensors, noisy_*.safetensors and memory_*.safetensors of test_golden.c: experts, with noisy gating
too, and memories with product keys, in encoder and decoder, as PyTorch computes them from the published equations
(Shazeer et al. 2017, Lepikhin et al. 2020, Fedus et al. 2021; Lample et al. 2019), each expert for all tokens, all pairs
of keys. The noise is drawn as src/ops/dropout.h says, with the seed and the step of the test. Format and everything except the
feed-forward layers are those of make_transformer.py.

    python3 tests/golden/make_experts.py            (needs torch and safetensors; writes *.safetensors into its folder)

Gradients are those of the loss and the balance losses of all layers; result/loss is without these. Seeds are tried until
no token's choice is close, so that no rounding can change it.
"""

import functools
import math
import os
import sys

import torch
import torch.nn.functional as F

import make_transformer as golden
from make_transformer import D, HEADS

# kind: (what stands in the description, experts, choices, width, weight of the balance loss, function, frozen)
EXPERTS = {
    "A": ("{ type: switch, experts: 4, width: 24, balance: 0.5, noise: 0, capacity: 4, activation: relu }", 4, 1, 24,
          0.5, F.relu, "no"),
    "B": ("{ type: moe, experts: 5, width: 16, balance: 0, noise: 0, capacity: 5, activation: gelu }", 5, 2, 16, 0.0,
          F.gelu, "no"),
    "C": ("{ type: moe, experts: 6, top: 3, width: 16, balance: 0.25, noise: 0, capacity: 6, activation: swish }", 6, 3,
          16, 0.25, F.silu, "no"),
    "E": ("{ type: switch, experts: 4, width: 24, noise: 0.1, activation: relu }", 4, 1, 24, 0.0, F.relu, "yes"),
}
# The same with the weights of importance and load.
NOISY = {
    "N": ("{ type: moe, gating: noisy, experts: 5, importance: 0.3, load: 0.7, width: 16, capacity: 5, activation: gelu }",
          5, 2, 16, (0.3, 0.7), F.gelu, "no"),
    "M": ("{ type: moe, gating: noisy, experts: 7, top: 3, importance: 0.2, load: 0, width: 12, capacity: 7, "
          "activation: swish }", 7, 3, 12, (0.2, 0.0), F.silu, "no"),
    "P": ("{ type: moe, gating: noisy, experts: 4, top: 2, importance: 0, load: 0.5, width: 16, capacity: 4, "
          "activation: relu }", 4, 2, 16, (0.0, 0.5), F.relu, "no"),
    "Q": ("{ type: moe, gating: noisy, experts: 4, top: 2, width: 16, activation: relu }", 4, 2, 16, (0.0, 0.0), F.relu,
          "yes"),
}
EXPERTS |= NOISY
SEED, STEP = 1, 1  # of test_golden.c
# kind: (what stands in the description, heads, keys, nearest, width of half a query, frozen)
MEMORIES = {
    "H": ("{ type: product_keys, memory_heads: 2, keys: 6, nearest: 3, query: 8 }", 2, 6, 3, 8, "no"),
    "K": ("{ type: product_keys, memory_heads: 3, keys: 5, nearest: 5, query: 6 }", 3, 5, 5, 6, "yes"),
}
golden.CASES |= {"memory_post": ("post", "decoder", "H L K", "H1 H1"), "memory_pre": ("pre", "none", "K1 H K1", "H L")}
golden.CASES |= {"experts_post": ("post", "decoder", "A B E", "C A1 A1"),
                 "experts_pre": ("pre", "none", "B1 C B1", "E A")}
golden.CASES |= {"noisy_post": ("post", "decoder", "N P M", "M N1 N1"),
                 "noisy_pre": ("pre", "none", "N1 Q N1", "M P")}
golden.RECURRENT, golden.CONVOLUTIONS = {}, {}  # whose letters these are there
LEAST_MARGIN = {"experts": 0.05, "noisy": 0.03, "memory": 0.005}  # of two logits or sums that decide
golden.SEEDS = 20000


def philox(counter, key):
    """Philox 4x32-10 (Salmon et al. 2011)."""
    c, k = list(counter), list(key)
    for _ in range(10):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [q >> 32 ^ c[1] ^ k[0], q & 0xFFFFFFFF, p >> 32 ^ c[3] ^ k[1], p & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


@functools.lru_cache(maxsize=None)
def normals(row, site, count):
    """Standard normal numbers of a row, each from two numbers of 16 bits."""
    numbers = []
    for block in range((2 * count + 7) // 8):
        for word in philox((block, row, site, STEP), (SEED, 0)):
            numbers += [word & 0xFFFF, word >> 16]
    pairs = [((a + 0.5) / 65536, (b + 0.5) / 65536) for a, b in zip(numbers[::2], numbers[1::2])]
    return [math.sqrt(-2 * math.log(a)) * math.cos(2 * math.pi * b) for a, b in pairs[:count]]


def variation(sums):
    """Squared coefficient of variation."""
    return sums.var(unbiased=False) / sums.mean()**2


class Case(golden.Case):
    def __init__(self, name):
        super().__init__(name)
        for kind, (text, *_, frozen) in (EXPERTS | MEMORIES).items():
            self.config += f"  {kind}: {{ mixer: attention, heads: {HEADS}, ffn: {text}, frozen: {frozen} }}\n"

    def suits(self, batch):
        network = Network(self, torch.float64)
        with torch.no_grad():
            network.losses(batch)
        return network.margin >= LEAST_MARGIN[self.seed.split("_")[0]]

    def order(self, kind):
        return self.norm

    def make_layer(self, side, kind, name):
        if kind == "L":
            return super().make_layer(side, kind, name)
        trained = (EXPERTS | MEMORIES)[kind][-1] == "no"
        self.make_linear(f"{name}.self_attn.qkv", trained, 3 * D, D, 1.5)
        self.make_linear(f"{name}.self_attn.out", trained, D, D, 0.4)
        self.make_norm(f"{name}.self_attn.norm", trained)
        if side == "decoder":
            self.make_linear(f"{name}.cross_attn.q", trained, D, D, 1.5)
            self.make_linear(f"{name}.cross_attn.kv", trained, 2 * D, D)
            self.make_linear(f"{name}.cross_attn.out", trained, D, D)
            self.make_norm(f"{name}.cross_attn.norm", trained)
        self.make_norm(f"{name}.ffn.norm", trained)
        if kind in MEMORIES:
            _, heads, keys, _, width, _ = MEMORIES[kind]
            self.make_linear(f"{name}.ffn.queries", trained, 2 * heads * width, D)
            self.add(f"{name}.ffn.queries.norm.gain", trained, 1, 2 * heads * width, scale=0.1, mean=1.0)
            self.add(f"{name}.ffn.queries.norm.bias", trained, 1, 2 * heads * width, scale=0.1)
            self.add(f"{name}.ffn.keys.weight", trained, 2 * heads * keys, width, scale=1.5 * width**-0.5)
            self.add(f"{name}.ffn.values.weight", trained, keys**2, D, scale=0.5)
            return
        _, experts, _, width, *_ = EXPERTS[kind]
        self.add(f"{name}.ffn.router.weight", trained, experts, D, scale=4.0 * D**-0.5)
        if kind in NOISY and NOISY[kind][-1] != "yes":
            self.add(f"{name}.ffn.noise.weight", trained, experts, D, scale=1.5 * D**-0.5)
        self.add(f"{name}.ffn.in.weight", trained, experts * width, D, scale=D**-0.5)
        self.add(f"{name}.ffn.in.bias", trained, 1, experts * width, scale=0.1)
        self.add(f"{name}.ffn.out.weight", trained, experts * D, width, scale=width**-0.5)
        self.add(f"{name}.ffn.out.bias", trained, 1, experts * D, scale=0.1)


class Network(golden.Network):
    def __init__(self, case, dtype):
        super().__init__(case, dtype)
        self.balance, self.margin, self.sites = 0.0, float("inf"), 0
        self.padding = None

    def layer(self, x, name, kind, padding, memory=None, memory_padding=None):
        self.padding = padding
        return super().layer(x, name, kind, padding, memory, memory_padding)

    def memory(self, x, name, kind):
        _, heads, keys, nearest, width, _ = MEMORIES[kind]
        queries = self.linear(x, f"{name}.queries")
        queries = F.layer_norm(queries, queries.shape[-1:], self.w[f"{name}.queries.norm.gain"][0],
                               self.w[f"{name}.queries.norm.bias"][0], 1e-5)
        halves = self.w[f"{name}.keys.weight"].view(heads, 2, keys, width)
        scores = torch.einsum("blhpw,hpnw->blhpn", queries.unflatten(-1, (heads, 2, width)), halves)
        scores = (scores[..., 0, :, None] + scores[..., 1, None, :]).flatten(-2)
        by_size = scores[~self.padding].sort(dim=-1, descending=True).values
        self.margin = min(self.margin, (by_size[..., nearest - 1] - by_size[..., nearest]).min().item())
        best, chosen = torch.topk(scores, nearest, dim=-1)
        values = self.w[f"{name}.values.weight"][chosen]
        return (torch.softmax(best, dim=-1)[..., None] * values).sum(dim=(2, 3))

    def gate(self, x, name, kind):
        """Equations 3 to 11 of Shazeer et al. 2017: gates of the choices and choices, and the losses."""
        _, experts, choices, _, weights, _, frozen = NOISY[kind]
        clean = F.linear(x, self.w[f"{name}.router.weight"])
        if frozen == "yes":
            best, chosen = torch.topk(clean, choices, dim=-1)
            return clean, torch.softmax(best, dim=-1), chosen
        real = ~self.padding
        noise = torch.zeros_like(clean)
        rows = [normals(row, self.sites, experts) for row in range(int(real.sum()))]
        noise[real] = torch.tensor(rows, dtype=torch.float64).to(clean.dtype)
        self.sites += 1
        deviation = F.softplus(F.linear(x, self.w[f"{name}.noise.weight"])) + 1e-6
        noisy = clean + noise * deviation
        best, chosen = torch.topk(noisy, choices + 1, dim=-1)
        gates, chosen = torch.softmax(best[..., :choices], dim=-1), chosen[..., :choices]
        all_gates = torch.zeros_like(clean).scatter(-1, chosen, gates)
        inside = torch.zeros_like(clean).scatter(-1, chosen, 1.0) > 0
        threshold = torch.where(inside, best[..., choices:choices + 1], best[..., choices - 1:choices])
        kept = 0.5 * (1 + torch.erf((clean - threshold) / deviation / math.sqrt(2)))
        self.balance = self.balance + weights[0] * variation(all_gates[real].sum(dim=0))
        self.balance = self.balance + weights[1] * variation(kept[real].sum(dim=0))
        return noisy, gates, chosen

    def channels(self, x, name, kind):
        if kind == "L":
            return super().channels(x, name, kind)
        if kind in MEMORIES:
            return self.memory(x, name, kind)
        _, experts, choices, width, weight, function, _ = EXPERTS[kind]
        real = ~self.padding
        if kind in NOISY:
            logits, gates, chosen = self.gate(x, name, kind)
        else:
            logits = F.linear(x, self.w[f"{name}.router.weight"])
            gates, chosen = torch.topk(torch.softmax(logits, dim=-1), choices, dim=-1)
            if choices > 1:
                gates = gates / gates.sum(dim=-1, keepdim=True)
        p = torch.softmax(logits, dim=-1)
        by_size = logits[real].sort(dim=-1, descending=True).values
        self.margin = min(self.margin, (by_size[:, :choices] - by_size[:, 1:choices + 1]).min().item())
        if kind not in NOISY:
            first = F.one_hot(chosen[real][:, 0], experts).to(p.dtype).mean(dim=0)
            self.balance = self.balance + weight * experts * (first * p[real].mean(dim=0)).sum()
        hidden = torch.einsum("bld,ewd->blew", x, self.w[f"{name}.in.weight"].view(experts, width, D))
        hidden = function(hidden + self.w[f"{name}.in.bias"].view(experts, width))
        every = torch.einsum("blew,edw->bled", hidden, self.w[f"{name}.out.weight"].view(experts, D, width))
        every = every + self.w[f"{name}.out.bias"].view(experts, D)
        share = torch.zeros_like(p).scatter(-1, chosen, gates)
        return (share[..., None] * every).sum(dim=2)

    def run(self, batch):
        loss, nll = self.losses(batch)
        (loss / batch["target_in"].numel() + self.balance).backward()
        return loss.item(), nll.item(), {name: w.grad for name, w in self.w.items() if w.requires_grad}


if __name__ == "__main__":
    golden.Case, golden.Network = Case, Network
    for case_name in sys.argv[1:] or ("experts_post", "experts_pre", "noisy_post", "noisy_pre", "memory_post",
                                      "memory_pre"):
        golden.make(case_name, os.path.dirname(os.path.abspath(__file__)))
