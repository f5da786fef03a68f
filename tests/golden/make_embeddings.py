#!/usr/bin/env python3
"""Makes embeddings_*.safetensors: factorised embeddings, sets that encoder and decoder share, mixtures of softmaxes.

    python3 tests/golden/make_embeddings.py [CASE...]   (needs torch, transformers and safetensors)

Those of translation models are the network of make_transformer.py with the published equations in place of its
embeddings and output: x = P (V[id] + position) + b and logits = V P^T x (Lan et al. 2019), which the encoder's input, the
decoder's input and the output share in every way that there is, and p = sum_k pi_k softmax(W tanh(A_k x + a_k)) with
pi = softmax(C x) (Yang et al. 2018), smoothed as PyTorch's cross_entropy smooths. embeddings_albert is the transformers
package's ALBERT, all of whose layers are one, as a masked language model. The files are those of make_transformer.py and
make_masked.py.
"""
import math
import os
import sys

import torch
import torch.nn.functional as F

import make_transformer
from make_transformer import D, SMOOTHING, Case, Network, pad

E, RANK = 12, 8
HERE = os.path.dirname(os.path.abspath(__file__))

# name: (norm, embeddings, encoder, decoder, further keys: size of embeddings, mixtures, rank of the output)
CASES = {
    "embeddings_decoder": ("post", "decoder", "L1 L1", "L1", {"embedding_size": E, "share_stacks": "yes"}),
    "embeddings_all": ("pre", "all", "L1 R1", "R1 L1 L R1", {"embedding_size": E, "share_stacks": "yes"}),
    "embeddings_encoder_output": ("pre", "encoder_output", "L", "L", {"embedding_size": E}),
    "embeddings_mixture": ("post", "encoder_decoder", "L", "L", {"embedding_size": E, "output_mixtures": 3}),
    "embeddings_mixture_tied": ("pre", "decoder", "L", "L",
                                {"embedding_size": E, "output_mixtures": 2, "output_bias": "yes"}),
    "embeddings_mixture_rank": ("post", "none", "L", "L", {"output_mixtures": 4, "output_rank": RANK}),
}


class EmbeddingsCase(Case):
    def __init__(self, name):
        *case, self.keys = CASES[name]
        make_transformer.CASES[name] = case
        super().__init__(name)
        keys = ", ".join(f"{key}: {value}" for key, value in self.keys.items())
        self.config = self.config.replace("dropout: 0 }", f"dropout: 0, {keys} }}", 1)

    def make_layer(self, side, kind, name):
        """A shared set of the decoder has the encoder's parameters but for cross-attention."""
        super().make_layer(side, kind, name)
        shared = name.replace("decoder", "encoder", 1)
        if side != "decoder" or "share_stacks" not in self.keys or f"{shared}.ffn.in.weight" not in self.weights:
            return
        for key in [key for key in self.weights if key.startswith(f"{name}.") and "cross_attn" not in key]:
            del self.weights[key], self.trained[key]

    def make_embeddings(self):
        super().make_embeddings()
        size, mixtures, rank = (self.keys.get(key, 0) for key in ("embedding_size", "output_mixtures", "output_rank"))
        inputs = {self.tables["source"], self.tables["target"]}
        width = {table: size if size and table in inputs else D for table in self.weights}
        if rank:
            width[self.tables["output"]] = rank
        for table in list(self.weights):
            self.add(table, True, self.weights[table].shape[0], width[table], scale=width[table]**-0.5)
        if size:
            for table in inputs:
                self.make_linear(table.replace("weight", "projection"), True, D, size)
        if mixtures:
            self.make_linear("output.latent", True, mixtures * width[self.tables["output"]], D)
            self.add("output.prior.weight", True, mixtures, D, scale=D**-0.5)
        if "output_bias" in self.keys:
            self.add("output.bias", True, 1, self.vocab[1], scale=0.3)


