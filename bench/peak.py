"""The limits of the machine, as bench/peak.c measures them."""

import json
import os

from settings import BUILD, THREADS, run

PROGRAM = os.path.join(BUILD, "bench_peak")
NAMES = [f"peak-{unit}" for unit in ("fp32", "bf16", "int8", "memory")]


def run_program(unit, threads=THREADS):
    """Operations (fp32, bf16, int8) or bytes (memory) a second."""
    return json.loads(run([PROGRAM, unit, str(threads)], "peak"))


def per_second(unit, threads=THREADS):
    return run_program(unit, threads)["per_second"]


def has_tiles():
    return run_program("bf16", 1)["instruction"] == "tdpbf16ps"


def measure(_, names):
    return {name: entry_of(name[len("peak-"):]) for name in NAMES if name in names}


def entry_of(unit):
    one, every = run_program(unit, 1), run_program(unit)
    return {"unit": "GB/s" if unit == "memory" else "GOP/s", "ours": every["per_second"] / 1e9, "peer": None,
            "ratio": None, "peak_share": None, "threads": THREADS, "one_thread": one["per_second"] / 1e9,
            "instruction": one["instruction"]}


def table(entries):
    head = ["peak", "one thread", f"{THREADS} threads", "unit", "instruction"]
    rows = [[name, (e["one_thread"], 1), (e["ours"], 1), e["unit"], e["instruction"]] for name, e in entries.items()]
    return head, rows, []
