#!/usr/bin/env python3
"""The steps of scripts/gpu.sh, which reads its options and starts this."""

import argparse
import math
import os
import shutil
import signal
import sys
import tempfile

sys.dont_write_bytecode = True

# pylint: disable=wrong-import-position
import checks
import probe
import science
import sets
import speed
from place import Place, Runner
from report import Failed, Report


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", action="store_true")
    parser.add_argument("--science", action="store_true")
    parser.add_argument("--out", required=True)
    parser.add_argument("--minutes", type=float, required=True)
    return parser.parse_args()


def look(report, place):
    """The probe; returns whether the rest can be tried."""
    able = []

    def act(_):
        figures, missing, ok = probe.probe(place)
        able.append(ok)
        for line in missing:
            print(f"missing: {line}", flush=True)
        name = figures["cards"][0]["name"] if figures["cards"] else "cuda-host" if place.host else "no card"
        figures = {"summary": name, "missing": missing, **figures}
        if not ok:
            raise Failed((missing or ["no card"])[0], figures)
        return figures

    entry = report.step("probe", -math.inf, act)
    report.value["card"] = (entry.get("figures") or {}).get("summary", "unknown")
    return bool(able and able[0])


def checks_and_speed(report, runner):
    place, kept = runner.place, {}

    def data(left):
        kept["corpus"] = sets.Corpus(runner, left)
        kept["data"] = kept["corpus"] if place.host else sets.multi30k(place) or sets.random_words(runner, left)
        kept["tarn"] = speed.Tarn(runner, kept["data"], kept["corpus"].tiny)
        return {"summary": kept["data"].name}

    def peers(left):
        kept["peers"] = speed.start_peers(kept["tarn"], left)
        return {"summary": ", ".join(kept["peers"]) or "none: this Python has no PyTorch"}

    host = place.host
    report.step("ceilings", 0 if host else 20, lambda left: checks.ceilings(runner, left))
    if report.step("data", 0 if host else 10, data)["status"] != "ok":
        return kept
    report.step("peers-begin", 0, peers)
    tarn, having = kept["tarn"], kept.get("peers", {})
    report.step("kernels", 0 if host else 40, lambda left: checks.kernels(runner, min(left, 120)))
    report.step("golden", 0 if host else 30, lambda left: checks.golden(runner, min(left, 60)))
    report.step("resume", 0 if host else 15, lambda left: checks.resume(runner, kept["corpus"], min(left, 60)))
    report.step("memcheck", 0 if host else 120, lambda left: checks.memcheck(runner, min(left, 60)))
    report.step("racecheck", 0 if host else 120, lambda left: checks.racecheck(runner, min(left, 60)))
    report.step("train-model0", 0 if host else 40, lambda left: speed.training(tarn, "model0", having, min(left, 150)))
    report.step("train-wide", 0 if host else 40, lambda left: speed.training(tarn, "wide", having, min(left, 120)))
    report.step("profile", 0 if host else 15, lambda left: speed.profile(tarn, min(left, 40)))
    report.step("ncu", 0 if host else 30, lambda left: speed.ncu(tarn, min(left, 90)))
    report.step("translate", 0 if host else 50, lambda left: speed.translation(tarn, min(left, 90)))
    report.step("freezing", 0 if host else 60, lambda left: speed.freezing(tarn, left))
    return kept


def stop(number, frame):
    """A polite kill is what Ctrl-C is: sweeps save, and what was started ends."""
    raise KeyboardInterrupt


def main():
    options = arguments()
    signal.signal(signal.SIGTERM, stop)
    os.makedirs(options.out, exist_ok=True)
    folder = tempfile.mkdtemp(prefix="tarn-gpu-")
    place = Place(options.host, folder)
    report = Report(options.out, options.minutes, {"host": options.host, "bundle": place.bundle, "science": options.science})
    runner, kept = Runner(place, report), {}
    try:
        if look(report, place):
            if options.science:
                corpus = science.needs_corpus(runner, report.left())
                science.steps(report, runner, corpus, os.path.join(options.out, "science"))
            else:
                kept = checks_and_speed(report, runner)
            failed = report.finish()
        else:
            failed = ["probe"]
            report.finish()
    finally:
        for peer in kept.get("peers", {}).values():
            peer.close()
        shutil.rmtree(folder, ignore_errors=True)
    steps = report.value["steps"]
    skipped = sum(step["status"] == "skipped" for step in steps)
    print(f"{report.path}: {len(steps) - len(failed) - skipped} steps done, {len(failed)} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
