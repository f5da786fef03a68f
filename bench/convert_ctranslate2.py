"""Writes a model of tarn as a CTranslate2 model directory, so that both translate with the same weights.

    tarn export --dense RUN model.safetensors
    python convert_ctranslate2.py model.safetensors DIRECTORY

Needs ctranslate2, numpy, safetensors, sentencepiece and PyYAML. Models that CTranslate2 has no words for are refused:
mixers other than attention, norms or numbers of heads that differ between layers, models without positions.
"""

import argparse
import math
import os
import re

import ctranslate2.specs
import numpy
import sentencepiece
import yaml
from ctranslate2.specs import common_spec
from safetensors import safe_open


def layer_names(pattern):
    """The names of a stack's layers, from the bottom: "(R L1)*2" gives R L1 R L1."""
    tokens = re.findall(r"[A-Za-z_]\w*|\(|\)|\*\s*\d+", pattern)

    def items():
        names = []
        while tokens and tokens[0] != ")":
            token = tokens.pop(0)
            item = [token]
            if token == "(":
                item = items()
                tokens.pop(0)
            if tokens and tokens[0][0] == "*":
                item = item * int(tokens.pop(0)[1:])
            names += item
        return names

    return items()


def stack_layers(model, side):
    """For each layer of a stack: the prefix of its parameters, and its kind."""
    kinds = model["kinds"]
    layers = []
    for depth, name in enumerate(layer_names(model[side]["layers"]), 1):
        if name in kinds:
            layers.append((f"{side}.layer{depth}", kinds[name]))
        else:
            layers.append((f"{side}.{name}", kinds[name.rstrip("0123456789")]))
    return layers


def one_value(layers, key):
    values = {kind[key] for _, kind in layers}
    if len(values) != 1:
        raise SystemExit(f"CTranslate2 has one {key} for all layers, and this model has {sorted(map(str, values))}")
    return values.pop()


def sinusoids(positions, d):
    """tensor2tensor's: sines in the first half, cosines in the second, the first position 0."""
    half = d // 2
    frequencies = numpy.exp(-numpy.arange(half) * math.log(10000.0) / (half - 1))
    angles = numpy.arange(positions)[:, None] * frequencies[None, :]
    return numpy.concatenate([numpy.sin(angles), numpy.cos(angles)], axis=1).astype(numpy.float32)


class Source:
    def __init__(self, path):
        self.file = safe_open(path, "np")
        self.names = set(self.file.keys())
        self.metadata = self.file.metadata()

    def get(self, name):
        if name not in self.names:
            raise SystemExit(f"there is no parameter {name}: write the file with tarn export --dense")
        return self.file.get_tensor(name)

    def norm(self, spec, name):
        spec.gamma = self.get(f"{name}.gain").reshape(-1)
        spec.beta = self.get(f"{name}.bias").reshape(-1)

    def linear(self, spec, name):
        spec.weight = self.get(f"{name}.weight")
        spec.bias = self.get(f"{name}.bias").reshape(-1)

    def pieces(self, side):
        name = f"vocab.{side}" if f"vocab.{side}" in self.names else "vocab.source"
        data = self.get(name).tobytes()
        if data.startswith(b"tarn-vocab"):
            return data.decode().splitlines()[3:]
        processor = sentencepiece.SentencePieceProcessor()
        processor.LoadFromSerializedProto(data)
        return [processor.id_to_piece(i) for i in range(processor.get_piece_size())]


def convert_layer(source, spec, prefix, decoder):
    source.norm(spec.self_attention.layer_norm, f"{prefix}.self_attn.norm")
    source.linear(spec.self_attention.linear[0], f"{prefix}.self_attn.qkv")
    source.linear(spec.self_attention.linear[1], f"{prefix}.self_attn.out")
    if decoder:
        source.norm(spec.attention.layer_norm, f"{prefix}.cross_attn.norm")
        for linear, name in zip(spec.attention.linear, ("q", "kv", "out")):
            source.linear(linear, f"{prefix}.cross_attn.{name}")
    source.norm(spec.ffn.layer_norm, f"{prefix}.ffn.norm")
    source.linear(spec.ffn.linear_0, f"{prefix}.ffn.in")
    source.linear(spec.ffn.linear_1, f"{prefix}.ffn.out")


def tables(source, embeddings):
    """The tables of source, target and output layer, which may be one."""
    if embeddings == "all":
        return (source.get("embeddings.weight"),) * 3
    first = source.get("embeddings.source.weight")
    target = first if embeddings == "encoder_decoder" else source.get("embeddings.target.weight")
    if embeddings == "encoder_output":
        return first, target, first
    return first, target, target if embeddings == "decoder" else source.get("embeddings.output.weight")


def convert(path, directory):
    source = Source(path)
    model = yaml.load(source.metadata["tarn.model"], Loader=yaml.BaseLoader)
    config = model["model"]
    sides = {side: stack_layers(model, side) for side in ("encoder", "decoder")}
    layers = sides["encoder"] + sides["decoder"]
    if one_value(layers, "mixer") != "attention":
        raise SystemExit("CTranslate2 has no layers without attention")
    if config["positions"] != "sinusoidal":
        raise SystemExit(f"CTranslate2 has no models with positions: {config['positions']}")
    pre_norm = one_value(layers, "norm") == "pre"
    spec = ctranslate2.specs.TransformerSpec.from_config(
        (len(sides["encoder"]), len(sides["decoder"])),
        int(one_value(layers, "heads")),
        pre_norm=pre_norm,
        activation=common_spec.Activation.RELU,
    )
    d = int(config["d_model"])
    scale = numpy.float32(math.sqrt(d) if config["embedding_scale"] == "yes" else 1.0)
    encodings = sinusoids(int(config["max_length"]), d)
    table = dict(zip(("encoder", "decoder", "output"), tables(source, config["embeddings"])))
    for side, part in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        embeddings = part.embeddings[0] if side == "encoder" else part.embeddings
        embeddings.weight = table[side]
        part.scale_embeddings = scale
        part.position_encodings.encodings = encodings
        if pre_norm:
            source.norm(part.layer_norm, f"{side}.norm")
        for layer, (prefix, _) in zip(part.layer, sides[side]):
            convert_layer(source, layer, prefix, side == "decoder")
    spec.decoder.projection.weight = table["output"]
    spec.register_source_vocabulary(source.pieces("source"))
    spec.register_target_vocabulary(source.pieces("target"))
    spec.config.decoder_start_token = spec.config.eos_token
    spec.config.add_source_eos = True
    spec.config.layer_norm_epsilon = 1e-5
    spec.validate()
    spec.optimize()
    spec.save(directory)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="file written by tarn export --dense")
    parser.add_argument("directory", help="where to write the CTranslate2 model")
    arguments = parser.parse_args()
    os.makedirs(arguments.directory, exist_ok=True)
    convert(arguments.model, arguments.directory)


if __name__ == "__main__":
    main()
