"""A period of a shared encoder with 8 directions by forward-mode derivatives, as bench/dynamics.c times it, against
PyTorch's torch.func.jvp under vmap (torch_dynamics.py)."""

import json
import os

import peers
from settings import BUILD, ROOT, THREADS, run, say
from turns import middle, paired_ratio, take_turns

PROGRAM = os.path.join(BUILD, "bench_dynamics")
PRECISIONS = ("fp32", "split6")
NAMES = [f"dynamics-{precision}" for precision in PRECISIONS]
PERIODS = 20


def measure(context, names):
    entries = {}
    for precision in PRECISIONS:
        name = f"dynamics-{precision}"
        if name in names:
            say(f"{name} ...")
            entries[name] = measure_one(context, precision)
    return entries


def of_tarn(precision):
    result = json.loads(run([PROGRAM, precision, str(THREADS), str(PERIODS)], "dynamics"))
    return {"speed": 1.0 / result["seconds"], "peak_mb": result["peak_mb"]}


def of_torch(python):
    printed = run([python, os.path.join(ROOT, "bench", "torch_dynamics.py"), "--threads", str(THREADS), "--periods",
                   str(PERIODS // 2)], f"peer {python}", env=peers.environment())
    result = json.loads(printed)
    return {"speed": 1.0 / result["seconds"], "peak_mb": result["peak_mb"]}


def measure_one(context, precision):
    sides, race = {"tarn": lambda: of_tarn(precision)}, {}
    for name, python in context.peers().items():
        sides[name] = peers.Peer(name, race, lambda python=python: of_torch(python), "speed")
    results = take_turns(context.rounds, sides)
    ours = results.pop("tarn")
    entry = {"unit": "periods/s", "ours": middle(ours, "speed"), "peer": None, "ratio": None,
             "peak_mb": middle(ours, "peak_mb"), "peer_peak_mb": None, "threads": THREADS}
    speeds = {name: middle(samples, "speed") for name, samples in results.items() if samples}
    if speeds:
        best = max(speeds, key=speeds.get)
        entry.update({"peer": speeds[best], "peer_name": best, "peers": speeds,
                      "peer_peak_mb": middle(results[best], "peak_mb"), "ratio": paired_ratio(ours, results[best], "speed")})
    return entry


def table(entries):
    head = ["dynamics", "unit", f"{THREADS} threads", "MB", "peer", "MB", "ratio"]
    rows = [[name, e["unit"], (e["ours"], 2), (e["peak_mb"], 0), (e["peer"], 2), (e["peer_peak_mb"], 0), (e["ratio"], 2)]
            for name, e in entries.items()]
    return head, rows, []
