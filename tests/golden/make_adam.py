"""Prints the numbers of tests/kernels/test_adam.c: three steps of torch.optim.Adam and AdamW on eight weights.

Usage: python3 tests/golden/make_adam.py
"""

import torch

WEIGHTS = [0.5, -1.25, 0.0, 3.0, -0.001, 1e-6, -2.5, 0.75]
GRADIENTS = [
    [0.1, -0.2, 0.3, 0.0, 1e-5, -1e-9, 2.0, -0.5],
    [-0.4, -0.2, 0.1, 0.0, 2e-5, 3e-9, 1.0, 0.25],
    [0.25, 0.2, -0.6, 1e-3, -1e-5, 1e-9, -4.0, 0.125],
]


def run(optimiser, weight_decay):
    weights = torch.tensor(WEIGHTS, dtype=torch.float64, requires_grad=True)
    chosen = optimiser([weights], lr=0.01, betas=(0.9, 0.98), eps=1e-8, weight_decay=weight_decay)
    for gradient in GRADIENTS:
        weights.grad = torch.tensor(gradient, dtype=torch.float64)
        torch.nn.utils.clip_grad_norm_([weights], 1.0)
        chosen.step()
    return weights.detach()


for name, optimiser, weight_decay in (
    ("adam", torch.optim.Adam, 0.0),
    ("adam_decay", torch.optim.Adam, 0.1),
    ("adamw", torch.optim.AdamW, 0.1),
):
    print(f"{name}: {{{', '.join(f'{x:.12g}' for x in run(optimiser, weight_decay).tolist())}}}")
