#!/usr/bin/env python3
"""PyTorch peer of masked language models: the transformers package's RoBERTa.

    torch_mlm.py [--dtype fp32|bf16] [--steps 15] [--warm 3] [--threads 2] [--padded-output]

Random words of Zipf's law in rows that are full, between <s> and </s>, so that nothing is padded. 15 % of the words are
masked anew in each step, 80/10/10, by NumPy, whose time is not counted, as tarn draws masks beside its steps. In its best
settings: scaled_dot_product_attention without dropout, which it has no fast form for here; AdamW fused; bf16 by
autocast; and only masked rows go through the head, as fairseq does it (--padded-output: all, as the package does)."""

import argparse
import json
import resource
import statistics
import time

import numpy
import torch
import torch.nn.functional as F
from transformers import RobertaConfig, RobertaForMaskedLM
from transformers.utils import logging

BOS, PAD, EOS, UNK, MASK, FIRST = 0, 1, 2, 3, 4, 5


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtype", choices=["fp32", "bf16"], default="bf16")
    parser.add_argument("--steps", type=int, default=15, help="of them --warm are not counted")
    parser.add_argument("--warm", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--d", type=int, default=512)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--ffn", type=int, default=2048)
    parser.add_argument("--vocab", type=int, default=16000)
    parser.add_argument("--rows", type=int, default=32, help="sentences of a batch")
    parser.add_argument("--length", type=int, default=128, help="tokens of each")
    parser.add_argument("--padded-output", action="store_true")
    return parser.parse_args()


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
    o = arguments()
    logging.set_verbosity_error()
    torch.set_num_threads(o.threads)
    torch.manual_seed(1)
    random = numpy.random.default_rng(1)
    model = RobertaForMaskedLM(RobertaConfig(
        vocab_size=o.vocab, hidden_size=o.d, num_hidden_layers=o.layers, num_attention_heads=o.heads,
        intermediate_size=o.ffn, max_position_embeddings=o.length + 2, hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.0, attn_implementation="sdpa"))
    model.train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=0.01, fused=True)
    seconds = []
    for _ in range(o.steps):
        ids, labels = draw(random, o)
        begin = time.perf_counter()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=o.dtype == "bf16"):
            loss = loss_of(model, ids, labels, o.padded_output)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        value = loss.item()
        seconds.append(time.perf_counter() - begin)
    step = statistics.median(seconds[o.warm:])
    print("RESULT " + json.dumps({
        "all": {"tok_s": o.rows * o.length / step, "step_ms_median": 1e3 * step}, "loss": value,
        "parameters": sum(p.numel() for p in model.parameters()),
        "peak_rss_MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


if __name__ == "__main__":
    main()
