"""How the time of a step grows with the work: one size at a time over a factor of eight. The exponent is the slope of a
straight line through the logarithms (least squares), compared with that of the operations that `tarn plan` counts.
A step may grow more slowly than its arithmetic, where fixed costs weigh less in larger steps, but never faster."""

import math
import os
from statistics import median

import tarn
from data import SyntheticData
from settings import ROOT, say

CONFIGURATION = os.path.join(ROOT, "bench", "small.yaml")
# The middle of the road: every axis starts from this and changes one of them.
BASE = {"tokens": 2048, "depth": 2, "width": 256, "vocabulary": 4000, "length": 20}
AXES = {
    "tokens": (512, 1024, 2048, 4096),
    "depth": (1, 2, 4, 8),
    "width": (64, 128, 256, 512),
    "vocabulary": (2000, 4000, 8000, 16000),
    "length": (512, 1024, 2048, 4096),
}
# Other values that an axis changes: batches hold one of the longest sentences, a quarter longer than their mean.
BESIDE = {"length": {"tokens": 5120}}
# Token mixers that are linear in the length of a sentence; their decoder has neither self-attention nor cross-attention.
LINEAR = ("linear_attention", "performer", "linformer")
# Measurements, with their axis, precision and mixer.
NAMED = {**{f"growth-{axis}": (axis, "bf16", None) for axis in AXES}, "growth-length-fp32": ("length", "fp32", None),
         **{f"growth-{mixer}": ("length", "bf16", mixer) for mixer in LINEAR}}
NAMES = list(NAMED)
# Slack of an exponent: 0.05 over a factor of eight is a tenth of the time.
SLACK = 0.05


def slope(points):
    """Of log y over log x, by least squares."""
    xs, ys = [math.log(x) for x, _ in points], [math.log(y) for _, y in points]
    x_mean, y_mean = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((x - x_mean) * (y - y_mean) for x, y in zip(xs, ys)) / sum((x - x_mean) ** 2 for x in xs)


def settings_of(size, precision, mixer):
    linear = {} if mixer is None else {"kinds.L.mixer": mixer, "kinds.N": f"{{ mixer: none, ffn: {2 * size['width']} }}"}
    return {**linear, "train.precision": precision, "train.max_tokens": size["tokens"],
            "model.max_length": max(1024, size["length"] * 5 // 4), "model.d_model": size["width"],
            "kinds.L.ffn": 2 * size["width"], "kinds.L.heads": max(1, size["width"] // 64),
            "encoder.layers": f"L*{size['depth']}", "decoder.layers": f"{'L' if mixer is None else 'N'}*{size['depth']}"}


def measure(context, names):
    entries = {}
    for name, (axis, precision, mixer) in NAMED.items():
        if name in names:
            say(f"{name} ...")
            entries[name] = measure_axis(context, axis, precision, mixer)
    return entries


def measure_axis(context, axis, precision, mixer):
    """Rounds go through all sizes, so that a slow minute of the machine does not look like growth."""
    sizes = [dict(BASE, **BESIDE.get(axis, {}), **{axis: value}) for value in AXES[axis]]
    data = [SyntheticData.get(context.folder, size["vocabulary"], size["length"]) for size in sizes]
    work = [tarn.plan(d, CONFIGURATION, settings_of(size, precision, mixer))["flops_per_token"]
            for d, size in zip(data, sizes)]
    rounds = [[tarn.train(d, CONFIGURATION, settings_of(size, precision, mixer), context.updates(12))
               for d, size in zip(data, sizes)]
              for _ in range(context.rounds)]
    slopes = [slope([(size[axis], s["step_ms"]) for size, s in zip(sizes, samples)]) for samples in rounds]
    operations = [flops * median(samples[i]["tokens_per_update"] for samples in rounds)
                  for i, flops in enumerate(work)]
    arithmetic = slope([(size[axis], flops) for size, flops in zip(sizes, operations)])
    return {"unit": "exponent", "ours": median(slopes), "peer": None, "ratio": None, "peak_share": None,
            "arithmetic": arithmetic, "lowest": min(slopes), "highest": max(slopes),
            "grows_faster": min(slopes) > arithmetic + SLACK,
            "points": [{axis: size[axis], "step_ms": median(samples[i]["step_ms"] for samples in rounds),
                        "peak_mb": median(samples[i]["peak_mb"] for samples in rounds),
                        "gflop": operations[i] / 1e9} for i, size in enumerate(sizes)]}


def table(entries):
    head = ["growth of a step", "exponent", "lowest", "highest", "arithmetic", "step ms, smallest to largest"]
    rows = [[name, (e["ours"], 2), (e["lowest"], 2), (e["highest"], 2), (e["arithmetic"], 2),
             " ".join(f"{p['step_ms']:.0f}" for p in e["points"])] for name, e in entries.items()]
    notes = [f"{name}: the step grows FASTER than its arithmetic" for name, e in entries.items() if e["grows_faster"]]
    return head, rows, notes or ["nothing grows faster than its arithmetic"]
