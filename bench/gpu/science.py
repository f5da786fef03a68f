"""Sweeps of several hours on a card, which go on at any moment: the same command, with the same folder."""

import json
import os
import signal
import subprocess
import time

import sets
from report import Failed, Skipped

HOST = """base: %(base)s
baseline: trained
seeds: [1, 2]
set: { train.max_updates: 2, valid.every: 1, data.valid: %(valid)s }
test: { source: %(source)s, reference: %(reference)s }
variants:
  trained: { encoder.layers: L*2 }
  frozen: {}
"""


def states_of(folder):
    """How many runs of a sweep are done, and the scores of those."""
    path = os.path.join(folder, "sweep.json")
    if not os.path.isfile(path):
        return {}
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def sweep(runner, path, folder, left):
    """Trains until it is done or the time is over; then all runs save, and the next call goes on."""
    end = time.monotonic() + left
    command = [runner.place.tarn, "sweep", path, "--output", folder, "--device", "cuda", "--json"]
    with open(os.path.join(runner.place.folder, "sweep.log"), "w+", encoding="utf-8") as log:
        process = subprocess.Popen(command, cwd=runner.place.root, env=runner.place.env, stdin=subprocess.DEVNULL,
                                   stdout=log, stderr=subprocess.STDOUT)
        try:
            code = process.wait(max(1, end - time.monotonic() - 20))
        except (subprocess.TimeoutExpired, KeyboardInterrupt) as reason:
            process.send_signal(signal.SIGTERM)
            code = process.wait(120)
            if isinstance(reason, KeyboardInterrupt):
                raise
        log.seek(0)
        printed = log.read()
    runner.report.note(f"tarn sweep {path}", printed[-20000:])
    figures = {"folder": folder, "done": code == 0, "sweep": states_of(folder)}
    if code == 0:
        figures["summary"] = f"done: {folder}"
        figures["compare"] = runner.run([runner.place.tarn, "compare", folder, "--json"], 60, what="tarn compare")[1]
    elif code == 128 + signal.SIGTERM:
        figures["summary"] = f"not done yet, all saved: the same command goes on in {folder}"
    else:
        lines = printed.strip().splitlines() or ["it printed nothing"]
        raise Failed(f"tarn sweep: {lines[-1]}", figures)
    return figures


def own(runner, corpus, folder, left):
    """The sweep of the host: two tiny models."""
    path = os.path.join(runner.place.folder, "sweep.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(HOST % {"base": corpus.tiny, "valid": corpus.valid, "source": corpus.source,
                           "reference": corpus.reference})
    return sweep(runner, path, folder, left)


def card(runner, name, folder, left):
    if not os.path.isfile(os.path.join(runner.place.root, "data", name, "train.tarn")):
        raise Skipped(f"{runner.place.root}/data/{name} is not there: the bundle was made without ../shared/data")
    return sweep(runner, runner.place.example(f"gpu/{name}.yaml"), folder, left)


def steps(report, runner, corpus, folder):
    """Multi30k first, which takes minutes; the other gets what is left."""
    if runner.place.host:
        report.step("science", 1, lambda left: own(runner, corpus, os.path.join(folder, "tiny"), left))
        return
    for name in ("multi30k", "tatoeba"):
        report.step(f"science-{name}", 60, lambda left, name=name: card(runner, name, os.path.join(folder, name), left))


def needs_corpus(runner, left):
    return sets.Corpus(runner, left) if runner.place.host else None
