"""Training of masked language models, 6 layers of d_model 512 and full rows of 128 tokens, in turns with the transformers
package's RoBERTa on PyTorch: tokens read a second, peak memory, share of the machine's peak."""

import os

import peers
from settings import ROOT
from training import measure_cases, race, table, with_peak

CASES = [("mlm", "fp32"), ("mlm", "bf16")]
NAMES = [f"train-{model}-{precision}" for model, precision in CASES]
UPDATES = 12

__all__ = ["NAMES", "measure", "table"]


def measure(context, names):
    return measure_cases(context, names, CASES, measure_one)


def measure_one(context, model, precision):
    configuration, data = os.path.join(ROOT, "bench", f"{model}.yaml"), context.masked_data()
    settings, updates = {"train.precision": precision}, context.updates(UPDATES)
    return race(context, data, configuration, settings, lambda: with_peak(data, configuration, settings, updates),
                lambda python: peers.train_masked(python, data.VOCABULARY, data.LENGTH, precision, updates),
                context.peers() if peers.can_train(peers.MASKED) else {})
