#!/usr/bin/env python3
"""Writes parts.safetensors: rotary positions, linear biases, average pooling and RMSNorm as transformers and PyTorch
compute them.

    python3 tests/golden/make_parts.py     (needs torch, transformers and safetensors)

Rotary positions are those of LLaMA, and of GPT-NeoX where a part of each head is rotated. transformers computes angles in
fp32, which is off by 1e-4 at position 1000; so its code runs in double here (rotary/NAME), and once more as it stands
(rotary32/NAME), which must be the same to 1e-6 in the rows of small positions. Rows are [queries | keys | rest].
Linear biases (ALiBi) are BLOOM's in attention that sees earlier tokens only, and MPT's, whose exponent is a key and which
know the bias of every distance, in attention that sees all.
Pooling is PoolFormer's own module, sentence by sentence, and for causal windows the mean written out. RMSNorm is
PyTorch's, with its gradients, and LLaMA's must be the same.
"""
import pathlib

import torch
from safetensors.torch import save_file
from transformers import GPTNeoXConfig, LlamaConfig
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.gpt_neox import modeling_gpt_neox as neox
from transformers.models.llama import modeling_llama as llama
from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor
from transformers.models.poolformer.modeling_poolformer import PoolFormerPooling

HEADS, WIDTH = 2, 16
POSITIONS = [*range(9), *range(4), 100, 1000, 4095]
SMALL = 9  # positions below it
LENGTHS = [1, 2, 9, 4]
CHANNELS = 6
EPSILON = 1e-6

torch.manual_seed(14)
tensors, texts = {}, {}


def turned(make_embedding, apply, x):
    """Rows with queries and keys turned, in the dtype of x."""
    q, k, rest = x.split([HEADS * WIDTH, HEADS * WIDTH, x.shape[1] - 2 * HEADS * WIDTH], dim=1)
    q, k = (t.reshape(1, -1, HEADS, WIDTH).transpose(1, 2) for t in (q, k))
    cos, sin = make_embedding()(q, torch.tensor([POSITIONS]))
    q, k = (t.transpose(1, 2).reshape(-1, HEADS * WIDTH) for t in apply(q, k, cos, sin))
    return torch.cat([q, k, rest], dim=1)


def in_double(call):
    """call() with double in the place of every float that the package asks for by name."""
    float_type, to_float = torch.float, torch.Tensor.float
    torch.float, torch.Tensor.float = torch.float64, torch.Tensor.double
    try:
        return call()
    finally:
        torch.float, torch.Tensor.float = float_type, to_float


def rotary(name, base, share, make_embedding, apply):
    x = torch.randn(len(POSITIONS), 2 * HEADS * WIDTH + 5)
    exact = in_double(lambda: turned(make_embedding, apply, x.double()))
    single = turned(make_embedding, apply, x)
    assert exact.dtype == torch.float64 and single.dtype == torch.float32
    small = torch.tensor(POSITIONS) < SMALL
    assert (exact - single)[small].abs().max() < 1e-6 and not torch.equal(exact, x.double())
    tensors.update({f"x/{name}": x, f"rotary/{name}": exact, f"rotary32/{name}": single})
    texts.update({f"base/{name}": repr(base), f"rotated/{name}": str(int(share * WIDTH))})


def alibi(name, heads, exponent, causal):
    """Attention over sentences of rows [queries | keys | values]."""
    x = torch.randn(sum(LENGTHS), 3 * heads * 8)
    results = []
    for part in x.double().split(LENGTHS):
        n = len(part)
        q, k, v = (t.reshape(n, heads, 8).transpose(0, 1) for t in part.chunk(3, dim=1))
        scores = q @ k.transpose(1, 2) / 8**0.5
        if causal:
            assert exponent == 8
            scores = scores + build_alibi_tensor(torch.ones(1, n), heads, torch.float64)
            scores = scores.masked_fill(torch.ones(n, n).triu(1).bool(), -torch.inf)
        else:
            distance = (torch.arange(n)[:, None] - torch.arange(n)).abs()
            scores = scores + in_double(lambda: build_mpt_alibi_tensor(heads, n, exponent))[:, 0, n - 1 - distance]
        results.append((scores.softmax(2) @ v).transpose(0, 1).reshape(n, heads * 8))
    tensors.update({f"x/{name}": x, f"alibi/{name}": torch.cat(results)})
    texts.update({f"heads/{name}": str(heads), f"exponent/{name}": str(exponent), f"causal/{name}": str(int(causal))})


def pooled(x, width, causal):
    if causal:
        return torch.stack([x[max(0, t - width + 1) : t + 1].mean(0) - x[t] for t in range(len(x))])
    return PoolFormerPooling(width)(x.T[None, :, :, None])[0, :, :, 0].T


def pooling(width, causal):
    parts = [pooled(part, width, causal) for part in tensors["x/pooling"].double().split(LENGTHS)]
    tensors[f"pooling/{width}{'causal' if causal else ''}"] = torch.cat(parts)


def rms():
    x = torch.randn(7, CHANNELS)
    norm, own = torch.nn.RMSNorm(CHANNELS, EPSILON).double(), llama.LlamaRMSNorm(CHANNELS, EPSILON)
    gain, dy = torch.randn(CHANNELS), torch.randn(7, CHANNELS)
    norm.weight.data, own.weight.data = gain.double(), gain
    z = x.double().requires_grad_()
    y = norm(z)
    y.backward(dy.double())
    assert (own(x) - y).abs().max() < 1e-6
    tensors.update({"x/rms": x, "gain/rms": gain, "dy/rms": dy, "rms/y": y.detach(), "rms/dx": z.grad,
                    "rms/dgain": norm.weight.grad})


size = {"hidden_size": HEADS * WIDTH, "num_attention_heads": HEADS}
rotary("llama", 10000.0, 1.0, lambda: llama.LlamaRotaryEmbedding(LlamaConfig(rope_theta=10000.0, **size)),
       llama.apply_rotary_pos_emb)
rotary("llama3", 500000.0, 1.0, lambda: llama.LlamaRotaryEmbedding(LlamaConfig(rope_theta=500000.0, **size)),
       llama.apply_rotary_pos_emb)
rotary("neox", 10000, 0.25,
       lambda: neox.GPTNeoXRotaryEmbedding(GPTNeoXConfig(rotary_emb_base=10000, rotary_pct=0.25, **size)),
       neox.apply_rotary_pos_emb)
tensors["x/pooling"] = torch.randn(sum(LENGTHS), CHANNELS)
for width, causal in ((1, False), (3, False), (5, False), (3, True), (4, True), (20, True)):
    pooling(width, causal)
rms()
alibi("bloom4", 4, 8, True)
alibi("bloom6", 6, 8, True)
alibi("mpt4", 4, 8, False)
alibi("mpt5", 5, 3, False)
tensors["positions"] = torch.tensor(POSITIONS, dtype=torch.int32)
tensors["lengths"] = torch.tensor(LENGTHS, dtype=torch.int32)
save_file({key: value.contiguous() for key, value in tensors.items()}, pathlib.Path(__file__).parent / "parts.safetensors",
          metadata=texts)
