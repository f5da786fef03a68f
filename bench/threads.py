"""What more threads bring: training with all of them against one."""

import tarn
from settings import THREADS, say
from training import MODELS, with_peak
from turns import middle, paired_ratio, take_turns

CASES = [(model, precision) for model in ("model0", "small") for precision in ("fp32", "bf16")]
NAMES = [f"threads-{model}-{precision}" for model, precision in CASES]


def measure(context, names):
    entries = {}
    for model, precision in CASES:
        name = f"threads-{model}-{precision}"
        if name in names:
            say(f"{name} ...")
            entries[name] = measure_one(context, MODELS[model][0], precision)
    return entries


def measure_one(context, configuration, precision):
    data, settings = context.data(), {"train.precision": precision}
    work = tarn.plan(data, configuration, settings)["flops_per_token"]
    counts = {"all": THREADS, "one": 1}
    results = take_turns(context.rounds, {
        name: lambda n=n: with_peak(data, configuration, settings, context.updates(15), n)
        for name, n in counts.items()})
    for samples in results.values():
        for sample in samples:
            sample["share"] = sample["tokens_per_second"] * work / sample["peak"]
    ours, one = results["all"], results["one"]
    speed = "tokens_per_second"
    return {"unit": "tokens/s", "ours": middle(ours, speed), "peer": middle(one, speed), "peer_name": "one thread",
            "ratio": paired_ratio(ours, one, speed), "threads": THREADS, "peak_share": middle(ours, "share"),
            "peer_peak_share": middle(one, "share"), "step_ms": middle(ours, "step_ms"),
            "peer_step_ms": middle(one, "step_ms")}


def table(entries):
    head = ["threads", f"{THREADS} threads", "one", "ratio", "of peak", "one"]
    rows = [[name, (e["ours"], 0), (e["peer"], 0), (e["ratio"], 2), (e["peak_share"], 2), (e["peer_peak_share"], 2)]
            for name, e in entries.items()]
    return head, rows, []
