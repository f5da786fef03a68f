#!/usr/bin/env python3
"""PyTorch peer of fine-tuning a classifier: the transformers package's RoBERTa for sequence classification.

    torch_classify.py [--dtype fp32|bf16] [--steps 25] [--warm 5] [--threads 2]

Random words of Zipf's law in sentences as long as those of SST-2 in subwords, between <s> and </s>, with two classes. In its
best settings: batches of sentences of like length up to a budget of tokens, so that almost nothing is padded, and without a
mask where nothing is; scaled_dot_product_attention without dropout, which it has no fast form for here; AdamW fused; bf16
by autocast. Tokens a second are those of the sentences, not of the padding."""

import argparse
import json
import math
import random
import resource
import statistics
import time

import torch
from transformers import RobertaConfig, RobertaForSequenceClassification
from transformers.utils import logging

BOS, PAD, EOS, FIRST = 0, 1, 2, 5
MEAN, SIGMA, SHORTEST, LONGEST = 18.0, 0.6, 4, 100  # tokens of a sentence with both its ends, as bench/data.py draws them


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtype", choices=["fp32", "bf16"], default="bf16")
    parser.add_argument("--steps", type=int, default=25, help="of them --warm are not counted")
    parser.add_argument("--warm", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--d", type=int, default=512)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--ffn", type=int, default=2048)
    parser.add_argument("--vocab", type=int, default=16000)
    parser.add_argument("--tokens", type=int, default=2048, help="budget of a batch, padding counted")
    return parser.parse_args()


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
    o = arguments()
    logging.set_verbosity_error()
    torch.set_num_threads(o.threads)
    torch.manual_seed(1)
    draw = random.Random(1)
    batches = batches_of(draw_lengths(draw, 20000), o.tokens, draw)
    model = RobertaForSequenceClassification(RobertaConfig(
        vocab_size=o.vocab, hidden_size=o.d, num_hidden_layers=o.layers, num_attention_heads=o.heads,
        intermediate_size=o.ffn, max_position_embeddings=130, hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.0,
        num_labels=2, attn_implementation="sdpa"))
    model.train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01, fused=True)
    seconds, tokens = [], []
    for step in range(o.steps):
        lengths = batches[step % len(batches)]
        ids, mask, labels = fill(lengths, o.vocab)
        begin = time.perf_counter()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=o.dtype == "bf16"):
            loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        value = loss.item()
        seconds.append(time.perf_counter() - begin)
        tokens.append(sum(lengths))
    print("RESULT " + json.dumps({
        "all": {"tok_s": sum(tokens[o.warm:]) / sum(seconds[o.warm:]),
                "step_ms_median": 1e3 * statistics.median(seconds[o.warm:])},
        "loss": value, "parameters": sum(p.numel() for p in model.parameters()),
        "peak_rss_MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


if __name__ == "__main__":
    main()
