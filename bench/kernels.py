"""The ops of a training step one by one, at the shapes of the models, as bench/kernels.c times them; products against
PyTorch's."""

import json
import os

import peak
import peers
from settings import BUILD, ROOT, THREADS, run, say
from turns import middle, paired_ratio, take_turns

PROGRAM = os.path.join(BUILD, "bench_kernels")
# Cases that are products, with the widths of input and output. The peer computes the three products of the output layer
# alone, without the loss between them.
PRODUCTS = {"linear-qkv": (512, 1536), "linear-out": (512, 512), "linear-ffn-in": (512, 1024),
            "linear-ffn-out": (1024, 512), "linear-qkv-256": (256, 768), "output": (512, 10000),
            "output-50257": (512, 50257)}
# Products of 32 rows, as the steps of recurrences.
STEPS = ("step-esn", "step-gru", "step-lstm")
# Attention over sentences of as many tokens.
ATTENTION = ("attention-20", "attention-causal-20", "attention-256", "attention-512", "attention-causal-512",
             "attention-1024", "attention-causal-1024", "attention-2048", "attention-causal-2048", "attention-4096",
             "attention-causal-4096", "attention-alibi-20", "attention-alibi-512", "attention-alibi-causal-512",
             "attention-alibi-causal-2048")
OTHERS = (*STEPS, *ATTENTION, "hadamard-qkv", "residual-norm", "residual-rms-norm", "glu", "light-conv-7",
          "light-conv-31", "dynamic-conv-7", "dynamic-conv-31", "pooling-3", "pooling-31", "rotary", "embedding", "adam",
          "adam-50257", "adam-50257-bf16-moments", "adam-50257-fp8-moments")
CASES = [(case, precision) for precision in ("fp32", "bf16") for case in (*PRODUCTS, *OTHERS)]
NAMES = [f"kernel-{case}-{precision}" for case, precision in CASES]


def measure(context, names):
    entries = {}
    for case, precision in CASES:
        name = f"kernel-{case}-{precision}"
        if name in names:
            say(f"{name} ...")
            entries[name] = measure_one(context, case, precision)
    return entries


def of_tarn(case, precision, threads, limit):
    """Speed of the whole case and of its parts, in what it is measured by, and the peak of that."""
    result = json.loads(run([PROGRAM, case, precision, str(threads)], "kernels"))
    seconds = sum(part["seconds"] for part in result["parts"])
    for unit, key, per in (("GFLOP/s", "flops", 1e9), ("GB/s", "bytes", 1e9)):
        amount = sum(part[key] for part in result["parts"])
        if amount:
            share = amount / seconds / peak.per_second(limit if key == "flops" else "memory", threads)
            return {"unit": unit, "speed": amount / seconds / per, "share": share, "parts": result["parts"]}
    return {"unit": "M rows/s", "speed": result["rows"] / seconds / 1e6, "share": None, "parts": result["parts"]}


def of_torch(python, case, precision):
    rows = 4096
    inner, outer = PRODUCTS[case]
    printed = run([python, os.path.join(ROOT, "bench", "torch_products.py"), str(rows), str(inner), str(outer),
                   precision, str(THREADS)], f"peer {python}", env=peers.environment())
    return {"speed": 6.0 * rows * inner * outer / json.loads(printed)["seconds"] / 1e9}


def measure_one(context, case, precision):
    # Attention multiplies its pairs in the precision of its inputs; the rest computes in fp32.
    limit = precision if case in (*PRODUCTS, *STEPS) or case.startswith("attention") else "fp32"
    sides = {"tarn": lambda: of_tarn(case, precision, THREADS, limit),
             "one": lambda: of_tarn(case, precision, 1, limit)}
    race = {}
    for name, python in context.peers().items() if case in PRODUCTS else ():
        sides[name] = peers.Peer(name, race, lambda python=python: of_torch(python, case, precision), "speed")
    results = take_turns(context.rounds, sides)
    ours, one = results.pop("tarn"), results.pop("one")
    entry = {"unit": ours[0]["unit"], "ours": middle(ours, "speed"), "peer": None, "ratio": None,
             "peak_share": middle(ours, "share") if ours[0]["share"] else None, "threads": THREADS,
             "one_thread": middle(one, "speed"),
             "one_thread_peak_share": middle(one, "share") if one[0]["share"] else None,
             "thread_ratio": paired_ratio(ours, one, "speed"),
             "parts": [{"op": part["op"], "ms": 1e3 * middle([s["parts"][i] for s in ours], "seconds"),
                        "gflop": part["flops"] / 1e9} for i, part in enumerate(ours[0]["parts"])]}
    speeds = {name: middle(samples, "speed") for name, samples in results.items() if samples}
    if speeds:
        best = max(speeds, key=speeds.get)
        entry.update({"peer": speeds[best], "peer_name": best, "peers": speeds,
                      "ratio": paired_ratio(ours, results[best], "speed")})
    return entry


def table(entries):
    head = ["kernels", "unit", f"{THREADS} threads", "one", "ratio", "of peak", "one", "peer", "ratio", "parts, ms"]
    rows = [[name, e["unit"], (e["ours"], 1), (e["one_thread"], 1), (e["thread_ratio"], 2), (e["peak_share"], 2),
             (e["one_thread_peak_share"], 2), (e["peer"], 1), (e["ratio"], 2),
             ", ".join(f"{p['op']} {p['ms']:.2f}" for p in e["parts"])] for name, e in entries.items()]
    return head, rows, []
