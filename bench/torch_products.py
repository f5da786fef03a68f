"""Times PyTorch's products of a linear layer, forward and both gradients: ROWS IN OUT fp32|bf16 THREADS. Prints JSON:
the median seconds of the three together."""

import json
import sys
import time

import torch


def main():
    rows, inner, outer, threads = (int(sys.argv[i]) for i in (1, 2, 3, 5))
    dtype = torch.bfloat16 if sys.argv[4] == "bf16" else torch.float32
    torch.set_num_threads(threads)
    x, weight, dy = (torch.randn(*shape).to(dtype) for shape in ((rows, inner), (outer, inner), (rows, outer)))
    times, start = [], time.perf_counter()
    with torch.no_grad():
        while len(times) < 6 or (time.perf_counter() - start < 0.5 and len(times) < 100):
            begin = time.perf_counter()
            torch.nn.functional.linear(x, weight)
            torch.mm(dy, weight)
            torch.mm(dy.t(), x)
            times.append(time.perf_counter() - begin)
    times = sorted(times[1:])
    print(json.dumps({"seconds": times[len(times) // 2]}))


if __name__ == "__main__":
    main()
