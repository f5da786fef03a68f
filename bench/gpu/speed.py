"""Steps that measure: training in turns with PyTorch, the dearest kernels, translation."""

import csv
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import threading
import time
from statistics import median

from place import fresh
from report import Failed, Skipped

# name: description, its settings, options of the peer. The wide one is a model that arithmetic binds, not memory.
BASE = "multi30k/model0.yaml"
MODELS = {
    "model0": (BASE, {"kinds.L.heads": 16}, []),
    "wide": (BASE, {"model.d_model": 1024, "kinds.L.heads": 16, "kinds.L.ffn": 4096, "encoder.layers": "L*12",
                    "decoder.layers": "L*6"}, ["--width", "1024", "--ffn", "4096", "--encoder", "12", "--decoder", "6"]),
}
# Against Model0, tarn alone.
OTHERS = {"model2": ("multi30k/model2.yaml", {"kinds.L.heads": 16, "kinds.R.heads": 16}),
          "structured": ("multi30k/model2-hadamard.yaml", {"kinds.L.heads": 16, "kinds.R.heads": 16})}
# Tokens of a batch: updates that are counted of a turn. The first WARM are not.
SIZES = {4096: 120, 16384: 60, 65536: 30}
WARM, WINDOW = 20, 10
ROUNDS = 3
METRICS = {"gpu__time_duration.sum": "ns", "dram__throughput.avg.pct_of_peak_sustained_elapsed": "memory",
           "sm__throughput.avg.pct_of_peak_sustained_elapsed": "sm",
           "sm__warps_active.avg.pct_of_peak_sustained_active": "occupancy",
           "launch__registers_per_thread": "registers"}


def overrides(keys):
    return [word for key, value in keys.items() for word in ("--set", f"{key}={value}")]


class Tarn:
    """Trainings of tarn on the device, on one set."""

    def __init__(self, runner, data, tiny):
        self.runner, self.data, self.host, self.tiny = runner, data, runner.place.host, tiny
        self.sizes = {200: 4} if self.host else SIZES
        self.warm, self.window = (1, 1) if self.host else (WARM, WINDOW)

    def command(self, configuration, settings, tokens, updates):
        """Of a training; the host takes a tiny model in place of any."""
        run = fresh(os.path.join(self.runner.place.folder, "run"))
        path, keys = (self.tiny, {}) if self.host else (self.runner.place.example(configuration), settings)
        keys = {"train.max_tokens": tokens, "train.accumulate": 1, "train.max_epochs": 0, "train.max_minutes": 0,
                "train.average": 0, "train.precision": "bf16", "train.log_every": self.window,
                "train.max_updates": updates, **keys}
        return ["train", path, "--run", run, "--device", "cuda", *self.data.settings(), *overrides(keys)], run

    def train(self, configuration, settings, tokens, left):
        """Real tokens a second and milliseconds a step: medians over windows of updates behind the first ones."""
        words, run = self.command(configuration, settings, tokens, self.warm + self.sizes[tokens])
        output = self.runner.tarn([*words, "--json"], left, f"training of {configuration} with {tokens} tokens")
        with open(os.path.join(run, "log.jsonl"), encoding="utf-8") as log:
            lines = [line for line in map(json.loads, log) if line["kind"] == "train" and line["step"] >= self.warm]
        if len(lines) < 2:
            raise Failed(f"{configuration}: its log has no updates behind the first {self.warm}")
        total = [line["source_tokens"] + line["target_tokens"] for line in lines]
        pairs = list(zip(lines, lines[1:], total, total[1:]))
        result = json.loads(output.strip().splitlines()[-1])
        return {"tokens_per_second": median((y - x) / (b["time"] - a["time"]) for a, b, x, y in pairs),
                "step_ms": 1e3 * median((b["time"] - a["time"]) / (b["step"] - a["step"]) for a, b, _, _ in pairs),
                "planned_mb": result.get("planned_bytes", 0) / 1e6}

    def batches(self, tokens, left):
        """The batches of such a training, for the peer."""
        program = os.path.join(self.runner.place.programs, "bench_batches")
        path = os.path.join(self.runner.place.folder, f"batches-{tokens}")
        with open(path, "w", encoding="utf-8") as file:
            done = subprocess.run([program, self.data.train, str(tokens), str(self.warm + self.sizes[tokens])],
                                  stdout=file, stderr=subprocess.PIPE, text=True, timeout=max(1, left), check=False)
        if done.returncode != 0:
            raise Failed(f"bench_batches: {done.stderr.strip()}")
        return path