class EmbeddingsNetwork(Network):
    def name_of(self, name):
        return name if f"{name}.weight" in self.w or f"{name}.gain" in self.w else name.replace("decoder", "encoder", 1)

    def linear(self, x, name):
        return super().linear(x, self.name_of(name))

    def layer_norm(self, x, name):
        return super().layer_norm(x, self.name_of(name))

    def attention(self, query, key, weight, bias, out, padding, causal):
        return super().attention(query, key, weight, bias, self.name_of(out), padding, causal)

    def layer(self, x, name, kind, padding, memory=None, memory_padding=None):
        # The base class reads the weights of attention by name.
        own, used = f"{name}.self_attn.qkv", self.name_of(f"{name}.self_attn.qkv")
        for part in ("weight", "bias"):
            self.w[f"{own}.{part}"] = self.w[f"{used}.{part}"]
        try:
            return super().layer(x, name, kind, padding, memory, memory_padding)
        finally:
            if own != used:
                del self.w[f"{own}.weight"], self.w[f"{own}.bias"]

    def embed(self, ids, table):
        name = self.case.tables[table]
        width, half = self.w[name].shape[1], self.w[name].shape[1] // 2
        rates = torch.exp(torch.arange(half, dtype=torch.float64) * (-math.log(10000.0) / (half - 1)))
        angles = torch.arange(ids.shape[1], dtype=torch.float64)[:, None] * rates[None, :]
        positions = torch.cat([torch.sin(angles), torch.cos(angles)], dim=1).to(self.dtype)
        x = math.sqrt(width) * F.embedding(ids, self.w[name]) + positions
        return F.linear(x, self.w[name.replace("weight", "projection.weight")],
                        self.w[name.replace("weight", "projection.bias")][0]) if width < D else x

    def log_probabilities(self, x):
        table = self.w[self.case.tables["output"]]
        bias = self.w["output.bias"][0] if "output.bias" in self.w else None
        mixtures = self.case.keys.get("output_mixtures", 0)
        if mixtures == 0:
            factor = self.w.get(self.case.tables["output"].replace("weight", "projection.weight"))
            return F.log_softmax(F.linear(x if factor is None else x @ factor, table, bias), dim=-1)
        latent = torch.tanh(self.linear(x, "output.latent")).unflatten(-1, (mixtures, table.shape[1]))
        prior = torch.log_softmax(F.linear(x, self.w["output.prior.weight"]), dim=-1)
        return torch.logsumexp(prior[..., None] + F.log_softmax(F.linear(latent, table, bias), dim=-1), dim=-2)

    def losses(self, batch):
        source, source_padding = pad(batch["source_ids"], batch["source_offsets"])
        target, target_padding = pad(batch["target_in"], batch["target_offsets"])
        wanted, _ = pad(batch["target_out"], batch["target_offsets"])
        memory = self.stack(self.embed(source, "source"), "encoder", self.case.encoder, source_padding)
        x = self.stack(self.embed(target, "target"), "decoder", self.case.decoder, target_padding, memory,
                       source_padding)
        p = self.log_probabilities(x)[~target_padding]
        nll = -p.gather(1, wanted[~target_padding][:, None]).sum()
        return (1.0 - SMOOTHING) * nll - SMOOTHING * p.mean(dim=1).sum(), nll


def make_albert():
    import make_masked as masked
    from transformers import AlbertConfig, AlbertForMaskedLM

    def albert():
        model = AlbertForMaskedLM(AlbertConfig(
            max_position_embeddings=masked.LONGEST, type_vocab_size=2, hidden_act="gelu", embedding_size=E,
            num_hidden_groups=1, classifier_dropout_prob=0.0, **masked.SIZES))
        layer, own = "albert.encoder.albert_layer_groups.0.albert_layers.0", "encoder.L1"
        table = {}
        for kind in ("weight", "bias"):
            ours = {"weight": "gain", "bias": "bias"}[kind]
            table |= {
                f"{own}.self_attn.qkv.{kind}": [f"{layer}.attention.{part}.{kind}" for part in ("query", "key", "value")],
                f"{own}.self_attn.out.{kind}": [f"{layer}.attention.dense.{kind}"],
                f"{own}.self_attn.norm.{ours}": [f"{layer}.attention.LayerNorm.{kind}"],
                f"{own}.ffn.in.{kind}": [f"{layer}.ffn.{kind}"],
                f"{own}.ffn.out.{kind}": [f"{layer}.ffn_output.{kind}"],
                f"{own}.ffn.norm.{ours}": [f"{layer}.full_layer_layer_norm.{kind}"],
                f"embeddings.projection.{kind}": [f"albert.encoder.embedding_hidden_mapping_in.{kind}"],
                f"embeddings.norm.{ours}": [f"albert.embeddings.LayerNorm.{kind}"],
                f"output.dense.{kind}": [f"predictions.dense.{kind}"],
                f"output.norm.{ours}": [f"predictions.LayerNorm.{kind}"],
            }
        table |= {"embeddings.weight": ["albert.embeddings.word_embeddings.weight"],
                  "embeddings.positions.weight": ["albert.embeddings.position_embeddings.weight"],
                  "embeddings.segments.weight": ["albert.embeddings.token_type_embeddings.weight"],
                  "output.bias": ["predictions.bias"]}
        return model, table, 0, f"norm: post, embedding_size: {E}"

    masked.make("embeddings_albert", albert, "L1")


if __name__ == "__main__":
    make_transformer.Case, make_transformer.Network = EmbeddingsCase, EmbeddingsNetwork
    for case_name in sys.argv[1:] or [*CASES, "embeddings_albert"]:
        if case_name == "embeddings_albert":
            make_albert()
        else:
            make_transformer.make(case_name, HERE)
