#!/usr/bin/env python3
"""PyTorch as a peer for forward-mode derivatives of a shared encoder: a period of two post-norm layers with 8 directions
by torch.func.jvp under torch.vmap, as bench/dynamics.c. Prints a line of JSON: seconds of a period (median), peak memory
in MB.
  torch_dynamics.py [--threads 2] [--periods 10] [--dtype fp32|fp64] [--fused]
--fused: scaled_dot_product_attention in its form that is differentiated forward, else matrix products and softmax."""

import argparse
import json
import resource
import time
from statistics import median

import torch
import torch.nn.functional as F

D, FFN, HEADS, LENGTH, SENTENCES, DIRECTIONS, LAYERS = 512, 1024, 8, 20, 20, 8, 2


def options():
    parser = argparse.ArgumentParser(description="forward-mode derivatives of a shared encoder in PyTorch")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--periods", type=int, default=10)
    parser.add_argument("--dtype", choices=("fp32", "fp64"), default="fp32")
    parser.add_argument("--fused", action="store_true")
    return parser.parse_args()


def matrix(rows, cols, dtype):
    return torch.randn(rows, cols, dtype=dtype) * (2.0 / (rows + cols)) ** 0.5


def layer(dtype):
    shapes = {"qkv": (3 * D, D), "out": (D, D), "up": (FFN, D), "down": (D, FFN)}
    weights = {name: (matrix(*shape, dtype), 0.1 * torch.randn(shape[0], dtype=dtype)) for name, shape in shapes.items()}
    for name in ("norm1", "norm2"):
        weights[name] = (1.0 + 0.1 * torch.randn(D, dtype=dtype), 0.1 * torch.randn(D, dtype=dtype))
    return weights


def attention(q, k, v, fused):
    if fused:
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            return F.scaled_dot_product_attention(q, k, v)
    return ((q @ k.transpose(-1, -2)) * (D // HEADS) ** -0.5).softmax(-1) @ v


def period(x, layers, fused):
    for w in layers:
        qkv = F.linear(x, *w["qkv"]).view(SENTENCES, LENGTH, 3, HEADS, D // HEADS)
        q, k, v = (qkv[:, :, i].transpose(1, 2) for i in range(3))
        y = attention(q, k, v, fused).transpose(1, 2).reshape(SENTENCES, LENGTH, D)
        x = F.layer_norm(x + F.linear(y, *w["out"]), (D,), *w["norm1"])
        x = F.layer_norm(x + F.linear(F.relu(F.linear(x, *w["up"])), *w["down"]), (D,), *w["norm2"])
    return x


def main():
    o = options()
    torch.set_num_threads(o.threads)
    torch.manual_seed(1)
    dtype = torch.float32 if o.dtype == "fp32" else torch.float64
    layers = [layer(dtype) for _ in range(LAYERS)]
    x = torch.randn(SENTENCES, LENGTH, D, dtype=dtype)
    directions = torch.randn(DIRECTIONS, SENTENCES, LENGTH, D, dtype=dtype)

    def push(x, v):
        return torch.func.jvp(lambda x: period(x, layers, o.fused), (x,), (v,))

    step = torch.vmap(push, in_dims=(None, 0), out_dims=(None, 0))
    seconds = []
    with torch.no_grad():
        for i in range(o.periods + 2):
            start = time.perf_counter()
            x, directions = step(x, directions)
            if i >= 2:
                seconds.append(time.perf_counter() - start)
    print(json.dumps({"threads": o.threads, "dtype": o.dtype, "seconds": median(seconds),
                      "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6}))


if __name__ == "__main__":
    main()
