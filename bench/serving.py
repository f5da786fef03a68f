"""A model over HTTP, `tarn serve` in turns with CTranslate2 behind a minimal asynchronous server (serve_ctranslate2.py):
the same weights, the same beam, 32 connections of wrk on loopback that each ask again as soon as they are answered."""

import json
import os
import re
import shutil
import subprocess

from settings import Failure, ROOT, TARN, THREADS, run, say
from translation import Model, PRECISIONS, SOURCE
from turns import middle, paired_ratio, take_turns

NAMES = [f"serve-beam5-{precision}" for precision in PRECISIONS]
CLIENTS = 32
SECONDS = 8
# How the peer may divide its work; the fastest way counts.
WAYS = {"one batch on all threads": ["--inter", "1", "--intra", str(THREADS)],
        "a batch a thread": ["--inter", str(THREADS), "--intra", "1"],
        "each request alone": ["--mode", "each", "--inter", str(THREADS), "--intra", "1"]}
SCRIPT = """
local bodies, at = {}, 0
for line in io.lines("%s") do bodies[#bodies + 1] = line end
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
request = function()
  at = at %% #bodies + 1
  return wrk.format(nil, "/translate", nil, bodies[at])
end
"""


def write_requests(folder):
    bodies, script = os.path.join(folder, "bodies.json"), os.path.join(folder, "requests.lua")
    with open(SOURCE, encoding="utf-8") as source, open(bodies, "w", encoding="utf-8") as target:
        target.writelines(json.dumps({"text": line.strip()}) + "\n" for line in source)
    with open(script, "w", encoding="utf-8") as target:
        target.write(SCRIPT % bodies)
    return script


def seconds(text):
    number, unit = re.fullmatch(r"([0-9.]+)(us|ms|s|m)", text).groups()
    return float(number) * {"us": 1e-6, "ms": 1e-3, "s": 1, "m": 60}[unit]


def load(command, script):
    """Starts a server, which prints its address, asks it for some seconds, and stops it."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            url = server.stdout.readline().strip()
            if not url:
                raise Failure(f"{command[0]}: {(server.stderr.read().strip().splitlines() or ['it printed nothing'])[-1]}")
            wrk = ["wrk", "--threads", "1", "--connections", str(CLIENTS), "--latency", "--timeout", "30s", "--script",
                   script]
            run([*wrk, "--duration", "1s", url], "wrk")  # threads and memory are taken now
            printed = run([*wrk, "--duration", f"{SECONDS}s", url], "wrk")
        finally:
            server.terminate()
            server.wait()
    rate, tail = re.search(r"Requests/sec: +([0-9.]+)", printed), re.search(r"99% +([0-9.]+[mus]+)", printed)
    if not rate or not tail or "Non-2xx" in printed or "Socket errors" in printed:
        raise Failure(f"wrk: {printed}")
    return {"speed": float(rate.group(1)), "p99": seconds(tail.group(1))}


def measure(context, names):
    if not os.path.isfile(SOURCE):
        raise Failure(f"{SOURCE} is not there; set TARN_DATA to the folder that holds multi30k/")
    if not shutil.which("wrk"):
        say("serving left out: wrk is not installed (apt-get install wrk)")
        return {}
    model, entries = Model(context), {}
    script = write_requests(context.folder)
    for precision, compute in PRECISIONS.items():
        name = f"serve-beam5-{precision}"
        if name in names:
            say(f"{name} ...")
            entries[name] = measure_one(context, model, script, precision, compute)
    return entries


def measure_one(context, model, script, precision, compute):
    ours = [TARN, "serve", model.run, "--port", "0", "--beam", "5", "--precision", precision, "--threads", str(THREADS)]
    sides = {"tarn": lambda: load(ours, script)}
    if model.peer_python:
        pieces = model.vocabulary(os.path.join(context.folder, "dense.safetensors"))
        theirs = [model.peer_python, os.path.join(ROOT, "bench", "serve_ctranslate2.py"), model.peer_model, pieces, "--beam",
                  "5", "--compute", compute]
        for way, options in WAYS.items():
            sides[f"CTranslate2, {way}"] = lambda options=options: load([*theirs, *options], script)
    results = take_turns(context.rounds, sides)
    own = results.pop("tarn")
    entry = {"unit": "sentences/s", "ours": middle(own, "speed"), "p99": middle(own, "p99"), "peer": None, "ratio": None,
             "peak_share": None, "threads": THREADS, "clients": CLIENTS}
    speeds = {way: middle(samples, "speed") for way, samples in results.items()}
    if speeds:
        best = max(speeds, key=speeds.get)
        entry.update({"peer": speeds[best], "peer_name": best, "peers": speeds, "peer_p99": middle(results[best], "p99"),
                      "ratio": paired_ratio(own, results[best], "speed")})
    return entry


def table(entries):
    head = ["serving", "sentences/s", "peer", "ratio", "p99, ms", "peer", "the fastest peer"]
    rows = [[name, (e["ours"], 1), (e["peer"], 1), (e["ratio"], 2), (1e3 * e["p99"], 1),
             (1e3 * e["peer_p99"] if e["peer"] else None, 1), e.get("peer_name", "-")] for name, e in entries.items()]
    return head, rows, []
