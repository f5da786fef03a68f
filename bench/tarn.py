"""Runs of tarn."""

import json
import os
import shutil
from statistics import median

from settings import Failure, TARN, THREADS, run

# Updates at the start of a run that are not counted: caches and memory are cold, kernels are made.
WARM = 3


def overrides(data, settings):
    """The keys that every measurement sets itself, then those of `settings`."""
    keys = {"data.vocab": data.vocab, "data.train": data.train, "data.valid": "", "data.valid_reference": "",
            "train.max_tokens": 4096, "train.accumulate": 1, "train.max_epochs": 0, "train.max_minutes": 0,
            "train.average": 0, "train.log_every": 1}
    keys.update(settings)
    return [word for key, value in keys.items() for word in ("--set", f"{key}={value}")]


def start_training(data, configuration, settings, updates, threads, start=(), more=()):
    """Runs one training of a few updates; its folder and the objects that it printed."""
    folder = os.path.join(data.folder, "run")
    shutil.rmtree(folder, ignore_errors=True)
    keys = dict(settings, **{"train.max_updates": updates})
    printed = run([*start, TARN, "train", configuration, "--run", folder, "--threads", str(threads), "--json", *more,
                   *overrides(data, keys)], f"training of {configuration}")
    return folder, [json.loads(line) for line in printed.strip().splitlines()]


def limit_share(data, configuration, settings, updates, threads=THREADS):
    """The share of the limit of its steps that a training reaches: the floors of all ops at the speeds measured before it,
    over its time."""
    _, objects = start_training(data, configuration, settings, updates, threads,
                                more=["--profile", os.path.join(data.folder, "trace.json")])
    profile = next(o for o in objects if o.get("kind") == "profile")
    return profile["floor_seconds"] / profile["unit_seconds"]


def train(data, configuration, settings, updates, threads=THREADS, start=()):
    """One training of a few updates, of the ranks that the command `start` starts: real tokens (source and target) a
    second and the time of a step, both the median of the updates after the first three; all their tokens over all their
    time; tokens of an update; peak resident memory and what the plan said."""
    folder, objects = start_training(data, configuration, settings, updates, threads, start)
    result = objects[-1]
    with open(os.path.join(folder, "log.jsonl"), encoding="utf-8") as log:
        lines = [line for line in map(json.loads, log) if line["kind"] == "train"]
    if len(lines) <= WARM:
        raise Failure(f"{configuration}: only {len(lines)} updates, and {WARM} are not counted")
    steps = [b["time"] - a["time"] for a, b in zip(lines[WARM - 1:], lines[WARM:])]
    tokens = [sum(line[side] for side in ("source_tokens", "target_tokens")) for line in lines]
    return {"tokens_per_second": median(line["tokens_per_second"] for line in lines[WARM:]),
            "overall_tokens_per_second": (tokens[-1] - tokens[WARM - 1]) / sum(steps),
            "tokens_per_update": tokens[-1] / len(lines), "step_ms": 1e3 * median(steps), "peak_mb": result["peak_resident_bytes"] / 1e6,
            "planned_mb": result["planned_bytes"] / 1e6, **ranks_of(lines[WARM:])}


def ranks_of(lines):
    """Of several ranks: what each sends in an update, and how long it waits for others, on average."""
    ranks = [line["ranks"] for line in lines if "ranks" in line]
    if not ranks:
        return {}
    return {"sent_mb": sum(r["sent_bytes"] / r["count"] for r in ranks) / len(ranks) / 1e6,
            "waited_ms": 1e3 * sum(sum(r["waited"]) / r["count"] for r in ranks) / len(ranks)}


def plan(data, configuration, settings, threads=THREADS):
    """What `tarn plan` says, with the operations of a training step per token in `flops_per_token`."""
    printed = run([TARN, "plan", configuration, "--json", "--threads", str(threads), *overrides(data, settings)],
                  f"plan of {configuration}")
    result = json.loads(printed)
    result["flops_per_token"] = result["forward_flops_per_token"] + result["backward_flops_per_token"]
    return result
