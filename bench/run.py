#!/usr/bin/env python3
"""Measures tarn, in turns (A B A B ...) with the peers that are installed: training, translation, kernels, and how cost
grows. docs/performance.md tells what is measured and how; --list names the measurements. Environment: TARN (the
program), TARN_BUILD (folder of the measuring programs), TARN_DATA (folder that holds multi30k/), TARN_PEERS (folder of
torch_mt.py), PYTHON (Pythons with the peers' packages, colons between them), TCMALLOC and OPENBLAS (a library and the
folder of one that PyTorch runs faster with), THREADS (default 2)."""

import argparse
import json
import os
import sys
import tempfile

sys.dont_write_bytecode = True

# pylint: disable=wrong-import-position
import peak
import peers
import training
from data import Data
from settings import TARN, THREADS, Failure, Usage, say
from tables import print_table


def peak_table(entries):
    rows = [[name, (e["one_thread"], 1), (e["ours"], 1), e["unit"], e["instruction"]] for name, e in entries.items()]
    return ["peak", "one thread", f"{THREADS} threads", "unit", "instruction"], rows, []


# Groups of measurements: {name of the group: (table of its entries, {name: function of the context})}.
def groups():
    both = ("fp32", "bf16")
    return {
        "peak": (peak_table, {f"peak-{unit}": lambda c, u=unit: peak.entries(u)
                              for unit in ("fp32", "bf16", "int8", "memory")}),
        "training": (training.table, {f"train-{model}-{precision}": lambda c, m=model, p=precision: training.measure(
            c, m, p) for model in training.MODELS for precision in both}),
    }


class Context:
    """What the measurements share; data and peers are made when the first of them asks."""

    def __init__(self, folder, rounds, updates):
        self.folder, self.rounds, self.updates = folder, rounds, updates
        self._data = self._peers = None

    def data(self):
        if self._data is None:
            say("preparing Multi30k ...")
            self._data = Data(self.folder)
        return self._data

    def peers(self):
        if self._peers is None:
            self._peers = peers.find()
        return self._peers


def choose(every, wanted):
    """The groups with only those measurements that are named by themselves or by their group."""
    known = set(every) | {name for _, members in every.values() for name in members}
    for name in wanted:
        if name not in known:
            raise Usage(f'there is no measurement "{name}"; there are the groups {", ".join(every)}, and\n  ' +
                          "\n  ".join(" ".join(members) for _, members in every.values()))
    chosen = {}
    for group, (table, members) in every.items():
        kept = {name: act for name, act in members.items() if not wanted or group in wanted or name in wanted}
        if kept:
            chosen[group] = (table, kept)
    return chosen


def measure(chosen, context):
    results = {}
    for group, (_, members) in chosen.items():
        results[group] = {}
        for name, act in members.items():
            say(f"{name} ...")
            entry = act(context)
            if entry is not None:
                results[group][name] = entry
    return results


def count(text):
    value = int(text)
    if not 1 <= value <= 1000000:
        raise argparse.ArgumentTypeError(f"{text} is not between 1 and 1,000,000")
    return value


def arguments():
    parser = argparse.ArgumentParser(prog="run bench", description=__doc__)
    parser.add_argument("--only", metavar="NAME", action="append", default=[],
                        help="measure this, or this group; may be repeated")
    parser.add_argument("--list", action="store_true", help="print the groups and their measurements, and stop")
    parser.add_argument("--rounds", type=count, default=3, help="turns of each side (default 3)")
    parser.add_argument("--updates", type=count, default=15,
                        help="updates of each training, the first 3 not counted (default 15)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--output", metavar="FILE", help="write the JSON to a file as well")
    return parser.parse_args()


def main():
    options = arguments()
    every = groups()
    if options.list:
        for group, (_, members) in every.items():
            print(f"{group}: {' '.join(members)}")
        return
    chosen = choose(every, options.only)
    if not os.access(TARN, os.X_OK):
        raise Failure(f"{TARN} is not there: ./run build, or set TARN")
    with tempfile.TemporaryDirectory() as folder:
        results = measure(chosen, Context(folder, options.rounds, options.updates))
    flat = json.dumps({name: entry for entries in results.values() for name, entry in entries.items()}, indent=2)
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            file.write(flat + "\n")
    if options.json:
        print(flat)
        return
    for group, entries in results.items():
        if entries:
            print_table(*chosen[group][0](entries))


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        say(f"bench: {failure}")
        sys.exit(failure.code)
    except OSError as error:
        say(f"bench: {error}")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
