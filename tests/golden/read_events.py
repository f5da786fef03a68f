#!/usr/bin/env python3
"""Compares the scalars that TensorBoard reads from a run directory with the run's log. Needs the package tensorboard.

Usage: python3 read_events.py RUN
"""
import json
import os
import struct
import sys

from tensorboard.backend.event_processing.event_accumulator import SCALARS, EventAccumulator

run = sys.argv[1]
accumulator = EventAccumulator(run, size_guidance={SCALARS: 0})
accumulator.Reload()
shown = {(tag, event.step): event.value for tag in accumulator.Tags()["scalars"] for event in accumulator.Scalars(tag)}
count = sum(len(accumulator.Scalars(tag)) for tag in accumulator.Tags()["scalars"])
logged = {}
with open(os.path.join(run, "log.jsonl"), encoding="utf-8") as log:
    for line in log:
        record = json.loads(line)
        kind = "average" if "checkpoint" in record else record["kind"]
        for key, value in record.items():
            if isinstance(value, (int, float)) and not isinstance(value, bool) and key not in (
                    "step", "epoch", "time", "seconds"):
                logged[f"{kind}/{key.removeprefix('valid_')}", record["step"]] = value
derived = {key for key in shown if key[0] in ("valid/ppl", "average/ppl")}
assert set(shown) - derived == set(logged), set(shown) ^ set(logged)
assert derived, "no perplexity of the validation"
assert count == len(shown), "a point appears twice"
for key, value in logged.items():
    single = struct.unpack("f", struct.pack("f", value))[0]
    assert abs(shown[key] - single) <= 1e-6 * abs(single), (key, shown[key], value)
print(f"{len(shown)} points agree")
