"""Fine-tuning of a classifier, 6 layers of d_model 512 on sentences as long as those of SST-2, in turns with the transformers
package's RoBERTa on PyTorch: tokens read a second, peak memory, share of the machine's peak."""

import os

import peers
from settings import ROOT
from training import measure_cases, race, table, with_peak

CASES = [("classify", "fp32"), ("classify", "bf16")]
NAMES = [f"train-{model}-{precision}" for model, precision in CASES]
UPDATES = 25

__all__ = ["NAMES", "measure", "table"]


def measure(context, names):
    return measure_cases(context, names, CASES, measure_one)


def measure_one(context, model, precision):
    configuration, data = os.path.join(ROOT, "bench", f"{model}.yaml"), context.labelled_data()
    settings, updates = {"train.precision": precision, "train.max_tokens": 2048}, context.updates(UPDATES)
    return race(context, data, configuration, settings, lambda: with_peak(data, configuration, settings, updates),
                lambda python: peers.train_classifier(python, data.VOCABULARY, precision, updates),
                context.peers() if peers.can_train(peers.CLASSIFY) else {})
