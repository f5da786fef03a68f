#!/usr/bin/env python3
"""Makes experts_*.safetensors and memory_*.safetensors of test_golden.c: experts, and memories with product keys, in
encoder and decoder, as PyTorch computes them from the published equations (Shazeer et al. 2017, Lepikhin et al. 2020,
Fedus et al. 2021; Lample et al. 2019), each expert for all tokens, all pairs of keys. Format and everything beside the
feed-forward layers are those of make_transformer.py.

    python3 tests/golden/make_experts.py            (needs torch and safetensors; writes *.safetensors beside itself)

Gradients are those of the loss and the balance losses of all layers; result/loss is without these. Seeds are tried until
no token's choice is close, so that no rounding can change it.
"""

import os
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

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
# kind: (what stands in the description, heads, keys, nearest, width of half a query, frozen)
MEMORIES = {
    "H": ("{ type: product_keys, memory_heads: 2, keys: 6, nearest: 3, query: 8 }", 2, 6, 3, 8, "no"),
    "K": ("{ type: product_keys, memory_heads: 3, keys: 5, nearest: 5, query: 6 }", 3, 5, 5, 6, "yes"),
}
golden.CASES |= {"memory_post": ("post", "decoder", "H L K", "H1 H1"), "memory_pre": ("pre", "none", "K1 H K1", "H L")}
golden.CASES |= {"experts_post": ("post", "decoder", "A B E", "C A1 A1"),
                 "experts_pre": ("pre", "none", "B1 C B1", "E A")}
golden.RECURRENT, golden.CONVOLUTIONS = {}, {}  # whose letters these are there
LEAST_MARGIN = {"experts": 0.05, "memory": 0.005}  # of two logits or sums that decide
SEEDS = 20000


class Case(golden.Case):
    def __init__(self, name, seed):
        self.seed = seed
        super().__init__(name)
        for kind, (text, *_, frozen) in (EXPERTS | MEMORIES).items():
            self.config += f"  {kind}: {{ mixer: attention, heads: {HEADS}, ffn: {text}, frozen: {frozen} }}\n"

    def order(self, kind):
        return self.norm

    def make_layer(self, side, kind, name):
        if self.seed is not None:  # the first layer
            self.generator.manual_seed(self.seed)
            self.seed = None
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
        self.add(f"{name}.ffn.in.weight", trained, experts * width, D, scale=D**-0.5)
        self.add(f"{name}.ffn.in.bias", trained, 1, experts * width, scale=0.1)
        self.add(f"{name}.ffn.out.weight", trained, experts * D, width, scale=width**-0.5)
        self.add(f"{name}.ffn.out.bias", trained, 1, experts * D, scale=0.1)


class Network(golden.Network):
    def __init__(self, case, dtype):
        super().__init__(case, dtype)
        self.balance, self.margin = 0.0, float("inf")
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

    def channels(self, x, name, kind):
        if kind == "L":
            return super().channels(x, name, kind)
        if kind in MEMORIES:
            return self.memory(x, name, kind)
        _, experts, choices, width, weight, function, _ = EXPERTS[kind]
        logits = F.linear(x, self.w[f"{name}.router.weight"])
        p = torch.softmax(logits, dim=-1)
        gates, chosen = torch.topk(p, choices, dim=-1)
        if choices > 1:
            gates = gates / gates.sum(dim=-1, keepdim=True)
        real = ~self.padding
        by_size = logits[real].sort(dim=-1, descending=True).values
        self.margin = min(self.margin, (by_size[:, :choices] - by_size[:, 1:choices + 1]).min().item())
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


def find(name):
    for seed in range(SEEDS):
        case = Case(name, seed)
        batch = golden.make_batch(case.vocab)
        network = Network(case, torch.float64)
        with torch.no_grad():
            network.losses(batch)
        if network.margin >= LEAST_MARGIN[name.split("_")[0]]:
            return case, batch, seed, network.margin
    raise SystemExit(f"{name}: no seed has so wide a margin")


def make(name, folder):
    case, batch, seed, margin = find(name)
    loss, nll, gradients = Network(case, torch.float64).run(batch)
    loss32, _, gradients32 = Network(case, torch.float32).run(batch)
    worst = abs(loss32 - loss) / loss
    for key, exact in gradients.items():
        worst = max(worst, ((gradients32[key].double() - exact).abs().max() / exact.abs().max()).item())
    assert worst < 2e-5, (name, worst)
    tensors = {f"weight/{key}": value for key, value in case.weights.items()}
    tensors |= {f"gradient/{key}": value.float() for key, value in gradients.items()}
    tensors |= {f"batch/{key}": value for key, value in batch.items()}
    tensors["result/loss"] = torch.tensor([loss], dtype=torch.float64)
    tensors["result/nll"] = torch.tensor([nll], dtype=torch.float64)
    path = os.path.join(folder, f"{name}.safetensors")
    save_file(tensors, path, metadata={"config": case.config, "label_smoothing": repr(golden.SMOOTHING)})
    print(f"{name}: seed {seed}, margin {margin:.2f}, loss {loss:.6f}, PyTorch fp32 against fp64 {worst:.1e}, "
          f"{os.path.getsize(path):,} bytes")


if __name__ == "__main__":
    for case_name in sys.argv[1:] or ("experts_post", "experts_pre", "memory_post", "memory_pre"):
        make(case_name, os.path.dirname(os.path.abspath(__file__)))
