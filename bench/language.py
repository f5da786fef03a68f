"""Training of language models with 50,257 words, 32 sentences a batch, in turns with PyTorch: all tokens over all time,
peak memory, share of the machine's peak."""

import os

import peers
from settings import ROOT
from training import measure_cases, race, table, with_peak

EXAMPLES = os.path.join(ROOT, "examples", "babylm")
# name: description, model of torch_lm.py
MODELS = {"esn": ("esn.yaml", "esn"), "esn-i": ("esn-i.yaml", "esn+i"), "lstm": ("lstm.yaml", "lstm")}
CASES = [(model, precision) for model in MODELS for precision in ("fp32", "bf16")]
NAMES = [f"train-{model}-{precision}" for model, precision in CASES]
UPDATES = 33

__all__ = ["NAMES", "measure", "table"]


def measure(context, names):
    return measure_cases(context, names, CASES, measure_one)


def measure_one(context, model, precision):
    description, peer = MODELS[model]
    configuration, data = os.path.join(EXAMPLES, description), context.language_data()
    settings, updates = {"train.precision": precision}, context.updates(UPDATES)

    def ours():
        result = with_peak(data, configuration, settings, updates)
        # Batches have neighbours in length, so their sizes differ too much for a median.
        return dict(result, tokens_per_second=result["overall_tokens_per_second"])

    return race(context, data, configuration, settings, ours,
                lambda python: peers.train_language(python, ["--model", peer], precision, updates),
                context.peers() if peers.can_train(peers.LANGUAGE) else {})
