"""The limits of the machine, as bench/peak.c measures them."""

import json
import os

from settings import BUILD, THREADS, run

PROGRAM = os.path.join(BUILD, "bench_peak")


def measure(unit, threads=THREADS):
    """Operations (fp32, bf16, int8) or bytes (memory) a second."""
    return json.loads(run([PROGRAM, unit, str(threads)], "peak"))


def entries(unit):
    one, all_threads = measure(unit, 1), measure(unit)
    return {"unit": "GB/s" if unit == "memory" else "GOP/s", "ours": all_threads["per_second"] / 1e9, "peer": None,
            "ratio": None, "peak_share": None, "threads": THREADS, "one_thread": one["per_second"] / 1e9,
            "instruction": one["instruction"]}
