"""Training of whole architectures in bf16 in turns with the transformers package (torch_architectures.py), where it has
them: tokens read a second, peak memory, share of the machine's peak."""

import os

import peers
from settings import ROOT, say
from training import race, table, with_peak

PEER = os.path.join(ROOT, "bench", "torch_architectures.py")
MASKED = os.path.join(ROOT, "bench", "mlm.yaml")
UPDATES = 12
# name: configuration, keys of tarn, options of the peer. The package's Funnel has the relative positions of
# Transformer-XL, for which Shaw's stand here.
ARCHITECTURES = {
    "albert": (MASKED, {"encoder.layers": "L1*6", "model.embedding_size": 128}, []),
    "funnel": (MASKED, {"encoder.layers": "L*8", "encoder.pool_after": "[2, 4]", "encoder.upsample_after": 6,
                        "model.positions": "shaw"}, []),
    "vit": (os.path.join(ROOT, "examples", "vision", "vit.yaml"), {"train.max_tokens": 2176, "train.schedule": "constant"},
            ["--d", "128", "--heads", "4", "--ffn", "256", "--layers", "4"]),
}
NAMES = [f"architecture-{name}" for name in ARCHITECTURES]

__all__ = ["NAMES", "measure", "table"]


def measure(context, names):
    entries = {}
    for name in ARCHITECTURES:
        if f"architecture-{name}" in names:
            say(f"architecture-{name} ...")
            entries[f"architecture-{name}"] = measure_one(context, name)
    return entries


def measure_one(context, name):
    configuration, keys, options = ARCHITECTURES[name]
    data = context.image_data() if name == "vit" else context.masked_data()
    settings, updates = dict(keys, **{"train.precision": "bf16"}), context.updates(UPDATES)
    return race(context, data, configuration, settings, lambda: with_peak(data, configuration, settings, updates),
                lambda python: peers.train_architecture(python, PEER, name, options, updates),
                context.peers() if peers.can_train(PEER) else {})
