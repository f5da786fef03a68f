#!/usr/bin/env python3
"""Writes series_tanh.safetensors and series_relu.safetensors: echo state networks as reservoirpy trains and runs them.

Needs reservoirpy 0.4 and safetensors. Each file has the matrices (W, Win, bias), the series, what the ridge regression
found (Wout, Wout_bias), the last state of training, forecasts one step ahead and in closed loop behind the training rows,
and the NRMSE of both (nrmse), by NumPy.
"""
import pathlib

import numpy as np
import reservoirpy
from reservoirpy.nodes import Reservoir, Ridge
from safetensors.numpy import save_file

FOLDER = pathlib.Path(__file__).parent
ROWS, TRAIN, WARMUP, STEPS = 330, 280, 20, 40


def series():
    """Two coupled oscillations that never repeat."""
    t = np.arange(ROWS) * 0.3
    return np.stack([np.sin(t) + 0.5 * np.sin(np.sqrt(3) * t), 0.3 + np.cos(t) * np.sin(np.sqrt(2) * t)], axis=1)


def nrmse(forecast, truth):
    """By the variance of the rows compared. reservoirpy's nrmse(norm="var") divides by it and not by its root."""
    return np.sqrt(np.mean((forecast - truth) ** 2 / truth.var(axis=0)))


def make(name, activation, units, lr, sr, ridge, seed):
    rng = np.random.default_rng(seed)
    w = rng.normal(size=(units, units)) * (rng.random((units, units)) < 0.2)
    w *= sr / np.abs(np.linalg.eigvals(w)).max()
    win, bias = rng.uniform(-0.6, 0.6, (units, 2)), rng.uniform(-0.4, 0.4, units)
    u = series()
    reservoir = Reservoir(W=w, Win=win, bias=bias, lr=lr, activation=activation)
    readout = Ridge(ridge=ridge)
    states = reservoir.run(u[: TRAIN - 1])
    readout.fit(states[WARMUP:], u[WARMUP + 1 : TRAIN])
    state = reservoir.run(u[TRAIN - 1 : TRAIN])  # the reservoir goes on from its last state
    one, closed = [], []
    for kind, out in (("one", one), ("closed", closed)):
        x = state[0].copy()
        for k in range(STEPS):
            y = readout.run(x[None])[0]
            out.append(y)
            nxt = u[TRAIN + k] if kind == "one" else y
            x = reservoir._step({"out": x}, nxt)["out"]
    tensors = {"W": w, "Win": win, "bias": bias, "series": u, "Wout": readout.Wout, "Wout_bias": readout.bias,
               "state": states[-1], "one_step": np.array(one), "closed": np.array(closed),
               "nrmse": np.array([nrmse(np.array(out), u[TRAIN : TRAIN + STEPS]) for out in (one, closed)])}
    tensors = {key: np.ascontiguousarray(value, dtype=np.float64) for key, value in tensors.items()}
    texts = {"activation": activation, "lr": repr(lr), "sr": repr(sr), "ridge": repr(ridge), "train": str(TRAIN),
             "warmup": str(WARMUP), "reservoirpy": reservoirpy.__version__}
    save_file(tensors, FOLDER / name, metadata=texts)


make("series_tanh.safetensors", "tanh", 40, 0.35, 0.9, 1e-4, 1)
make("series_relu.safetensors", "relu", 30, 1.0, 0.7, 1e-3, 2)
