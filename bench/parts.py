"""Training of single parts, four layers of each at d_model 512 in bf16, in turns with PyTorch's eager implementation
(torch_parts.py): tokens read a second, peak memory, share of the machine's peak."""

import os

import peers
from settings import ROOT, say
from training import race, table, with_peak

CONFIGURATION = os.path.join(ROOT, "bench", "parts.yaml")
PEER = os.path.join(ROOT, "bench", "torch_parts.py")
UPDATES = 12


def mixer(word, keys="", **model):
    """The kind of a layer that is this token mixer alone, and keys of the model."""
    return dict({"kinds.L": "{ mixer: " + word + (", " + keys if keys else "") + ", ffn: 0 }"}, **model)


def attention(keys="", positions="none"):
    return dict(mixer("attention", "heads: 8" + keys), **{"model.positions": positions})


def channel(word, keys=""):
    return {"kinds.L": "{ mixer: none, ffn: { type: " + word + keys + " } }"}


def norm(word):
    return dict(channel("ffn"), **{"model.norm_type": word})


ACTIVATIONS = ["relu", "gelu", "gelu_tanh", "relu_squared", "elu", "selu", "swish", "swish_beta",
               "identity"]
# name of torch_parts.py: keys of tarn.
PARTS = {
    "attention": attention(),
    "rotary": attention(positions="rotary"),
    "alibi": attention(positions="alibi"),
    "relative_bias": attention(positions="t5"),
    "shaw": attention(positions="shaw"),
    "grouped": attention(", kv_heads: 2"),
    "multi_query": attention(", kv_heads: 1"),
    "pooling": mixer("pooling"),
    "light_conv": mixer("light_conv", "heads: 8, kernel: 31"),
    "dynamic_conv": mixer("dynamic_conv", "heads: 8, kernel: 31"),
    "bigru": mixer("bigru"),
    "gru": mixer("gru"),
    "lstm": mixer("lstm"),
    "fnet": mixer("fnet"),
    "mlp_mixer": mixer("mlp_mixer", "hidden: 256"),
    "gmlp": mixer("gmlp", "hidden: 1024"),
    "amlp": mixer("amlp", "hidden: 1024"),
    "hypermixer": mixer("hypermixer", "tied: yes, token_positions: no"),
    "hypermixer_untied": mixer("hypermixer", "token_positions: no"),
    "synthesizer_dense": mixer("synthesizer_dense", "heads: 8, hidden: 64"),
    "synthesizer_random": mixer("synthesizer_random", "heads: 8"),
    "synthesizer_factorised_dense": mixer("synthesizer_factorised_dense", "heads: 8, hidden: 64, factor: 8"),
    "synthesizer_factorised_random": mixer("synthesizer_factorised_random", "heads: 8"),
    "synthesizer_random_plus": mixer("synthesizer_random", "heads: 8, plus: yes"),
    "linear_attention": mixer("linear_attention", "heads: 8"),
    "performer": mixer("performer", "heads: 8, features: 256"),
    "linformer": mixer("linformer", "heads: 8, rows: 64"),
    **{f"ffn_{word}": channel("ffn", f", activation: {word}") for word in ACTIVATIONS},
    **{word: channel(word) for word in ("glu", "geglu", "reglu", "swiglu", "liglu", "moe", "switch", "product_keys")},
    "norm_layer": norm("layer"),
    "norm_rms": norm("rms"),
    "norm_scale": norm("scale"),
}
NAMES = [f"part-{name}" for name in PARTS]

__all__ = ["NAMES", "measure", "table"]


def measure(context, names):
    entries = {}
    for name, keys in PARTS.items():
        if f"part-{name}" in names:
            say(f"part-{name} ...")
            entries[f"part-{name}"] = measure_one(context, name, keys)
    return entries


def measure_one(context, name, keys):
    data, updates = context.parts_data(), context.updates(UPDATES)
    settings = dict(keys, **{"train.precision": "bf16"})
    return race(context, data, CONFIGURATION, settings, lambda: with_peak(data, CONFIGURATION, settings, updates),
                lambda python: peers.train_part(python, PEER, name, data, updates),
                context.peers() if peers.can_train(PEER) else {})
