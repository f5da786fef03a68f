#!/usr/bin/env python3
"""PyTorch peer of masked language models: the transformers package's RoBERTa.

    torch_mlm.py [--dtype fp32|bf16] [--steps 15] [--warm 3] [--threads 2] [--padded-output]

Random words of Zipf's law in rows that are full, between <s> and </s>, so that nothing is padded. 15 % of the words
are masked anew in each step, 80/10/10, by NumPy, whose time is not counted, because tarn draws masks in parallel with
its steps. In its best settings: scaled_dot_product_attention without dropout, which it has no fast form for here;
AdamW fused; bf16 by autocast; and only masked rows go through the head, as fairseq does it (--padded-output: all, as
the package does)."""

import statistics

import numpy
import torch
import torch.nn.functional as F
from transformers import RobertaForMaskedLM

import torch_roberta
from torch_roberta import BOS, EOS, FIRST, MASK


def draw(random, o):
    """Ids that the model reads, and labels: -100 where nothing is masked."""
    words = FIRST + numpy.minimum(random.zipf(1.2, (o.rows, o.length)), o.vocab - FIRST) - 1
    words[:, 0], words[:, -1] = BOS, EOS
    masked = random.random(words.shape) < 0.15
    masked[:, [0, -1]] = False
    labels = numpy.where(masked, words, -100)
    what = random.random(words.shape)
    other = random.integers(FIRST, o.vocab, words.shape)
    ids = numpy.where(masked & (what < 0.8), MASK, numpy.where(masked & (what < 0.9), other, words))
    return torch.from_numpy(ids), torch.from_numpy(labels)


def loss_of(model, ids, labels, whole):
    if whole:
        return model(input_ids=ids, labels=labels).loss
    states = model.roberta(input_ids=ids)[0]
    rows = labels != -100
    return F.cross_entropy(model.lm_head(states[rows]).float(), labels[rows])


def main():
    parser = torch_roberta.parser(__doc__, 15, 3)
    parser.add_argument("--rows", type=int, default=32, help="sentences of a batch")
    parser.add_argument("--length", type=int, default=128, help="tokens of each")
    parser.add_argument("--padded-output", action="store_true")
    o = parser.parse_args()
    torch_roberta.begin(o)
    random = numpy.random.default_rng(1)
    model = RobertaForMaskedLM(torch_roberta.shape(o, o.length))
    seconds, loss = torch_roberta.train(o, model, 5e-4, lambda _: draw(random, o),
                                        lambda ids, labels: loss_of(model, ids, labels, o.padded_output))
    torch_roberta.report(model, o.rows * o.length / statistics.median(seconds), seconds, loss)


if __name__ == "__main__":
    main()
