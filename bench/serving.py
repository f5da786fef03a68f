"""A model over HTTP, `tarn serve` in turns with CTranslate2 behind a minimal asynchronous server (serve_ctranslate2.py):
the same weights, the same beam; 32 connections of wrk on loopback that each ask again as soon as they are answered, and
requests that arrive at rising rates, whether the server keeps up or not (arrivals.py)."""

import json
import os
import re
import shutil
import subprocess
from contextlib import contextmanager

from arrivals import ask
from settings import Failure, ROOT, TARN, THREADS, run, say
from translation import Model, PRECISIONS, SOURCE
from turns import middle, paired_ratio, take_turns

CLOSED = {f"serve-beam5-{precision}": precision for precision in PRECISIONS}
# Per cent of what tarn answers on 32 connections.
RATES = (25, 50, 75, 90)
RISING = {f"load-{precision}-{rate}": (precision, rate) for precision in PRECISIONS for rate in RATES}
NAMES = [*CLOSED, *RISING]
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


@contextmanager
def started(command):
    """A server, which prints its address."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            url = server.stdout.readline().strip()
            if not url:
                raise Failure(f"{command[0]}: {(server.stderr.read().strip().splitlines() or ['it printed nothing'])[-1]}")
            yield url
        finally:
            server.terminate()
            server.wait()


def load(command, script):
    """Starts a server, asks it for some seconds, and stops it."""
    with started(command) as url:
        wrk = ["wrk", "--threads", "1", "--connections", str(CLIENTS), "--latency", "--timeout", "30s", "--script", script]
        run([*wrk, "--duration", "1s", url], "wrk")  # threads and memory are taken now
        printed = run([*wrk, "--duration", f"{SECONDS}s", url], "wrk")
    rate, tail = re.search(r"Requests/sec: +([0-9.]+)", printed), re.search(r"99% +([0-9.]+[mus]+)", printed)
    if not rate or not tail or "Non-2xx" in printed or "Socket errors" in printed:
        raise Failure(f"wrk: {printed}")
    return {"speed": float(rate.group(1)), "p99": seconds(tail.group(1))}


def rise(command, bodies, rates):
    """The times of requests at each of the rates."""
    with started(command) as url:
        ask(url, bodies, min(rates.values()), 1)
        return {share: ask(url, bodies, rate, SECONDS) for share, rate in rates.items()}


def commands(context, model, precision):
    """How each side is started, tarn first."""
    found = {"tarn": [TARN, "serve", model.run, "--port", "0", "--beam", "5", "--precision", precision, "--threads", str(THREADS)]}
    if model.peer_python:
        pieces = model.vocabulary(os.path.join(context.folder, "dense.safetensors"))
        theirs = [model.peer_python, os.path.join(ROOT, "bench", "serve_ctranslate2.py"), model.peer_model, pieces, "--beam",
                  "5", "--compute", PRECISIONS[precision]]
        for way, options in WAYS.items():
            found[f"CTranslate2, {way}"] = [*theirs, *options]
    return found


def measure(context, names):
    if not os.path.isfile(SOURCE):
        raise Failure(f"{SOURCE} is not there; set TARN_DATA to the folder that holds multi30k/")
    if not shutil.which("wrk"):
        say("serving left out: wrk is not installed (apt-get install wrk)")
        return {}
    model, entries = Model(context), {}
    script = write_requests(context.folder)
    for precision in PRECISIONS:
        wanted = {RISING[name][1]: name for name in names if RISING.get(name, (None,))[0] == precision}
        closed = [name for name, own in CLOSED.items() if own == precision and name in names]
        if closed or wanted:
            say(f"serve-beam5-{precision} ...")
            entry = measure_closed(context, model, script, precision)
            entries.update({name: entry for name in closed})
        if wanted:
            say(f"load-{precision} ...")
            entries.update(measure_rising(context, model, precision, wanted, entry))
    return entries


def measure_closed(context, model, script, precision):
    sides = {side: lambda command=command: load(command, script) for side, command in commands(context, model, precision).items()}
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


def measure_rising(context, model, precision, wanted, closed):
    """`ours` and `peer` are p95 in ms, of the peer's way that was fastest on 32 connections."""
    with open(os.path.join(context.folder, "bodies.json"), encoding="utf-8") as file:
        bodies = [line.strip().encode() for line in file]
    rates = {share: max(1.0, closed["ours"] * share / 100) for share in wanted}
    every = commands(context, model, precision)
    sides = {"tarn": every["tarn"], **({"peer": every[closed["peer_name"]]} if closed["peer"] else {})}
    results = take_turns(context.rounds, {side: lambda command=command: rise(command, bodies, rates)
                                          for side, command in sides.items()})
    entries = {}
    for share, name in wanted.items():
        at = {side: [sample[share] for sample in samples] for side, samples in results.items()}
        times = {side: {key: 1e3 * middle(samples, key) for key in ("p50", "p95", "p99")} for side, samples in at.items()
                 if all(sample["answered"] for sample in samples)}
        if "tarn" not in times:
            raise Failure(f"{name}: tarn answered no request")
        lost = {side: sum(sample["refused"] + sample["failed"] for sample in samples) for side, samples in at.items()}
        peer = times.get("peer")
        entries[name] = {"unit": "ms", "rate": rates[share], **times["tarn"], "ours": times["tarn"]["p95"], "lost": lost["tarn"],
                         "peer": peer and peer["p95"], "peer_times": peer, "peer_lost": lost.get("peer"),
                         "ratio": peer and peer["p95"] / times["tarn"]["p95"], "peak_share": None, "threads": THREADS}
    return entries


def table(entries):
    head = ["serving", "requests/s", "p50, ms", "p95", "p99", "lost", "peer: requests/s", "p50, ms", "p95", "p99", "lost", "ratio"]
    rows = []
    for name, e in entries.items():
        if name in CLOSED:
            rows.append([name, (e["ours"], 1), "", "", (1e3 * e["p99"], 1), "", (e["peer"], 1), "", "",
                         (1e3 * e["peer_p99"] if e["peer"] else None, 1), "", (e["ratio"], 2)])
        else:
            theirs = e["peer_times"] or {}
            rows.append([name, (e["rate"], 1), *((e[key], 1) for key in ("p50", "p95", "p99")), (e["lost"], 0),
                         (e["rate"] if theirs else None, 1), *((theirs.get(key), 1) for key in ("p50", "p95", "p99")),
                         (e["peer_lost"], 0), (e["ratio"], 2)])
    peers = sorted({e["peer_name"] for e in entries.values() if e.get("peer_name")})
    return head, rows, [f"the fastest peer: {name}" for name in peers]
