"""Training, in turns with PyTorch: real tokens a second, step, peak memory, share of the machine's peak."""

import os
from statistics import median

import peak
import peers
import tarn
from settings import ROOT, THREADS, say
from turns import middle, paired_ratio, take_turns

EXAMPLES = os.path.join(ROOT, "examples", "multi30k")
PAPERS = ["--enc-layers", "8", "--dec-layers", "2"]
# name: configuration, options of the peer. The peer has no shared layers: it computes Model4 with four frozen and four
# trained layers of their own, the same operations but for the optimiser's.
MODELS = {
    "model0": (os.path.join(EXAMPLES, "model0.yaml"), PAPERS),
    "model2": (os.path.join(EXAMPLES, "model2.yaml"), PAPERS + ["--freeze-enc", "0,2,4,6"]),
    "model4": (os.path.join(EXAMPLES, "model4.yaml"), PAPERS + ["--freeze-enc", "0,2,4,6"]),
    "small": (os.path.join(ROOT, "bench", "small.yaml"),
              ["--enc-layers", "3", "--dec-layers", "3", "--d", "256", "--ffn", "512"]),
}


# Keys of tarn by the second half of a case's name. fp32 through tiles has PyTorch's fp32 as its peer.
PRECISIONS = {"fp32": {"train.precision": "fp32"}, "bf16": {"train.precision": "bf16"},
              "split6": {"train.precision": "fp32", "train.fp32": "split6"},
              "split3": {"train.precision": "fp32", "train.fp32": "split3"}}
SPLITS = [("model0", "split6"), ("model0", "split3")]
CASES = [(model, precision) for model in MODELS for precision in ("fp32", "bf16")] + SPLITS
NAMES = [f"train-{model}-{precision}" for model, precision in CASES]
# Of a profile, which leaves out the first one alone: its mean is to be that of many, for single updates vary.
LIMIT_UPDATES = 40


def summary(samples):
    keys = ("tokens_per_second", "step_ms", "peak_mb")
    return {key: max(s[key] for s in samples) if key == "peak_mb" else middle(samples, key) for key in keys}


def with_peak(data, configuration, settings, updates, threads=THREADS):
    """A run of tarn right after a measurement of the peak."""
    limit = peak.per_second(settings["train.precision"], threads)
    return dict(tarn.train(data, configuration, settings, updates, threads), peak=limit)


def add_arithmetic(entry, ours, flops_per_token):
    rates = [s["tokens_per_second"] * flops_per_token for s in ours]
    entry["flops_per_token"] = flops_per_token
    entry["gflops"] = median(rates) / 1e9
    entry["peak_gflops"] = middle(ours, "peak") / 1e9
    entry["peak_share"] = median(rate / s["peak"] for rate, s in zip(rates, ours))


def add_peers(entry, ours, results):
    """The fastest peer counts; the others are listed next to it."""
    entry["peers"] = {name: summary(samples) for name, samples in results.items() if samples}
    if not entry["peers"]:
        return
    name = max(entry["peers"], key=lambda n: entry["peers"][n]["tokens_per_second"])
    best = entry["peers"][name]
    entry.update({"peer": best["tokens_per_second"], "peer_name": name, "peer_step_ms": best["step_ms"],
                  "peer_peak_mb": best["peak_mb"],
                  "ratio": paired_ratio(ours, results[name], "tokens_per_second"),
                  "memory_ratio": entry["peak_mb"] / best["peak_mb"],
                  "peer_peak_share": median(b["tokens_per_second"] * entry["flops_per_token"] / a["peak"]
                                            for a, b in zip(ours, results[name]))})


def measure_cases(context, names, cases, one):
    """The entries of those cases (model, precision) that `names` has; `one` measures a case."""
    entries = {}
    for model, precision in cases:
        name = f"train-{model}-{precision}"
        if name in names:
            say(f"{name} ...")
            entries[name] = one(context, model, precision)
    return entries


def measure(context, names):
    splits = {f"train-{model}-{precision}" for model, precision in SPLITS}
    if splits & set(names) and not peak.has_tiles():
        say(f"left out: {' '.join(sorted(splits & set(names)))}: this processor has no tiles")
        names = [name for name in names if name not in splits]
    return measure_cases(context, names, CASES, measure_one)


def measure_one(context, model, precision):
    configuration, options = MODELS[model]
    settings = PRECISIONS[precision]
    data = context.data()
    return race(context, data, configuration, settings,
                lambda: with_peak(data, configuration, settings, context.updates(15)),
                lambda python: peers.train(python, data, options, settings["train.precision"], context.updates(15)),
                context.peers() if peers.can_train() else {})


def race(context, data, configuration, settings, tarn_side, peer_side, pythons):
    """The entry of tarn_side() in turns with peer_side(python) for every one of `pythons`, {name: path}."""
    sides, speeds = {"tarn": tarn_side}, {}
    for name, python in pythons.items():
        sides[name] = peers.Peer(name, speeds, lambda python=python: peer_side(python))
    results = take_turns(context.rounds, sides)
    ours = results.pop("tarn")
    entry = {"unit": "tokens/s", "ours": middle(ours, "tokens_per_second"), "peer": None, "ratio": None,
             "threads": THREADS, **summary(ours)}
    del entry["tokens_per_second"]
    entry["planned_mb"] = ours[0]["planned_mb"]
    entry["planned_ratio"] = entry["peak_mb"] / entry["planned_mb"]
    add_arithmetic(entry, ours, tarn.plan(data, configuration, settings)["flops_per_token"])
    entry["limit_share"] = tarn.limit_share(data, configuration, settings, context.updates(LIMIT_UPDATES))
    add_peers(entry, ours, results)
    return entry


def table(entries):
    say_peer = sorted({e["peer_name"] for e in entries.values() if e.get("peer_name")})
    head = ["training", "tokens/s", "peer", "ratio", "step ms", "peer", "GFLOP/s", "of peak", "peer", "of limit", "peak MB",
            "peer", "ratio", "of plan"]
    rows = [[name, (e["ours"], 0), (e["peer"], 0), (e["ratio"], 2), (e["step_ms"], 0), (e.get("peer_step_ms"), 0),
             (e["gflops"], 0), (e["peak_share"], 2), (e.get("peer_peak_share"), 2), (e.get("limit_share"), 2),
             (e["peak_mb"], 0), (e.get("peer_peak_mb"), 0), (e.get("memory_ratio"), 2), (e["planned_ratio"], 2)]
            for name, e in entries.items()]
    notes = [f"peer: {', '.join(say_peer)}"] if say_peer else ["no peer is installed"]
    return head, rows, notes
