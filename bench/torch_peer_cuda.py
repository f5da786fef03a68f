#!/usr/bin/env python3
"""PyTorch as the peer of tarn on a card: the Transformer of the papers on the batches that bench_batches printed, padded.
torch.compile with dynamic shapes (loss included), fused AdamW, scaled_dot_product_attention, autocast to bf16.

It stays, so that compiling is paid once: after one line {"ready": ...} it reads a line of JSON for each turn,
{"batches": FILE, "warm": N, "updates": N}, trains so many updates and answers {"tokens_per_second", "step_ms",
"peak_mb", ...}. Tokens are real source and target tokens; padding is not counted. An empty line or the end of the input
ends it. --device cpu is for tests."""

import argparse
import json
import math
import struct
import sys
import time
from statistics import median

import numpy
import torch
from torch import nn
from torch.nn import functional

# Steps between two looks at the clock: as seldom as tarn reads its loss (train.log_every in bench/gpu/speed.py).
WINDOW = 10


class Shard:
    """The pairs of a file of tarn prepare (docs/shard-format.md, version 1)."""

    def __init__(self, prefix):
        with open(prefix + ".tarn", "rb") as file:
            data = file.read()
        magic, version, width, pairs = struct.unpack_from("<8sIIq", data)
        if magic != b"TARNSHRD" or version != 1:
            raise SystemExit(f"torch_peer_cuda: {prefix}.tarn is no shard of version 1 in one file")
        self.words = struct.unpack_from("<2i", data, 56)
        self.end = struct.unpack_from("<2i", data, 64)
        self.offsets = numpy.frombuffer(data, "<i8", 2 * pairs + 1, 256)
        self.ids = numpy.frombuffer(data, "<u2" if width == 2 else "<u4", self.offsets[-1], 256 + 8 * (2 * pairs + 1))

    def sentences(self, side, pairs):
        return [self.ids[self.offsets[2 * i + side]:self.offsets[2 * i + side + 1]].astype(numpy.int64) for i in pairs]


def padded(sentences):
    """Ids [sentences, longest], raised by one, so that 0 is the padding."""
    out = numpy.zeros((len(sentences), max(map(len, sentences))), numpy.int64)
    for row, ids in zip(out, sentences):
        row[:len(ids)] = ids + 1
    return torch.from_numpy(out)


def batch_of(shard, pairs):
    """Source, what the decoder reads (the end of sentence first, as in tarn), what it is to say, and real tokens."""
    source, target = (padded(shard.sentences(side, pairs)) for side in (0, 1))
    read = torch.cat([torch.full((len(pairs), 1), shard.end[1] + 1), target[:, :-1]], 1)
    read = read.masked_fill(target.eq(0), 0)
    return source, read, target, int(source.ne(0).sum() + target.ne(0).sum())


def positions(length, width):
    half = width // 2
    rates = torch.exp(torch.arange(half) * -(math.log(10000) / (half - 1)))
    angles = torch.arange(length)[:, None] * rates[None]
    return torch.cat([angles.sin(), angles.cos()], 1)


class Attention(nn.Module):
    def __init__(self, width, heads, cross):
        super().__init__()
        self.heads, self.cross = heads, cross
        self.first = nn.Linear(width, width if cross else 3 * width)
        self.memory = nn.Linear(width, 2 * width) if cross else None
        self.last = nn.Linear(width, width)

    def split(self, x):
        return x.view(x.size(0), x.size(1), self.heads, -1).transpose(1, 2)

    def forward(self, x, memory, mask, causal):
        if self.cross:
            query, (key, value) = self.first(x), self.memory(memory).chunk(2, -1)
        else:
            query, key, value = self.first(x).chunk(3, -1)
        y = functional.scaled_dot_product_attention(self.split(query), self.split(key), self.split(value), mask,
                                                    is_causal=causal)
        return self.last(y.transpose(1, 2).reshape(x.shape))


class Layer(nn.Module):
    """Post-norm, ReLU."""

    def __init__(self, options, decoder):
        super().__init__()
        width = options.width
        self.attention, self.norm = Attention(width, options.heads, False), nn.LayerNorm(width)
        self.cross = Attention(width, options.heads, True) if decoder else None
        self.cross_norm = nn.LayerNorm(width) if decoder else None
        self.inner, self.outer = nn.Linear(width, options.ffn), nn.Linear(options.ffn, width)
        self.last_norm, self.dropout = nn.LayerNorm(width), nn.Dropout(options.dropout)

    def forward(self, x, mask, memory=None, memory_mask=None):
        # No row of the decoder looks at the padding behind it, so causal masks alone do, which have the fast kernel.
        x = self.norm(x + self.dropout(self.attention(x, None, mask, memory is not None)))
        if self.cross is not None:
            x = self.cross_norm(x + self.dropout(self.cross(x, memory, memory_mask, False)))
        return self.last_norm(x + self.dropout(self.outer(functional.relu(self.inner(x)))))


