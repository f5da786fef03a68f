"""PyTorch as a peer: torch_mt.py and torch_lm.py of the folder TARN_PEERS with every Python that has PyTorch, in its best
settings."""

import json
import math
import os
import subprocess

from settings import OPENBLAS, PEERS, ROOT, TCMALLOC, THREADS, Failure, pythons, run, say
from tarn import WARM

TRANSLATION = os.path.join(PEERS, "torch_mt.py")
LANGUAGE = os.path.join(PEERS, "torch_lm.py")
MASKED = os.path.join(ROOT, "bench", "torch_mlm.py")
CLASSIFY = os.path.join(ROOT, "bench", "torch_classify.py")


def environment():
    env = dict(os.environ)
    env.pop("OPENBLAS_CORETYPE", None)  # would choose kernels of an old processor
    if TCMALLOC:
        env["LD_PRELOAD"] = TCMALLOC
    if OPENBLAS:
        env["LD_LIBRARY_PATH"] = ":".join(filter(None, [OPENBLAS, env.get("LD_LIBRARY_PATH", "")]))
    return env


def find():
    """{name: path of the Python}, one for each version of PyTorch; empty if there is none."""
    found = {}
    for python in pythons():
        done = subprocess.run([python, "-c", "import torch, numpy; print(torch.__version__)"], env=environment(),
                              capture_output=True, text=True, check=False)
        if done.returncode == 0:
            found.setdefault(f"PyTorch {done.stdout.strip()}", python)
    if not found:
        say("no peer: no Python with PyTorch and NumPy (PYTHON)")
    return found


def can_train(script=TRANSLATION):
    if os.path.isfile(script):
        return True
    say(f"no peer for training: {script} is not there (TARN_PEERS)")
    return False


def result_of(python, script, options):
    """What the script prints in its line RESULT."""
    printed = run([python, script, *options], f"peer {python}", env=environment())
    lines = [line for line in printed.splitlines() if line.startswith("RESULT ")]
    if not lines:
        raise Failure(f"peer {python}: it printed no RESULT")
    return json.loads(lines[-1][len("RESULT "):])


def figures(result, speed):
    return {"tokens_per_second": result["all"][speed], "step_ms": result["all"]["step_ms_median"],
            "peak_mb": result["peak_rss_MB"] * 1.048576}


def train(python, data, options, precision, updates, threads=THREADS):
    """One training, with the figures of tarn.train(). The peer counts real source and target tokens as well."""
    source, target = data.pieces()
    return figures(result_of(python, TRANSLATION, [
        "--src", source, "--tgt", target, "--dtype", precision, "--fast-dropout", "--share-all", "--threads",
        str(threads), "--steps", str(updates), "--warm", str(WARM), *options]), "tok_s_real_med")


def train_language(python, options, precision, updates, threads=THREADS):
    """One training of a language model; tokens a second are all tokens over all time."""
    return figures(result_of(python, LANGUAGE, [
        "--dtype", precision, "--threads", str(threads), "--steps", str(updates), "--warm", str(WARM), *options]),
        "tok_s")


def train_masked(python, vocabulary, length, precision, updates, threads=THREADS):
    """One training of a masked language model; this Python needs the transformers package too."""
    return figures(result_of(python, MASKED, [
        "--dtype", precision, "--threads", str(threads), "--steps", str(updates), "--warm", str(WARM), "--vocab",
        str(vocabulary), "--length", str(length)]), "tok_s")


def train_part(python, script, name, data, updates, threads=THREADS):
    """One training of layers of a single part in bf16; this Python needs the transformers package too."""
    return figures(result_of(python, script, [
        "--part", name, "--dtype", "bf16", "--threads", str(threads), "--steps", str(updates), "--warm", str(WARM),
        "--vocab", str(data.VOCABULARY), "--length", str(data.LENGTH)]), "tok_s")


def train_architecture(python, script, name, options, updates, threads=THREADS):
    """One training of a whole architecture in bf16; this Python needs the transformers package too."""
    return figures(result_of(python, script, [
        "--architecture", name, "--dtype", "bf16", "--threads", str(threads), "--steps", str(updates), "--warm", str(WARM),
        *options]), "tok_s")


def train_characters(python, script, precision, updates, threads=THREADS):
    """One training of a character language model; tokens a second are all tokens over all time."""
    return figures(result_of(python, script, [
        "--dtype", precision, "--threads", str(threads), "--steps", str(updates), "--warm", str(WARM)]), "tok_s")


def train_classifier(python, vocabulary, precision, updates, threads=THREADS):
    """One fine-tuning of a classifier; this Python needs the transformers package too."""
    return figures(result_of(python, CLASSIFY, [
        "--dtype", precision, "--threads", str(threads), "--steps", str(updates), "--warm", str(WARM), "--vocab",
        str(vocabulary)]), "tok_s")


class Peer:
    """A side of take_turns() that leaves when it fails, or once it was a quarter slower than another of `race`, the
    speeds (`key` of a result) so far by name: the fastest one counts, and the slow ones would take most of the time."""

    def __init__(self, name, race, act, key="tokens_per_second"):
        self.name, self.race, self.act, self.key = name, race, act, key

    def __call__(self):
        if self.race.get(self.name, math.inf) < 0.75 * max(self.race.values(), default=0.0):
            return None
        try:
            result = self.act()
        except Failure as failure:
            say(f"  {self.name} left out: {failure}")
            return None
        self.race[self.name] = result[self.key]
        return result
