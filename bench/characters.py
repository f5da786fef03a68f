"""Training of a character language model of 12 layers on windows of 512 bytes, in turns with PyTorch (torch_charlm.py)."""

import os

import peers
from settings import ROOT
from training import measure_cases, race, table, with_peak

EXAMPLE = os.path.join(ROOT, "examples", "wiki", "character.yaml")
PEER = os.path.join(ROOT, "bench", "torch_charlm.py")
CASES = [("char", precision) for precision in ("fp32", "bf16")]
NAMES = [f"train-{model}-{precision}" for model, precision in CASES]
UPDATES = 12

__all__ = ["NAMES", "measure", "table"]


def measure(context, names):
    return measure_cases(context, names, CASES, measure_one)


def measure_one(context, _, precision):
    data, updates = context.character_data(), context.updates(UPDATES)
    settings = {"train.precision": precision, "valid.metric": "loss"}
    return race(context, data, EXAMPLE, settings, lambda: with_peak(data, EXAMPLE, settings, updates),
                lambda python: peers.train_characters(python, PEER, precision, updates), context.peers())
