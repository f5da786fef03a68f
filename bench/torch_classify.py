#!/usr/bin/env python3
"""PyTorch peer of fine-tuning a classifier: the transformers package's RoBERTa for sequence classification.

    torch_classify.py [--dtype fp32|bf16] [--steps 25] [--warm 5] [--threads 2]

Random words of Zipf's law in sentences as long as those of SST-2 in subwords, between <s> and </s>, with two classes. In its
best settings: batches of sentences of like length up to a budget of tokens, so that almost nothing is padded, and without a
mask where nothing is; scaled_dot_product_attention without dropout, which it has no fast form for here; AdamW fused; bf16
by autocast. Tokens a second are those of the sentences, not of the padding."""

import math
import random

import torch
from transformers import RobertaForSequenceClassification

import torch_roberta
from torch_roberta import BOS, EOS, FIRST, PAD

MEAN, SIGMA, SHORTEST, LONGEST = 18.0, 0.6, 4, 100  # tokens of a sentence with both its ends, as bench/data.py draws them


def draw_lengths(draw, count):
    mu = math.log(MEAN) - SIGMA**2 / 2
    return [min(max(round(draw.lognormvariate(mu, SIGMA)), SHORTEST), LONGEST) for _ in range(count)]


def batches_of(lengths, budget, draw):
    """Sentences of like length together, and the batches shuffled."""
    batches, batch = [], []
    for length in sorted(lengths):
        if (len(batch) + 1) * length > budget:
            batches.append(batch)
            batch = []
        batch.append(length)
    draw.shuffle(batches)
    return batches


def fill(lengths, vocabulary):
    longest = max(lengths)
    weights = 1.0 / torch.arange(1, vocabulary - FIRST + 1, dtype=torch.float64)**1.2
    ids = FIRST + torch.multinomial(weights, len(lengths) * longest, replacement=True).view(len(lengths), longest)
    ends = torch.tensor(lengths)[:, None] - 1
    places = torch.arange(longest)[None, :]
    ids[:, 0] = BOS
    ids = torch.where(places == ends, EOS, torch.where(places > ends, PAD, ids))
    return ids, None if min(lengths) == longest else (places <= ends).long(), torch.randint(2, (len(lengths),))


def main():
    parser = torch_roberta.parser(__doc__, 25, 5)
    parser.add_argument("--tokens", type=int, default=2048, help="budget of a batch, padding counted")
    o = parser.parse_args()
    torch_roberta.begin(o)
    draw = random.Random(1)
    batches = batches_of(draw_lengths(draw, 20000), o.tokens, draw)
    model = RobertaForSequenceClassification(torch_roberta.shape(o, 128, num_labels=2))
    seconds, loss = torch_roberta.train(
        o, model, 1e-4, lambda step: fill(batches[step % len(batches)], o.vocab),
        lambda ids, mask, labels: model(input_ids=ids, attention_mask=mask, labels=labels).loss)
    tokens = [sum(batches[step % len(batches)]) for step in range(o.steps)]
    torch_roberta.report(model, sum(tokens[o.warm:]) / sum(seconds), seconds, loss)


if __name__ == "__main__":
    main()