class Model(nn.Module):
    """The Transformer of examples/multi30k/model0.yaml: one matrix for all embeddings and the output."""

    def __init__(self, options, words):
        super().__init__()
        self.scale = math.sqrt(options.width)
        self.table = nn.Embedding((words + 1 + 7) // 8 * 8, options.width, 0)
        nn.init.normal_(self.table.weight, 0, options.width ** -0.5)
        self.register_buffer("positions", positions(1024, options.width))
        self.encoder = nn.ModuleList(Layer(options, False) for _ in range(options.encoder))
        self.decoder = nn.ModuleList(Layer(options, True) for _ in range(options.decoder))
        self.dropout = nn.Dropout(options.dropout)

    def embed(self, ids):
        return self.dropout(self.table(ids) * self.scale + self.positions[:ids.size(1)])

    def forward(self, source, read):
        mask = source.ne(0)[:, None, None, :]
        memory, x = self.embed(source), self.embed(read)
        for layer in self.encoder:
            memory = layer(memory, mask)
        for layer in self.decoder:
            x = layer(x, None, memory, mask)
        return functional.linear(x, self.table.weight)


class Training:
    def __init__(self, options):
        torch.manual_seed(1)
        torch.set_float32_matmul_precision("high")
        self.options, self.device = options, torch.device(options.device)
        self.shard = Shard(options.shard)
        self.model = Model(options, max(self.shard.words)).to(self.device)
        frozen = [self.model.encoder[int(i)] for i in options.freeze.split(",") if i]
        for layer in frozen:
            layer.requires_grad_(False)
        trained = [p for p in self.model.parameters() if p.requires_grad]
        self.optimiser = torch.optim.AdamW(trained, lr=5e-4, betas=(0.9, 0.98), eps=1e-8, weight_decay=1e-4, fused=True)
        self.loss = torch.compile(self.loss_of, dynamic=True) if options.compile else self.loss_of
        self.step = 0

    def loss_of(self, source, read, target):
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.options.dtype == "bf16"):
            logits = self.model(source, read)
        return functional.cross_entropy(logits.float().view(-1, logits.size(-1)), target.view(-1), ignore_index=0,
                                        label_smoothing=0.1)

    def update(self, batch):
        self.step += 1
        for group in self.optimiser.param_groups:
            group["lr"] = 5e-4 * min(self.step / 4000, (4000 / self.step) ** 0.5)
        loss = self.loss(*batch)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        self.optimiser.step()
        return loss

    def read(self, path, count):
        with open(path, encoding="utf-8") as file:
            lines = [[int(word) for word in line.split()] for line in file]
        batches = []
        for i in range(count):
            source, read, target, tokens = batch_of(self.shard, lines[i % len(lines)])
            if self.device.type == "cuda":  # as staged by a loader of its own: copied without waiting
                source, read, target = (t.pin_memory() for t in (source, read, target))
            batches.append(((source, read, target), tokens))
        return batches

    def turn(self, asked):
        """Trains; rates are medians over windows of the updates behind the first `warm`."""
        cuda = self.device.type == "cuda"
        if cuda:
            torch.cuda.reset_peak_memory_stats()
        self.model.train()
        batches = self.read(asked["batches"], asked["warm"] + asked["updates"])
        rates, steps, loss = [], [], None
        tokens, begin, count = 0, 0.0, 0
        for i, (batch, real) in enumerate(batches):
            if i == asked["warm"]:
                self.wait()
                begin, tokens, count = time.perf_counter(), 0, 0
            loss = self.update([t.to(self.device, non_blocking=True) for t in batch])
            tokens, count = tokens + real, count + 1
            if i >= asked["warm"] and (count == WINDOW or i + 1 == len(batches)):
                value = loss.item()  # waits
                now = time.perf_counter()
                rates.append(tokens / (now - begin))
                steps.append((now - begin) / count)
                begin, tokens, count = now, 0, 0
        result = {"tokens_per_second": median(rates), "step_ms": 1e3 * median(steps), "loss": value,
                  "peak_mb": torch.cuda.max_memory_allocated() / 1e6 if cuda else None}
        if cuda:
            torch.cuda.empty_cache()  # the other side's turn
        return result

    def wait(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shard", required=True, help="PREFIX of tarn prepare")
    for name, value in (("width", 512), ("ffn", 1024), ("heads", 16), ("encoder", 8), ("decoder", 2)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--freeze", default="", help="numbers of frozen layers of the encoder, with commas, from 0")
    parser.add_argument("--dropout", type=float, default=0.3)
    parser.add_argument("--dtype", choices=("bf16", "fp32"), default="bf16")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--no-compile", dest="compile", action="store_false")
    return parser.parse_args()


def answer(value):
    print(json.dumps(value), flush=True)


def main():
    training = Training(arguments())
    answer({"ready": torch.__version__, "parameters": sum(p.numel() for p in training.model.parameters())})
    for line in sys.stdin:
        if not line.strip():
            break
        try:
            answer(training.turn(json.loads(line)))
        except torch.cuda.OutOfMemoryError as error:
            torch.cuda.empty_cache()
            answer({"failed": str(error).splitlines()[0]})


if __name__ == "__main__":
    main()
