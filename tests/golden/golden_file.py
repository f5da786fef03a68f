"""The contents of the golden files of models: the scripts of this folder write them, golden_parameters.h reads them.

Parameters are not stored: each is drawn from its name, here and in C, with integers and powers of two alone, so that the
bits are the same. Number i of a parameter is the sum of the four 16-bit parts of hash i of "CASE SEED NAME", less its
mean, times a step of five significant bits, plus a mean: nearly normal, and exact in fp32 where the mean is 0.

Of a gradient g its largest element is stored and SUMS sums +-g_1 +-g_2 ... +-g_n, all of PyTorch's double precision. The
sign of element i in sum k is bit k of hash i of "signs NAME". Let d be the difference of another gradient from g. Given
all signs but that of an element d_i, at most one of the two that it may have leaves |sum| below |d_i|; so each sum shows a
difference of |d_i| or more with a chance of at least one half whatever else differs, and that no sum shows it has a chance
of at most 2^-SUMS, one in 16 million. Where one element alone differs, every sum shows it.

A file's metadata: "seed", "CASE SEED"; "parameters", a line for each,

    NAME ROWS COLUMNS trained|frozen MEAN NUMERATOR EXPONENT      drawn, with the step NUMERATOR 2^EXPONENT
    NAME ROWS COLUMNS trained|frozen stored                       fp32, in the tensor weight/NAME

and the tensor "gradients", double [trained parameters, 1 + SUMS], in the order of these lines.
"""

import math

import numpy as np
import torch
from safetensors.torch import save_file

SUMS = 24
WORD = (1 << 64) - 1
DEVIATION = math.sqrt(4 * (65536**2 - 1) / 12)  # of the sum of four numbers of 16 bits


def hashes(key, count):
    """64 bits each: SplitMix64 (Steele et al. 2014), begun from the FNV-1a hash of the key."""
    start = 0xCBF29CE484222325
    for byte in key.encode():
        start = (start ^ byte) * 0x100000001B3 & WORD
    z = np.uint64(start) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return z ^ z >> np.uint64(31)


def draw(seed, name, shape, scale, mean=0.0):
    """A parameter with about this deviation, fp32, and its source in the lines of "parameters"."""
    fraction, exponent = math.frexp(scale / DEVIATION)
    numerator, exponent = round(fraction * 32), exponent - 5
    z = hashes(f"{seed} {name}", math.prod(shape))
    sums = sum((z >> np.uint64(shift) & np.uint64(0xFFFF)).astype(np.int64) for shift in (0, 16, 32, 48)) - 2 * 65535
    values = (mean + np.ldexp((numerator * sums).astype(np.float64), exponent)).astype(np.float32)
    return torch.from_numpy(values.reshape(shape)), f"{mean!r} {numerator} {exponent}"


def sums_of(name, gradient):
    """The largest element and the sums."""
    assert gradient.dtype == torch.float64
    flat = gradient.detach().numpy().reshape(-1)
    z = hashes(f"signs {name}", flat.size)
    signs = [1.0 - 2.0 * (z >> np.uint64(k) & np.uint64(1)).astype(np.float64) for k in range(SUMS)]
    return [np.abs(flat).max()] + [math.fsum(flat * sign) for sign in signs]


def save(path, case, gradients, tensors, metadata):
    """Of the case `weights`, fp32 by name, `sources` of those that draw() made, and whether they are `trained`."""
    lines, sums = [], []
    tensors = dict(tensors)
    for name, value in case.weights.items():
        line = f"{name} {value.shape[0]} {value.shape[1]} {'trained' if case.trained[name] else 'frozen'} "
        if name in case.sources:
            mean, numerator, exponent = case.sources[name].split()
            scale = int(numerator) * 2.0**int(exponent) * DEVIATION
            assert torch.equal(draw(case.seed, name, value.shape, scale, float(mean))[0], value), name
            lines.append(line + case.sources[name])
        else:
            lines.append(line + "stored")
            tensors[f"weight/{name}"] = value
        if case.trained[name]:
            sums.append(sums_of(name, gradients[name]))
    tensors["gradients"] = torch.tensor(np.array(sums))
    save_file({key: value.contiguous() for key, value in tensors.items()}, path,
              metadata={**metadata, "seed": case.seed, "parameters": "\n".join(lines)})
