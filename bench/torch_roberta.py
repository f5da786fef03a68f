"""What the peers of the transformers package's RoBERTa share: options, the model's shape, and timed steps in PyTorch's best
settings (scaled_dot_product_attention without dropout, which it has no fast form for here; AdamW fused; bf16 by autocast)."""

import argparse
import json
import resource
import statistics
import time

import torch
from transformers import RobertaConfig
from transformers.utils import logging

BOS, PAD, EOS, UNK, MASK, FIRST = 0, 1, 2, 3, 4, 5


def parser(doc, steps, warm):
    result = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    result.add_argument("--dtype", choices=["fp32", "bf16"], default="bf16")
    result.add_argument("--steps", type=int, default=steps, help="of them --warm are not counted")
    result.add_argument("--warm", type=int, default=warm)
    result.add_argument("--threads", type=int, default=2)
    result.add_argument("--layers", type=int, default=6)
    result.add_argument("--d", type=int, default=512)
    result.add_argument("--heads", type=int, default=8)
    result.add_argument("--ffn", type=int, default=2048)
    result.add_argument("--vocab", type=int, default=16000)
    return result


def begin(o):
    logging.set_verbosity_error()
    torch.set_num_threads(o.threads)
    torch.manual_seed(1)


def shape(o, length, **more):
    """The configuration for rows of at most `length` tokens."""
    return RobertaConfig(
        vocab_size=o.vocab, hidden_size=o.d, num_hidden_layers=o.layers, num_attention_heads=o.heads,
        intermediate_size=o.ffn, max_position_embeddings=length + 2, hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.0, attn_implementation="sdpa", **more)


def train(o, model, rate, draw, loss_of):
    """Steps at a learning rate: draw(step) gives a batch, loss_of(*batch) its loss. The seconds of each that counts, without
    those of drawing, and the last loss."""
    model.train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01, fused=True)
    seconds = []
    for step in range(o.steps):
        batch = draw(step)
        start = time.perf_counter()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=o.dtype == "bf16"):
            loss = loss_of(*batch)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        value = loss.item()
        seconds.append(time.perf_counter() - start)
    return seconds[o.warm:], value


def report(model, rate, seconds, loss):
    """Prints the result: `rate` is the tokens a second."""
    print("RESULT " + json.dumps({
        "all": {"tok_s": rate, "step_ms_median": 1e3 * statistics.median(seconds)}, "loss": loss,
        "parameters": sum(p.numel() for p in model.parameters()),
        "peak_rss_MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
