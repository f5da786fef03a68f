#!/usr/bin/env python3
"""PyTorch peers of whole architectures, as the transformers package writes them: ALBERT and the Funnel-Transformer as masked
language models in full rows, and the vision transformer. In its best settings (torch_roberta.py); only masked rows go
through the head. Prints a line RESULT with JSON as torch_mlm.py does; its tokens are those that the model reads: patches
and class tokens of images."""

import statistics

import numpy
import torch
import torch.nn.functional as F
from transformers import (AlbertConfig, AlbertForMaskedLM, FunnelConfig, FunnelForMaskedLM, ViTConfig,
                          ViTForImageClassification)

import torch_roberta
from torch_mlm import draw

ROWS, LENGTH = 32, 128
IMAGES, SIDE, PATCH, CLASSES = 128, 28, 7, 10


def albert(o):
    model = AlbertForMaskedLM(AlbertConfig(
        vocab_size=o.vocab, embedding_size=128, hidden_size=o.d, num_hidden_layers=o.layers, num_attention_heads=o.heads,
        intermediate_size=o.ffn, max_position_embeddings=LENGTH, hidden_act="gelu", hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.0, attn_implementation="sdpa"))
    return model, lambda ids: model.albert(input_ids=ids)[0], model.predictions


def funnel(o):
    """Three blocks of two layers and a decoder of two, as the configuration of tarn has it."""
    model = FunnelForMaskedLM(FunnelConfig(
        vocab_size=o.vocab, block_sizes=[2, 2, 2], num_decoder_layers=2, d_model=o.d, n_head=o.heads, d_head=o.d // o.heads,
        d_inner=o.ffn, hidden_act="gelu", hidden_dropout=0.1, attention_dropout=0.0, activation_dropout=0.0,
        separate_cls=False))
    return model, lambda ids: model.funnel(input_ids=ids)[0], model.lm_head


def masked(o, make):
    model, states, head = make(o)
    random = numpy.random.default_rng(1)

    def loss_of(ids, labels):
        rows = labels != -100
        return F.cross_entropy(head(states(ids)[rows]).float(), labels[rows])

    o.rows, o.length = ROWS, LENGTH
    seconds, loss = torch_roberta.train(o, model, 5e-4, lambda _: draw(random, o), loss_of)
    return model, ROWS * LENGTH, seconds, loss


def vision(o):
    model = ViTForImageClassification(ViTConfig(
        hidden_size=o.d, num_hidden_layers=o.layers, num_attention_heads=o.heads, intermediate_size=o.ffn, hidden_act="gelu",
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, image_size=SIDE, patch_size=PATCH, num_channels=1,
        num_labels=CLASSES, attn_implementation="sdpa"))
    random = torch.Generator().manual_seed(1)

    def batch(_):
        return (torch.rand(IMAGES, 1, SIDE, SIDE, generator=random) * 2 - 1,
                torch.randint(CLASSES, (IMAGES,), generator=random))

    seconds, loss = torch_roberta.train(
        o, model, 1e-3, batch, lambda images, labels: F.cross_entropy(model(pixel_values=images).logits.float(), labels))
    return model, IMAGES * ((SIDE // PATCH) ** 2 + 1), seconds, loss


ARCHITECTURES = {"albert": lambda o: masked(o, albert), "funnel": lambda o: masked(o, funnel), "vit": vision}


def main():
    parser = torch_roberta.parser(__doc__, 15, 3)
    parser.add_argument("--architecture", choices=list(ARCHITECTURES), required=True)
    o = parser.parse_args()
    torch_roberta.begin(o)
    model, tokens, seconds, loss = ARCHITECTURES[o.architecture](o)
    torch_roberta.report(model, tokens / statistics.median(seconds), seconds, loss)


if __name__ == "__main__":
    main()