class Peer:
    """PyTorch in a process of its own, which compiles while other steps run (bench/torch_peer_cuda.py)."""

    def __init__(self, tarn, options):
        self.tarn, self.lines, self.asked, self.why = tarn, queue.Queue(), 0, ""
        script = os.path.join(tarn.runner.place.root, "bench", "torch_peer_cuda.py")
        command = [sys.executable, script, "--shard", tarn.data.train, *options]
        if tarn.host:
            command += ["--device", "cpu", "--no-compile", "--width", "32", "--ffn", "64", "--heads", "2"]
        self.log = open(os.path.join(tarn.runner.place.folder, f"peer-{id(self)}.log"), "w+", encoding="utf-8")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True)
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))
        self.lines.put(None)

    def ask(self, path, warm, updates):
        try:
            self.process.stdin.write(json.dumps({"batches": path, "warm": warm, "updates": updates}) + "\n")
            self.process.stdin.flush()
            self.asked += 1
        except OSError:
            pass  # it has ended, and answer() says why

    def answer(self, seconds):
        """Its next line, or None with the reason in `why`."""
        try:
            line = self.lines.get(timeout=max(1, seconds))
        except queue.Empty:
            self.why = f"PyTorch: no answer after {seconds:.0f} s"
            return None
        if line is None:
            self.log.seek(0)
            printed = self.log.read().strip()
            self.tarn.runner.report.note("torch_peer_cuda.py", printed[-5000:])
            self.why = f"PyTorch: {(printed.splitlines() or ['it ended'])[-1]}"
            return None
        if "failed" in line:
            self.why = f"PyTorch: {line['failed']}"
            return None
        return line

    def close(self):
        self.process.kill()
        self.process.wait()
        self.log.close()


def start_peers(tarn, left):
    """{model: Peer}, which compile and warm up by themselves; empty where this Python has no PyTorch."""
    has = subprocess.run([sys.executable, "-c", "import torch, numpy"], capture_output=True, check=False).returncode == 0
    peers = {}
    for name, (_, _, options) in MODELS.items() if has else ():
        peers[name] = Peer(tarn, options)
        for tokens in tarn.sizes:
            peers[name].ask(tarn.batches(tokens, left), 1, 3)
        if tarn.host:
            break  # one is enough there
    return peers


def warmed(peer, tarn, left):
    """Waits until a peer has compiled for all sizes: what it said first, with the seconds of waiting."""
    begin = time.monotonic()
    for _ in range(1 + len(tarn.sizes)):
        line = peer.answer(left - (time.monotonic() - begin))
        if line is None:
            return None
        if "ready" in line:
            first = line
    return {**first, "waited": round(time.monotonic() - begin, 1)}


def one_size(tarn, name, peer, tokens, end):
    """Turns at one size: medians, and the median of the ratios of neighbouring turns."""
    configuration, settings, _ = MODELS[name]
    ours, theirs = [], []
    for _ in range(1 if tarn.host else ROUNDS):
        if ours and end - time.monotonic() < 25:
            break
        ours.append(tarn.train(configuration, settings, tokens, end - time.monotonic()))
        if peer and not peer.why:
            peer.ask(tarn.batches(tokens, 20), tarn.warm, tarn.sizes[tokens])
            answer = peer.answer(end - time.monotonic())
            if answer:
                theirs.append(answer)
    entry = {"turns": ours, "peer_turns": theirs,
             **{key: median(turn[key] for turn in ours) for key in ("tokens_per_second", "step_ms")}}
    if theirs:
        entry["peer"] = median(turn["tokens_per_second"] for turn in theirs)
        entry["ratio"] = median(a["tokens_per_second"] / b["tokens_per_second"] for a, b in zip(ours, theirs))
    return entry


def training(tarn, name, peers, left):
    """One model at all sizes, in turns with the peer."""
    end, peer = time.monotonic() + left, peers.get(name)
    figures = {"data": tarn.data.name, "precision": "bf16", "sizes": {}}
    if peer:
        figures["peer"] = warmed(peer, tarn, min(left / 2, 150))
    failed = ""
    for tokens in tarn.sizes:
        if figures["sizes"] and end - time.monotonic() < 30:
            failed = failed or f"no time for {tokens} tokens"
            break
        try:
            figures["sizes"][tokens] = one_size(tarn, name, peer, tokens, end)
        except Failed as reason:
            failed = failed or f"{tokens} tokens: {reason}"
    if peer and peer.why:
        figures["peer_failed"] = peer.why
    figures["summary"] = "; ".join(words_of(tokens, entry) for tokens, entry in figures["sizes"].items())
    if failed:
        raise Failed(failed, figures)
    return figures


def words_of(tokens, entry):
    ratio = f", {entry['ratio']:.2f} x PyTorch" if "ratio" in entry else ""
    return f"{tokens}: {entry['tokens_per_second']:,.0f} tokens/s{ratio}"


def freezing(tarn, left):
    """Model2 with plain and structured reservoirs over Model0, in turns at 4,096 and 16,384 tokens."""
    end, figures = time.monotonic() + left, {}
    models = {"model0": MODELS["model0"][:2], **OTHERS}
    for tokens in list(tarn.sizes)[:2]:
        rates = {name: [] for name in models}
        for _ in range(1 if tarn.host else 2):
            for name, (configuration, settings) in models.items():
                rates[name].append(tarn.train(configuration, settings, tokens, end - time.monotonic())["tokens_per_second"])
        figures[tokens] = {name: median(a / b for a, b in zip(of, rates["model0"])) for name, of in rates.items()}
    return {"over_model0": figures, "summary": "; ".join(
        f"{tokens}: " + ", ".join(f"{name} {ratio:.2f}" for name, ratio in each.items() if name != "model0")
        for tokens, each in figures.items())}


