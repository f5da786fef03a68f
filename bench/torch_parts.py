#!/usr/bin/env python3
"""PyTorch peer of single parts: a masked language model of some layers that are this part alone, pre-norm, in eager mode, as
its papers' code and the usual packages write it, in rows that are full. The forms with keys (--part switch and the like)
have the defaults of tarn's entries. Prints a line RESULT with JSON as torch_mlm.py does. --list names the parts."""

import math
import statistics

import numpy
import torch
import torch.nn.functional as F
from torch import nn

import torch_roberta
from torch_mlm import draw


def heads_of(x, heads):
    b, t, d = x.shape
    return x.view(b, t, heads, d // heads).transpose(1, 2)


def joined(x):
    b, h, t, e = x.shape
    return x.transpose(1, 2).reshape(b, t, h * e)


class Attention(nn.Module):
    """Softmax attention; of `kv_heads` heads of keys and values, with what `scores` adds, turned by `turn`."""

    def __init__(self, o, kv_heads=None, position=None):
        super().__init__()
        self.heads, self.kv = o.heads, kv_heads or o.heads
        self.q, self.k_v = nn.Linear(o.d, o.d), nn.Linear(o.d, 2 * self.kv * (o.d // o.heads))
        self.out, self.position = nn.Linear(o.d, o.d), position

    def forward(self, x):
        q = heads_of(self.q(x), self.heads)
        k, v = (heads_of(part, self.kv) for part in self.k_v(x).chunk(2, -1))
        if self.position:
            return self.out(joined(self.position(q, k, v)))
        y = F.scaled_dot_product_attention(q, k, v, enable_gqa=self.kv != self.heads)
        return self.out(joined(y))


class Rotary(nn.Module):
    def forward(self, q, k, v):
        half, t = q.size(-1) // 2, q.size(-2)
        angle = torch.outer(torch.arange(t).float(), 10000.0 ** (-torch.arange(half) / half))
        cos, sin = angle.cos().repeat(1, 2), angle.sin().repeat(1, 2)

        def turn(x):
            return (x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin).to(x.dtype)

        return F.scaled_dot_product_attention(turn(q), turn(k), v)


class Alibi(nn.Module):
    def forward(self, q, k, v):
        t, h = q.size(-2), q.size(1)
        distance = (torch.arange(t)[:, None] - torch.arange(t)[None]).abs()
        slopes = 2.0 ** (-8.0 * torch.arange(1, h + 1) / h)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=(-slopes[:, None, None] * distance).to(q.dtype))


class RelativeBias(nn.Module):
    """T5's, as transformers' T5Attention computes it."""

    def __init__(self, o, buckets=32, most=128):
        super().__init__()
        self.table, self.buckets, self.most = nn.Embedding(buckets, o.heads), buckets, most

    def forward(self, q, k, v):
        t = q.size(-2)
        relative = torch.arange(t)[None] - torch.arange(t)[:, None]
        half = self.buckets // 2
        bucket, distance, exact = (relative > 0).long() * half, relative.abs(), half // 2
        far = exact + (torch.log(distance.clamp(min=1) / exact) / math.log(self.most / exact) * (half - exact)).long()
        bucket += torch.where(distance < exact, distance, far.clamp(max=half - 1))
        bias = self.table(bucket).permute(2, 0, 1)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias.to(q.dtype))


class Shaw(nn.Module):
    def __init__(self, o, clip=16):
        super().__init__()
        self.keys, self.values = nn.Embedding(2 * clip + 1, o.d // o.heads), nn.Embedding(2 * clip + 1, o.d // o.heads)
        self.clip = clip

    def forward(self, q, k, v):
        t = q.size(-2)
        index = (torch.arange(t)[None] - torch.arange(t)[:, None]).clamp(-self.clip, self.clip) + self.clip
        scores = q @ k.transpose(-1, -2) + torch.einsum("bhie,ije->bhij", q, self.keys(index).to(q.dtype))
        weights = (scores / q.size(-1) ** 0.5).softmax(-1).to(v.dtype)
        return weights @ v + torch.einsum("bhij,ije->bhie", weights, self.values(index).to(v.dtype))


class Pooling(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.pool = nn.AvgPool1d(3, 1, 1, count_include_pad=False)

    def forward(self, x):
        return self.pool(x.transpose(1, 2)).transpose(1, 2) - x


class Recurrent(nn.Module):
    def __init__(self, o, cell, width, both=False):
        super().__init__()
        self.cell = cell(o.d, width, batch_first=True, bidirectional=both)
        self.out = nn.Linear(2 * width if both else width, o.d)

    def forward(self, x):
        return self.out(self.cell(x)[0])


class Convolution(nn.Module):
    """Light and dynamic convolution, by unfolding."""

    def __init__(self, o, dynamic, width=31):
        super().__init__()
        self.heads, self.width = o.heads, width
        self.glu, self.out = nn.Linear(o.d, 2 * o.d), nn.Linear(o.d, o.d)
        self.kernel = nn.Linear(o.d, o.heads * width, bias=False) if dynamic else nn.Parameter(torch.randn(o.heads, width))

    def forward(self, x):
        x = F.glu(self.glu(x), -1)
        b, t, d = x.shape
        if isinstance(self.kernel, nn.Parameter):
            kernel = self.kernel.softmax(-1).repeat_interleave(d // self.heads, 0)[:, None]
            y = F.conv1d(x.transpose(1, 2), kernel.to(x.dtype), padding=self.width // 2, groups=d).transpose(1, 2)
            return self.out(y)
        kernel = self.kernel(x).view(b, t, self.heads, self.width).softmax(-1).to(x.dtype)
        padded = F.pad(x, (0, 0, self.width // 2, self.width // 2)).unfold(1, self.width, 1)
        windows = padded.reshape(b, t, self.heads, d // self.heads, self.width)
        return self.out(torch.einsum("bthcw,bthw->bthc", windows, kernel).reshape(b, t, d))


class Mixer(nn.Module):
    """MLP-Mixer's mixing of tokens."""

    def __init__(self, o, width):
        super().__init__()
        self.up, self.down = nn.Linear(o.length, width), nn.Linear(width, o.length)

    def forward(self, x):
        return self.down(F.gelu(self.up(x.transpose(1, 2)))).transpose(1, 2)


class SpatialGate(nn.Module):
    """gMLP, and aMLP with `attention` columns of attention by one head."""

    def __init__(self, o, width, attention=0):
        super().__init__()
        self.up, self.down = nn.Linear(o.d, width), nn.Linear(width // 2, o.d)
        self.norm, self.space = nn.LayerNorm(width // 2), nn.Linear(o.length, o.length)
        self.qkv = nn.Linear(o.d, 3 * attention) if attention else None
        self.out = nn.Linear(attention, width // 2) if attention else None

    def forward(self, x):
        u, v = F.gelu(self.up(x)).chunk(2, -1)
        v = self.space(self.norm(v).transpose(1, 2)).transpose(1, 2)
        if self.qkv:
            q, k, w = self.qkv(x)[:, None].chunk(3, -1)
            v = v + self.out(F.scaled_dot_product_attention(q, k, w)[:, 0])
        return self.down(u * v)


class Fourier(nn.Module):
    def __init__(self, o):
        super().__init__()

    def forward(self, x):
        return torch.fft.fft2(x.float()).real


class HyperMixer(nn.Module):
    def __init__(self, o, width, tied):
        super().__init__()

        def mlp():
            return nn.Sequential(nn.Linear(o.d, o.d, bias=False), nn.GELU(), nn.Linear(o.d, width, bias=False))

        self.first, self.norm = mlp(), nn.LayerNorm(o.d)
        self.second = self.first if tied else mlp()

    def forward(self, x):
        return self.norm(self.second(x) @ F.gelu(self.first(x).transpose(1, 2) @ x))


class Synthesizer(nn.Module):
    def __init__(self, o, form, plus=False, rank=8):
        super().__init__()
        self.heads, self.form, self.plus, n = o.heads, form, plus, o.length
        self.value, self.out = nn.Linear(o.d, o.d), nn.Linear(o.d, o.d)
        if plus:
            self.query_key = nn.Linear(o.d, 2 * o.d)
        if form == "dense":
            self.hidden, self.table = nn.Linear(o.d, o.d), nn.Parameter(torch.randn(o.heads, n, o.d // o.heads) * 0.1)
        elif form == "factorised_dense":
            self.a = 1 << (int(math.log2(n)) // 2)
            self.dense = nn.Sequential(nn.Linear(o.d, o.d), nn.ReLU(), nn.Linear(o.d, o.heads * (self.a + n // self.a)))
        elif form == "random":
            self.table = nn.Parameter(torch.randn(o.heads, n, n))
        else:
            self.left, self.right = (nn.Parameter(torch.randn(o.heads, n, rank)) for _ in range(2))

    def logits(self, x):
        b, t, _ = x.shape
        if self.form == "dense":
            return heads_of(F.relu(self.hidden(x)), self.heads) @ self.table.transpose(1, 2)
        if self.form == "factorised_dense":
            both = self.dense(x).view(b, t, self.heads, -1).transpose(1, 2)
            left, right = both[..., :self.a], both[..., self.a:]
            return (left.repeat_interleave(t // self.a, -1) * right.repeat(1, 1, 1, self.a))
        return self.table[None] if self.form == "random" else (self.left @ self.right.transpose(1, 2))[None]

    def forward(self, x):
        scores, v = self.logits(x), heads_of(self.value(x), self.heads)
        if self.plus:
            q, k = (heads_of(part, self.heads) for part in self.query_key(x).chunk(2, -1))
            scores = scores + q @ k.transpose(-1, -2) / q.size(-1) ** 0.5
        return self.out(joined(scores.softmax(-1).to(v.dtype).expand(x.size(0), -1, -1, -1) @ v))


class LinearAttention(nn.Module):
    """elu + 1, or the positive random features of Performer's softmax kernel."""

    def __init__(self, o, features=0):
        super().__init__()
        self.heads, self.qkv, self.out = o.heads, nn.Linear(o.d, 3 * o.d), nn.Linear(o.d, o.d)
        e = o.d // o.heads
        self.register_buffer("draw", torch.randn(features, e) if features else None)

    def features(self, x):
        if self.draw is None:
            return F.elu(x) + 1
        x = x.float() * x.size(-1) ** -0.25
        u = x @ self.draw.t() - (x * x).sum(-1, keepdim=True) / 2
        return (torch.exp(u - u.amax((-1, -2), keepdim=True)) + 1e-4) * self.draw.size(0) ** -0.5

    def forward(self, x):
        q, k, v = (heads_of(part, self.heads) for part in self.qkv(x).chunk(3, -1))
        q, k = self.features(q), self.features(k)
        y = (q @ (k.transpose(-1, -2) @ v.to(k.dtype))) / (q @ k.sum(-2)[..., None])
        return self.out(joined(y))


class Linformer(nn.Module):
    def __init__(self, o, k=64):
        super().__init__()
        self.heads, self.qkv, self.out = o.heads, nn.Linear(o.d, 3 * o.d), nn.Linear(o.d, o.d)
        self.keys, self.values = (nn.Parameter(torch.randn(k, o.length) * k ** -0.5) for _ in range(2))

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        k, v = self.keys.to(k.dtype) @ k, self.values.to(v.dtype) @ v
        return self.out(joined(F.scaled_dot_product_attention(*(heads_of(part, self.heads) for part in (q, k, v)))))


class Feed(nn.Module):
    def __init__(self, o, act):
        super().__init__()
        self.up, self.down, self.act = nn.Linear(o.d, o.ffn), nn.Linear(o.ffn, o.d), act

    def forward(self, x):
        return self.down(self.act(self.up(x)))


class Gated(nn.Module):
    def __init__(self, o, act):
        super().__init__()
        self.up, self.down, self.act = nn.Linear(o.d, 2 * o.ffn), nn.Linear(o.ffn, o.d), act

    def forward(self, x):
        left, right = self.up(x).chunk(2, -1)
        return self.down(left * self.act(right))


class Experts(nn.Module):
    """Top-k routing with a capacity and a balance loss; expert by expert over the rows that chose it."""

    def __init__(self, o, top, experts=8, capacity=1.25):
        super().__init__()
        self.router, self.top, self.capacity = nn.Linear(o.d, experts), top, capacity
        self.experts = nn.ModuleList(Feed(o, F.relu) for _ in range(experts))

    def forward(self, x):
        rows = x.flatten(0, 1)
        share = self.router(rows).float().softmax(-1)
        gates, chosen = share.topk(self.top, -1)
        most = math.ceil(self.capacity * self.top * rows.size(0) / len(self.experts))
        y = torch.zeros_like(rows)
        for e, expert in enumerate(self.experts):
            row, place = (chosen == e).nonzero(as_tuple=True)
            row, place = row[:most], place[:most]
            y = y.index_add(0, row, (expert(rows[row]) * gates[row, place, None]).to(y.dtype))
        fraction = F.one_hot(chosen[:, 0], len(self.experts)).float().mean(0)
        self.loss = 0.01 * len(self.experts) * (fraction * share.mean(0)).sum()
        return y.view_as(x)


class ProductKeys(nn.Module):
    def __init__(self, o, heads=4, keys=128, k=32, width=256):
        super().__init__()
        self.heads, self.keys, self.k = heads, keys, k
        self.query, self.norm = nn.Linear(o.d, heads * width), nn.LayerNorm(width)
        self.halves = nn.Parameter(torch.randn(heads, 2, keys, width // 2) * (width // 2) ** -0.5)
        self.values = nn.EmbeddingBag(keys * keys, o.d, mode="sum")

    def forward(self, x):
        rows = x.flatten(0, 1)
        q = self.norm(self.query(rows).view(rows.size(0), self.heads, -1)).unflatten(-1, (2, -1))
        scores, index = torch.einsum("nhse,hske->nhsk", q, self.halves.to(q.dtype)).topk(self.k, -1)
        sums = (scores[:, :, 0, :, None] + scores[:, :, 1, None]).flatten(-2)
        pairs = (index[:, :, 0, :, None] * self.keys + index[:, :, 1, None]).flatten(-2)
        best, place = sums.topk(self.k, -1)
        weights, rows_of = best.float().softmax(-1), pairs.gather(-1, place)
        return self.values(rows_of.flatten(1), per_sample_weights=weights.flatten(1)).view_as(x)


class ScaleNorm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.gain = nn.Parameter(torch.tensor(d ** 0.5))

    def forward(self, x):
        return self.gain * x / x.norm(dim=-1, keepdim=True).clamp(min=1e-5)


class SwishBeta(nn.Module):
    """Swish with a learnt beta (Ramachandran et al. 2017)."""

    def __init__(self):
        super().__init__()
        self.beta = nn.Parameter(torch.ones(()))

    def forward(self, x):
        return x * torch.sigmoid(self.beta * x)


def square(x):
    return F.relu(x) ** 2


def mixers(o):
    """The sublayer of every token mixer."""
    def synthesizer(form, plus=False):
        return lambda: Synthesizer(o, form, plus)

    return {
        "attention": lambda: Attention(o), "grouped": lambda: Attention(o, 2), "multi_query": lambda: Attention(o, 1),
        "rotary": lambda: Attention(o, position=Rotary()), "alibi": lambda: Attention(o, position=Alibi()),
        "relative_bias": lambda: Attention(o, position=RelativeBias(o)), "shaw": lambda: Attention(o, position=Shaw(o)),
        "pooling": lambda: Pooling(o), "light_conv": lambda: Convolution(o, False),
        "dynamic_conv": lambda: Convolution(o, True), "bigru": lambda: Recurrent(o, nn.GRU, o.d // 2, True),
        "gru": lambda: Recurrent(o, nn.GRU, o.d), "lstm": lambda: Recurrent(o, nn.LSTM, o.d),
        "mlp_mixer": lambda: Mixer(o, 256), "gmlp": lambda: SpatialGate(o, o.ffn),
        "amlp": lambda: SpatialGate(o, o.ffn, 64), "fnet": lambda: Fourier(o),
        "hypermixer": lambda: HyperMixer(o, 128, True), "hypermixer_untied": lambda: HyperMixer(o, 128, False),
        "synthesizer_dense": synthesizer("dense"), "synthesizer_random": synthesizer("random"),
        "synthesizer_factorised_dense": synthesizer("factorised_dense"),
        "synthesizer_factorised_random": synthesizer("factorised_random"),
        "synthesizer_random_plus": synthesizer("random", True),
        "linear_attention": lambda: LinearAttention(o), "performer": lambda: LinearAttention(o, 256),
        "linformer": lambda: Linformer(o)}


def channels(o):
    """The sublayer of every channel mixer, and of the FFN with every activation."""
    feed = {"relu": F.relu, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "relu_squared": square,
            "elu": F.elu, "selu": F.selu, "swish": F.silu, "identity": lambda x: x}
    learnt = {"ffn_swish_beta": lambda: Feed(o, SwishBeta())}
    gated = {"glu": torch.sigmoid, "geglu": F.gelu, "reglu": F.relu, "swiglu": F.silu, "liglu": lambda x: x}
    result = {f"ffn_{name}": lambda act=act: Feed(o, act) for name, act in feed.items()} | learnt
    result |= {name: lambda act=act: Gated(o, act) for name, act in gated.items()}
    return result | {"moe": lambda: Experts(o, 2), "switch": lambda: Experts(o, 1), "product_keys": lambda: ProductKeys(o)}


NORMS = {"norm_layer": nn.LayerNorm, "norm_rms": nn.RMSNorm, "norm_scale": ScaleNorm}


class Model(nn.Module):
    """Pre-norm layers of one part, the output tied to the embeddings, and GELU and a norm below it as in BERT."""

    def __init__(self, o):
        super().__init__()
        norm, parts = NORMS.get(o.part, nn.LayerNorm), mixers(o) | channels(o)
        part = parts["ffn_relu" if o.part in NORMS else o.part]
        self.words = nn.Embedding(o.vocab, o.d)
        nn.init.normal_(self.words.weight, 0, 0.02)
        self.parts = nn.ModuleList(part() for _ in range(o.layers))
        self.norms = nn.ModuleList(norm(o.d) for _ in range(o.layers + 1))
        self.dense, self.head_norm = nn.Linear(o.d, o.d), nn.LayerNorm(o.d)

    def forward(self, ids, labels):
        x = self.words(ids)
        for norm, part in zip(self.norms, self.parts):
            x = x + part(norm(x))
        rows = labels != -100
        top = self.head_norm(F.gelu(self.dense(self.norms[-1](x[rows]))))
        loss = F.cross_entropy(F.linear(top, self.words.weight).float(), labels[rows])
        return loss + sum(part.loss for part in self.parts if isinstance(part, Experts))


def main():
    parser = torch_roberta.parser(__doc__, 15, 3)
    parser.set_defaults(layers=4, vocab=1000, ffn=1024)
    parser.add_argument("--part", default="attention")
    parser.add_argument("--rows", type=int, default=32, help="sentences of a batch")
    parser.add_argument("--length", type=int, default=128, help="tokens of each")
    parser.add_argument("--list", action="store_true")
    o = parser.parse_args()
    names = [*mixers(o), *channels(o), *NORMS]
    if o.list or o.part not in names:
        parser.exit(0 if o.list else 2, "the parts: " + " ".join(names) + "\n")
    torch_roberta.begin(o)
    random = numpy.random.default_rng(1)
    model = Model(o)
    seconds, loss = torch_roberta.train(o, model, 5e-4, lambda _: draw(random, o), model)
    torch_roberta.report(model, o.rows * o.length / statistics.median(seconds), seconds, loss)


if __name__ == "__main__":
    main()
