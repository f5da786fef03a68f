#!/usr/bin/env python3
"""What formats of 8 bits for Adam's moments cost: the squared error of an update relative to that of fp32, mean over the
last 50 updates of some blocks of 256 elements. Gradients have Student's t distribution of 4 degrees of freedom, a tenth of
them is 0, and the elements of a block have scales exp(s z), z normal. Rounding is random in all of them, and no second
moment above 0 is rounded to 0.
usage: moments.py [BLOCKS]"""
import sys

import numpy

BLOCK, BETA1, EPS = 256, 0.9, 1e-8


def dynamic(bits):
    """Dettmers et al. 2022: leading zeros are the decade, the bits behind them divide it evenly. The largest is 1."""
    codes = numpy.arange(1, 2**bits)
    exponent = numpy.floor(numpy.log2(codes))
    return numpy.append(0, 10.0**(exponent - bits + 1) * (0.1 + 0.9 * (codes - 2**exponent + 1) / 2**exponent))


def floats(exponent_bits):
    """src/optim/moments.h: three bits of mantissa, in units."""
    code = numpy.arange(2**(exponent_bits + 3))
    return numpy.where(code < 8, code / 8, 2.0**(code // 8 - 1) * (1 + code % 8 / 8))


def unit(largest, span):
    mantissa, exponent = numpy.frexp(largest)  # mantissa from 0.5
    return numpy.ldexp(1.0, exponent - 1 + (mantissa > 1.875 / 2) - span)


FORMATS = {
    "dynamic": (lambda most: most, lambda most: most, dynamic(7), dynamic(8)),
    "E4M3, E5M3": (lambda most: unit(most, 14), lambda most: unit(most, 30), floats(4), floats(5)),
}


def rounded(values, scale_of, codes, keeps, random):
    size = numpy.abs(values)
    scale = scale_of(size.max(axis=1, keepdims=True) + 1e-300)
    size = size / scale
    below = numpy.minimum(numpy.searchsorted(codes, size, side="right") - 1, len(codes) - 2)
    code = below + (random < (size - codes[below]) / (codes[below + 1] - codes[below]))
    if keeps:
        code = numpy.where((code == 0) & (size > 0), 1, code)
    return numpy.sign(values) * codes[code] * scale


def error(blocks, spread, beta2, updates):
    random = numpy.random.default_rng(1)
    shape = (blocks, BLOCK)
    scales = numpy.exp(random.normal(0, spread, shape))
    exact = [numpy.zeros(shape), numpy.zeros(shape)]
    kept = {name: [numpy.zeros(shape), numpy.zeros(shape)] for name in FORMATS}
    errors = {name: [] for name in FORMATS}

    def moved(moments, gradient):
        return [BETA1 * moments[0] + (1 - BETA1) * gradient, beta2 * moments[1] + (1 - beta2) * gradient**2]

    def step(moments):
        return moments[0] / (numpy.sqrt(moments[1]) + EPS)

    for update in range(updates):
        gradient = scales * random.standard_t(4, shape) * (random.random(shape) < 0.9)
        exact = moved(exact, gradient)
        for name, (scale1, scale2, codes1, codes2) in FORMATS.items():
            moments = moved(kept[name], gradient)
            if update >= updates - 50:
                errors[name].append(((step(moments) - step(exact))**2).sum() / (step(exact)**2).sum())
            kept[name] = [rounded(moments[0], scale1, codes1, False, random.random(shape)),
                          rounded(moments[1], scale2, codes2, True, random.random(shape))]
    return {name: numpy.mean(errors[name]) for name in FORMATS}


def main():
    blocks = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    print("s\tbeta2\t" + "\t".join(FORMATS))
    for spread in (0.3, 0.7, 1.5):
        for beta2, updates in ((0.98, 200), (0.999, 1500)):
            found = error(blocks, spread, beta2, updates)
            print(f"{spread}\t{beta2}\t" + "\t".join(f"{found[name]:.4f}" for name in FORMATS), flush=True)


if __name__ == "__main__":
    main()