def profile(tarn, left):
    """What tarn measures of its ops: the table of --profile, the dearest first."""
    configuration, settings, _ = MODELS["model0"]
    tokens = list(tarn.sizes)[0]
    words, _ = tarn.command(configuration, settings, tokens, 4 if tarn.host else 30)
    trace = os.path.join(tarn.runner.place.folder, "trace.json")
    output = tarn.runner.tarn([*words, "--json", "--profile", trace], left, "tarn train --profile")
    found = [line for line in output.splitlines() if '"kind":"profile"' in line.replace(" ", "")]
    if not found:
        raise Failed("tarn train --profile printed no table")
    table = json.loads(found[-1])
    rows = sorted(table["rows"], key=lambda row: -row["seconds"])
    return {"tokens": tokens, "peaks": table["peaks"], "rows": rows[:20], "summary": ", ".join(
        f"{row['op']} {row['pass']} {100 * row['share']:.0f} %" for row in rows[:3])}


def read_ncu(path):
    """{kernel: totals} of ncu's table: launches, nanoseconds, and means of the percentages by time."""
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = [line for line in file if line.startswith('"')]
    kernels = {}
    for row in csv.DictReader(lines):
        name = re.sub(r"^void ", "", row.get("Kernel Name", "")).split("(")[0]
        try:
            values = {short: float(row[metric].replace(",", "")) for metric, short in METRICS.items()}
        except (KeyError, ValueError, AttributeError):
            continue  # the row of the units
        total = kernels.setdefault(name, {"launches": 0, "ns": 0.0, "registers": 0.0})
        total["launches"] += 1
        total["ns"] += values["ns"]
        total["registers"] = values["registers"]
        for key in ("memory", "sm", "occupancy"):
            total[key] = total.get(key, 0.0) + values["ns"] * values[key]
    for total in kernels.values():
        for key in ("memory", "sm", "occupancy"):
            total[key] = round(total[key] / total["ns"], 1) if total["ns"] else 0.0
    return kernels


def ncu(tarn, left):
    """The kernels of two updates under ncu, the three dearest first: --profile names ops, of which one may have several."""
    if tarn.host:
        raise Skipped("only on a card")
    if not shutil.which("ncu"):
        raise Skipped("ncu is not on the path")
    configuration, settings, _ = MODELS["model0"]
    words, _ = tarn.command(configuration, settings, list(tarn.sizes)[1], 2)
    path = os.path.join(tarn.runner.report.folder, "ncu.csv")
    tarn.runner.must(["ncu", "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none", "--metrics",
                      ",".join(METRICS), "--launch-count", "1500", "--log-file", path, tarn.runner.place.tarn, *words],
                     left, what="ncu")
    kernels = read_ncu(path)
    if not kernels:
        raise Failed(f"ncu wrote no kernel into {path}")
    total = sum(each["ns"] for each in kernels.values())
    dearest = sorted(kernels.items(), key=lambda item: -item[1]["ns"])[:12]
    return {"ns": total, "kernels": dict(dearest), "summary": "; ".join(
        f"{name} {100 * each['ns'] / total:.0f} %, memory {each['memory']:.0f} %, sm {each['sm']:.0f} %"
        for name, each in dearest[:3])}


def translation(tarn, left):
    """Sentences a second, beam 5, of a model that was trained for some seconds."""
    if not tarn.data.source or not os.path.isfile(tarn.data.source):
        raise Skipped(f"{tarn.data.name}: no text to translate")
    runner, end = tarn.runner, time.monotonic() + left
    run = fresh(os.path.join(runner.place.folder, "translating"))
    path, keys = (tarn.tiny, {"train.max_updates": 4}) if tarn.host else (
        os.path.join(runner.place.root, "bench", "small.yaml"), {"train.max_minutes": 0.4, "train.max_updates": 0,
                                                                "train.lr": 0.001, "train.warmup": 300})
    runner.tarn(["train", path, "--run", run, "--device", "cuda", "--quiet", *tarn.data.settings(),
                 *overrides({"train.precision": "bf16", "train.average": 0, **keys})], left, "a model to translate with")
    figures = {}
    for precision in ("bf16", "fp32"):
        output = runner.tarn(["translate", run, "--beam", "5", "--device", "cuda", "--precision", precision, "--input",
                              tarn.data.source, "--output", os.path.join(runner.place.folder, "hypothesis")],
                             end - time.monotonic())
        found = re.search(r"(\d+) sentences, .* in ([0-9.]+) s", output)
        if not found:
            raise Failed(f"tarn translate printed no summary: {output.strip().splitlines()[-1:]}")
        figures[precision] = int(found.group(1)) / max(1e-9, float(found.group(2)))
    return {**figures, "summary": ", ".join(f"{key} {value:,.0f} sentences/s" for key, value in figures.items())}
