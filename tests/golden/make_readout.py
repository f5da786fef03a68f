#!/usr/bin/env python3
"""Prints the values of tests/unit/test_readout.c: ridge regression on classes and its scale, by NumPy and SciPy."""
import numpy as np
from scipy.optimize import minimize_scalar

N, V, T, RIDGE = 3, 4, 14, 0.5
t, i = np.mgrid[0:T, 0:N]
x = (t * 7 + i * 5 + t * i) % 11 / 4.0 - 1
classes = (np.arange(T) ** 2 + 1) % V  # the class 0 never comes
classes[5] = 3
y = np.eye(V)[classes]

# The bias is a column of ones without a penalty.
h = np.hstack([x, np.ones((T, 1))])
w = np.linalg.solve(h.T @ h + RIDGE * np.diag([1, 1, 1, 0]), h.T @ y)
print("weights", np.array2string(w, separator=", ", floatmode="maxprec", precision=16))

share = np.maximum(y.mean(0), 0.5 / T)
gaps = h @ w - y.mean(0)
for smoothing in (0.0, 0.1):
    best = None
    for power in (0, 0.25, 0.5, 0.75, 1):

        def loss(scale):
            z = np.log(share) + scale * gaps * share**-power
            p = z - np.log(np.exp(z).sum(1, keepdims=True))
            nll = -p[np.arange(T), classes].mean()
            return (1 - smoothing) * nll - smoothing * p.mean(), nll

        found = minimize_scalar(lambda s: loss(s)[0], bounds=(0, 50), method="bounded", options={"xatol": 1e-10})
        if best is None or found.fun < best[2]:
            best = (power, found.x, *loss(found.x))
    print(f"smoothing {smoothing}: power, scale, loss, nll", ", ".join(f"{b:.10g}" for b in best))
