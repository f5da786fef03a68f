"""Translation of Multi30k's test sentences, in turns with CTranslate2 on the same weights."""

import json
import os
import re
import shutil
import subprocess

import tarn
from peers import Peer
from settings import DATA, Failure, ROOT, TARN, THREADS, pythons, run, say
from turns import middle, paired_ratio, take_turns

SOURCE = os.path.join(DATA, "multi30k", "test_2016_flickr.de")
REFERENCE = os.path.join(DATA, "multi30k", "test_2016_flickr.en")
BEAMS = {"beam5": 5, "greedy": 1}
PRECISIONS = {"fp32": "float32", "int8": "int8"}
CASES = [(search, precision) for search in BEAMS for precision in PRECISIONS]
NAMES = [f"translate-{search}-{precision}" for search, precision in CASES]
# How the peer may cut its work; the fastest way counts.
WAYS = {"64 sentences": ["--batch", "64"], "32 sentences": ["--batch", "32"],
        "2,048 tokens": ["--batch", "2048", "--batch-type", "tokens"]}


class Model:
    """A trained model and its copies for the peer. TARN_BENCH_RUN names a run directory; without it a small model is
    trained for a few minutes (its BLEU is low, but it ends its sentences)."""

    def __init__(self, context):
        self.run = os.environ.get("TARN_BENCH_RUN") or self.trained(context)
        self.folder = context.folder
        self.peer_python = find_peer()
        if not self.peer_python:
            return
        dense = os.path.join(self.folder, "dense.safetensors")
        self.peer_model = os.path.join(self.folder, "ctranslate2")
        self.peer_source = os.path.join(self.folder, "test.bpe")
        run([TARN, "export", "--dense", self.run, dense], "export")
        convert = os.path.join(ROOT, "bench", "convert_ctranslate2.py")
        run([self.peer_python, convert, dense, self.peer_model], "conversion for CTranslate2")
        with open(SOURCE, encoding="utf-8") as source, open(self.peer_source, "w", encoding="utf-8") as target:
            run([TARN, "encode", "--vocab", self.vocabulary(dense)], "pieces", stdin=source, stdout=target)

    def vocabulary(self, dense):
        """The vocabulary inside the exported file, for `tarn encode`."""
        with open(dense, "rb") as file:
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
            begin, end = header["vocab.source"]["data_offsets"]
            file.seek(begin, os.SEEK_CUR)
            data = file.read(end - begin)
        path = os.path.join(self.folder, "test.vocab")
        with open(path, "wb") as file:
            file.write(data)
        return path

    @staticmethod
    def trained(context):
        say("training a small model to translate with; TARN_BENCH_RUN=RUN takes one that is there ...")
        settings = {"train.precision": "bf16", "train.lr": 0.001, "train.warmup": 300}
        tarn.train(context.data(), os.path.join(ROOT, "bench", "small.yaml"), settings, context.updates(800))
        return shutil.move(os.path.join(context.folder, "run"), os.path.join(context.folder, "translation"))


def find_peer():
    for script in ("convert_ctranslate2.py", "translate_ctranslate2.py"):
        if not os.path.isfile(os.path.join(ROOT, "bench", script)):
            say(f"no peer for translation: bench/{script} is not there")
            return None
    modules = "ctranslate2, numpy, safetensors, sentencepiece, yaml"
    for python in pythons():
        if subprocess.run([python, "-c", f"import {modules}"], capture_output=True, check=False).returncode == 0:
            return python
    say(f"no peer for translation: no Python with {modules} (PYTHON)")
    return None


def bleu(hypothesis):
    with open(hypothesis, encoding="utf-8") as file:
        printed = run([TARN, "bleu", "--json", "--lowercase", "--reference", REFERENCE], "BLEU", stdin=file)
    return json.loads(printed)["score"]


def of_tarn(model, beam, precision):
    """The summary that tarn prints counts the reading and writing of text as well, which the peer's time leaves out."""
    hypothesis = os.path.join(model.folder, "hypothesis.tarn")
    command = [TARN, "translate", model.run, "--beam", str(beam), "--precision", precision, "--threads", str(THREADS),
               "--input", SOURCE, "--output", hypothesis]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"(\d+) sentences, .* in ([0-9.]+) s", done.stderr)
    if done.returncode != 0 or not found:
        raise Failure(f"translation: {(done.stderr.strip().splitlines() or ['nothing was printed'])[-1]}")
    return {"speed": int(found.group(1)) / float(found.group(2)), "bleu": bleu(hypothesis)}


def of_peer(model, beam, precision, way):
    hypothesis = os.path.join(model.folder, "hypothesis.peer")
    printed = run([model.peer_python, os.path.join(ROOT, "bench", "translate_ctranslate2.py"), model.peer_model,
                   model.peer_source, "--beam", str(beam), "--compute", PRECISIONS[precision], "--intra", str(THREADS),
                   "--repeat", "1", "--output", hypothesis, *way], "CTranslate2")
    result = json.loads(printed.strip().splitlines()[-1])
    return {"speed": result["sentences_per_second"], "bleu": bleu(hypothesis), "peak_mb": result["peak_mb"]}


def measure(context, names):
    if not os.path.isfile(SOURCE):
        raise Failure(f"{SOURCE} is not there; set TARN_DATA to the folder that holds multi30k/")
    model, entries = Model(context), {}
    for search, precision in CASES:
        name = f"translate-{search}-{precision}"
        if name not in names:
            continue
        say(f"{name} ...")
        try:
            entries[name] = measure_one(context, model, BEAMS[search], precision)
        except Failure as failure:
            say(f"  {name} left out: {failure}")
    return entries


def measure_one(context, model, beam, precision):
    sides = {"tarn": lambda: of_tarn(model, beam, precision)}
    race = {}
    for way, options in WAYS.items() if model.peer_python else ():
        name = f"CTranslate2, {way}"
        sides[name] = Peer(name, race, lambda options=options: of_peer(model, beam, precision, options), "speed")
    results = take_turns(context.rounds, sides)
    ours = results.pop("tarn")
    entry = {"unit": "sentences/s", "ours": middle(ours, "speed"), "peer": None, "ratio": None, "peak_share": None,
             "threads": THREADS, "bleu": ours[0]["bleu"]}
    speeds = {name: middle(samples, "speed") for name, samples in results.items() if samples}
    if speeds:
        best = max(speeds, key=speeds.get)
        entry.update({"peer": speeds[best], "peer_name": best, "peers": speeds, "peer_bleu": results[best][0]["bleu"],
                      "ratio": paired_ratio(ours, results[best], "speed")})
    return entry


def table(entries):
    head = ["translation", "sentences/s", "peer", "ratio", "BLEU", "peer", "the fastest peer"]
    rows = [[name, (e["ours"], 1), (e["peer"], 1), (e["ratio"], 2), (e["bleu"], 2), (e.get("peer_bleu"), 2),
             e.get("peer_name", "-")] for name, e in entries.items()]
    return head, rows, []
