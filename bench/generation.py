"""Greedy generation by a language model of GPT-2's shape with random weights, one text and several at a time, in turns with
llama.cpp, CTranslate2 and transformers on the same weights. Every precision is read from a file that holds it."""

import json
import os
import re
import subprocess

from peers import Peer
from settings import DATA, Failure, ROOT, TARN, THREADS, pythons, run, say
from turns import middle, paired_ratio, take_turns

SCRIPT = os.path.join(ROOT, "bench", "generate_peer.py")
GPT2 = os.path.join(DATA, "gpt2")
TOKENS, REPEAT = 100, 3
BATCHES = (1, 16)
# For each precision the nearest one of each peer.
PRECISIONS = {"fp32": {"llama.cpp": "f32", "CTranslate2": "float32", "transformers": "float32"},
              "bf16": {"llama.cpp": "f16", "CTranslate2": "bfloat16", "transformers": "bfloat16"},
              "int8": {"llama.cpp": "q8_0", "CTranslate2": "int8"},
              "int4": {"llama.cpp": "q4_0"}}
MODULES = {"llama.cpp": "llama_cpp, numpy", "CTranslate2": "ctranslate2, numpy",
           "transformers": "transformers, torch, numpy"}
CASES = [(batch, precision) for batch in BATCHES for precision in PRECISIONS]
NAMES = [f"generate-{batch}-{precision}" for batch, precision in CASES]
PLACES = ("house", "garden", "river", "road", "city", "church", "school", "table", "window", "door", "field", "wall",
          "market", "station", "bridge", "island")


class Model:
    """The weights in the forms of all programs."""

    def __init__(self, context):
        self.folder = os.path.join(context.folder, "generation")
        os.mkdir(self.folder)
        vocab, text = self.path("vocab"), self.path("text")
        run([TARN, "vocab", "--import-gpt2", GPT2, "--output", vocab], "vocabulary")
        self.prompts = [f"The old {place}" for place in PLACES]
        with open(text, "w", encoding="utf-8") as file:
            file.write("".join(prompt + "\n" for prompt in self.prompts))
        run([TARN, "prepare", "--vocab", vocab, "--text", text, "--output", self.path("data")], "shard")
        run([TARN, "train", os.path.join(ROOT, "bench", "gpt2.yaml"), "--run", self.path("run"), "--threads",
             str(THREADS), "--set", f"data.vocab={vocab}", "--set", f"data.train={self.path('data')}"], "first weights")
        self.files = {"fp32": self.path("fp32")}
        run([TARN, "average", "--output", self.files["fp32"], self.path("run", "checkpoint_last.safetensors")], "weights")
        for precision in list(PRECISIONS)[1:]:
            self.files[precision] = self.path(precision)
            run([TARN, "export", "--precision", precision, self.files["fp32"], self.files[precision]], "export")
        with open(text, encoding="utf-8") as file:
            ids = run([TARN, "encode", "--vocab", vocab, "--ids"], "prompts", stdin=file)
        with open(self.path("prompts.json"), "w", encoding="utf-8") as file:
            json.dump([[int(word) for word in line.split()] for line in ids.splitlines()], file)
        self.pythons = find_peers()
        if "llama.cpp" in self.pythons:
            for kind in ("f32", "f16", "q8_0"):
                run([TARN, "export", "--format", "gguf", "--type", kind, self.files["fp32"], self.path(kind)], "export")
        if "CTranslate2" in self.pythons or "transformers" in self.pythons:
            run([TARN, "export", "--format", "gpt2", self.files["fp32"], self.path("transformers")], "export")

    def path(self, *names):
        return os.path.join(self.folder, *names)


def find_peers():
    """For each program the first Python that has it."""
    found = {}
    for program, modules in MODULES.items():
        for python in pythons():
            if subprocess.run([python, "-c", f"import {modules}"], capture_output=True, check=False).returncode == 0:
                found.setdefault(program, python)
        if program not in found:
            say(f"no {program}: no Python with {modules} (PYTHON)")
    return found


def of_tarn(model, batch, precision):
    """Prompts in windows of a batch, so that one process generates several times; the speed is of all of them, where that of
    a peer is of its fastest run. No text ends before its last token."""
    prompts = model.path(f"prompts-{batch}")
    with open(prompts, "w", encoding="utf-8") as file:
        file.write("".join(prompt + "\n" for prompt in model.prompts[:batch] * REPEAT))
    command = [TARN, "generate", model.files[precision], "--precision", precision, "--input", prompts, "--window",
               str(batch), "--max-tokens", str(TOKENS), "--min-tokens", str(TOKENS), "--threads", str(THREADS), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"(\d+) tokens in ([0-9.]+) s", done.stderr)
    if done.returncode != 0 or not found:
        raise Failure(f"generation: {(done.stderr.strip().splitlines() or ['nothing was printed'])[-1]}")
    first = [piece[1] for piece in json.loads(done.stdout.splitlines()[0])["texts"][0]["pieces"]]
    return {"speed": int(found.group(1)) / float(found.group(2)), "first": first}


def of_peer(model, program, batch, precision):
    printed = run([model.pythons[program], SCRIPT, program, model.folder, PRECISIONS[precision][program], "--batch",
                   str(batch), "--tokens", str(TOKENS), "--threads", str(THREADS), "--repeat", str(REPEAT)], program)
    return json.loads(printed.strip().splitlines()[-1])


def measure(context, names):
    if not names:
        return {}
    if not os.path.isfile(os.path.join(GPT2, "encoder.json")):
        raise Failure(f"{GPT2}/encoder.json is not there; set TARN_DATA to the folder that holds gpt2/")
    say("preparing a language model of GPT-2's shape ...")
    model, entries = Model(context), {}
    for batch, precision in CASES:
        name = f"generate-{batch}-{precision}"
        if name in names:
            say(f"{name} ...")
            entries[name] = measure_one(context, model, batch, precision)
    return entries


def same_tokens(ours, theirs):
    """How many tokens of the first text are the same, from its beginning on."""
    return next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))


def measure_one(context, model, batch, precision):
    sides = {"tarn": lambda: of_tarn(model, batch, precision)}
    for program in PRECISIONS[precision]:
        if program in model.pythons:
            sides[program] = Peer(program, {}, lambda program=program: of_peer(model, program, batch, precision), "speed")
    results = take_turns(context.rounds, sides)
    ours = results.pop("tarn")
    entry = {"unit": "tokens/s", "ours": middle(ours, "speed"), "peer": None, "ratio": None, "peak_share": None,
             "threads": THREADS, "peers": {}}
    for program, samples in results.items():
        if samples:
            entry["peers"][program] = {"speed": middle(samples, "speed"), "ratio": paired_ratio(ours, samples, "speed"),
                                       "same_tokens": same_tokens(ours[0]["first"], samples[0]["first"])}
    if entry["peers"]:
        best = max(entry["peers"], key=lambda program: entry["peers"][program]["speed"])
        entry.update({"peer": entry["peers"][best]["speed"], "peer_name": best, "ratio": entry["peers"][best]["ratio"]})
    return entry


def table(entries):
    head = ["generation", "tokens/s"] + [cell for program in MODULES for cell in (program, "ratio")]
    rows = []
    for name, e in entries.items():
        cells = [e["peers"].get(program, {"speed": None, "ratio": None}) for program in MODULES]
        rows.append([name, (e["ours"], 1)] + [c for cell in cells for c in ((cell["speed"], 1), (cell["ratio"], 2))])
    return head, rows, []
