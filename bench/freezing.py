"""What frozen layers save: Model2, half of whose encoder is frozen, against Model0, which computes the same with every
layer trained. Both see the same batches, so that tokens a second compare as steps do."""

import os

import tarn
from settings import Failure, THREADS, say
from training import EXAMPLES, summary, with_peak
from turns import middle, paired_ratio, take_turns

MODEL0 = os.path.join(EXAMPLES, "model0.yaml")
MODEL2 = os.path.join(EXAMPLES, "model2.yaml")
FFN = {"encoder.layers": "(F L)*4"}
# Kinds of reservoir: layers with attention, plain or of Hadamard transforms, and layers of an FFN alone.
KINDS = {
    "plain": {},
    "structured": {"kinds.R.init": "hadamard"},
    "ffn": {**FFN, "kinds.F": "{mixer: none, ffn: 1024, frozen: yes}"},
    "ffn-structured": {**FFN, "kinds.F": "{mixer: none, ffn: 1024, frozen: yes, init: hadamard}"},
}
PRECISIONS = ("fp32", "bf16")
NAMES = [f"freezing-{kind}-{precision}" for precision in PRECISIONS for kind in KINDS]


def measure(context, names):
    """All kinds of a precision take turns together."""
    entries = {}
    for precision in PRECISIONS:
        kinds = [kind for kind in KINDS if f"freezing-{kind}-{precision}" in names]
        if kinds:
            entries.update(measure_precision(context, precision, kinds))
    return entries


def measure_precision(context, precision, kinds):
    data, base = context.data(), {"train.precision": precision}
    say(f"freezing, {precision}: {', '.join(kinds)} ...")
    work, sides = {"model0": tarn.plan(data, MODEL0, base)["flops_per_token"]}, {}
    sides["model0"] = lambda: with_peak(data, MODEL0, base, context.updates(15))
    for kind in kinds:
        settings = {**base, **KINDS[kind]}
        try:
            work[kind] = tarn.plan(data, MODEL2, settings)["flops_per_token"]
        except Failure as failure:
            say(f"  freezing-{kind} left out: {failure}")
            continue
        sides[kind] = lambda settings=settings: with_peak(data, MODEL2, settings, context.updates(15))
    if len(sides) == 1:
        return {}
    results = take_turns(context.rounds, sides)
    return {f"freezing-{kind}-{precision}": entry_of(results, work, kind) for kind in sides if kind != "model0"}


def entry_of(results, work, kind):
    ours, model0 = results[kind], results["model0"]
    speed = "tokens_per_second"
    entry = {"unit": "tokens/s", "ours": middle(ours, speed), "peer": middle(model0, speed), "peer_name": "Model0",
             "ratio": paired_ratio(ours, model0, speed), "arithmetic_ratio": work["model0"] / work[kind],
             "peak_share": middle([{"share": s[speed] * work[kind] / s["peak"]} for s in ours], "share"),
             "threads": THREADS, "step_ms": summary(ours)["step_ms"], "peer_step_ms": summary(model0)["step_ms"],
             "peak_mb": summary(ours)["peak_mb"], "peer_peak_mb": summary(model0)["peak_mb"]}
    if kind.startswith("ffn"):
        entry["over_attention"] = {other: paired_ratio(ours, results[other], speed)
                                   for other in ("plain", "structured") if other in results}
    return entry


def table(entries):
    head = ["reservoirs", "tokens/s", "Model0", "ratio", "arithmetic", "of peak", "peak MB", "Model0"]
    rows = [[name, (e["ours"], 0), (e["peer"], 0), (e["ratio"], 3), (e["arithmetic_ratio"], 3), (e["peak_share"], 2),
             (e["peak_mb"], 0), (e["peer_peak_mb"], 0)] for name, e in entries.items()]
    notes = [f"{name}: {ratio:.3f} times the speed of {other} attention reservoirs" for name, e in entries.items()
             for other, ratio in e.get("over_attention", {}).items()]
    return head, rows, notes
