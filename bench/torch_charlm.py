#!/usr/bin/env python3
"""PyTorch as a peer for character language models: a pre-norm decoder with scaled_dot_product_attention, trained on random
bytes. Prints a line RESULT with JSON: tokens a second over all measured steps, their median, peak memory in MiB.
  torch_charlm.py [--dtype fp32|bf16] [--layers 12] [--d 256] [--context 512] [--tokens 4096] [--steps 15] [--compile]
The newest settings that are fast on a CPU: autocast to bfloat16, fused AdamW, one product for queries, keys and values, no
dropout."""

import argparse
import json
import resource
import time
from statistics import median

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCABULARY = 259


def options():
    parser = argparse.ArgumentParser(description="a character language model in PyTorch")
    parser.add_argument("--dtype", choices=("fp32", "bf16"), default="bf16")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--d", type=int, default=256)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--warm", type=int, default=3)
    parser.add_argument("--compile", action="store_true")
    return parser.parse_args()


class Layer(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Model(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.words, self.places = nn.Embedding(VOCABULARY, o.d), nn.Embedding(o.context, o.d)
        self.layers = nn.ModuleList(Layer(o.d, o.heads) for _ in range(o.layers))
        self.norm = nn.LayerNorm(o.d)
        for table in (self.words, self.places):
            nn.init.normal_(table.weight, 0, 0.02)

    def forward(self, x):
        h = self.words(x) + self.places(torch.arange(x.size(1)))
        for layer in self.layers:
            h = layer(h)
        return F.linear(self.norm(h), self.words.weight)


def main():
    o = options()
    torch.set_num_threads(o.threads)
    torch.manual_seed(1)
    model = Model(o)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    step_model = torch.compile(model) if o.compile else model
    times, loss = [], None
    for _ in range(o.steps + o.warm):
        text = torch.randint(3, VOCABULARY, (o.tokens // o.context, o.context + 1))
        begin = time.perf_counter()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=o.dtype == "bf16"):
            logits = step_model(text[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        times.append(time.perf_counter() - begin)
    times = times[o.warm:]
    tokens = o.tokens // o.context * o.context
    print("RESULT " + json.dumps({
        "loss": loss.item(), "parameters": sum(p.numel() for p in model.parameters()),
        "all": {"tok_s": tokens * len(times) / sum(times), "step_ms_median": 1e3 * median(times)},
        "peak_rss_MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


if __name__ == "__main__":
    main()
