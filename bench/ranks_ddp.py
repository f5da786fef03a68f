"""PyTorch DistributedDataParallel (gloo) over the model of torch_mt.py, for the measurement `ranks`.

usage: ranks_ddp.py SCRIPT RANKS DDP-OPTIONS -- OPTIONS-OF-SCRIPT

Starts RANKS processes, each of which runs SCRIPT (torch_mt.py) with its own part of the batches, its model wrapped by
DistributedDataParallel, and prints one line RESULT with the sums over ranks. RANKS 1 runs the script without any of that. The
script is taken as it is, but for the three places where one process and several differ; they are named below, and it is an
error if one of them is not there. DDP-OPTIONS: `bf16` sends gradients by bf16_compress_hook."""

import json
import os
import sys

PLACES = {
    # batches: rank r of N takes batches r, N + r, ...
    "b=batches[it%len(batches)]": "b=batches[(it*RANKS+RANK)%len(batches)]",
    # gradients: summed by DistributedDataParallel while the backward pass runs
    "m.train(); it=0": "m=WRAP(m); m.train(); it=0",
    # what a rank measured: to the process that started it
    'print("RESULT "+json.dumps(out))': "TELL(out)",
}


def main():
    script, ranks = sys.argv[1], int(sys.argv[2])
    split = sys.argv.index("--")
    how, options = sys.argv[3:split], sys.argv[split + 1:]
    with open(script, encoding="utf-8") as file:
        source = file.read()
    for old, new in PLACES.items():
        if source.count(old) != 1:
            sys.exit(f"ranks_ddp.py: {script} has not the one place it should have: {old}")
        source = source.replace(old, new)
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    pipes = []
    for rank in range(ranks):
        reading, writing = os.pipe()
        if os.fork() == 0:
            os.close(reading)
            run(source, script, options, how, rank, ranks, writing)
        os.close(writing)
        pipes.append(os.fdopen(reading))
    told = [json.loads(pipe.read() or "null") for pipe in pipes]
    for _ in range(ranks):
        os.wait()
    if None in told:
        sys.exit("ranks_ddp.py: a rank has failed")
    result = dict(told[0])
    result["all"] = dict(told[0]["all"])
    for key in ("tok_s_real", "tok_s_real_med"):
        result["all"][key] = sum(one["all"][key] for one in told)
    result["peak_rss_MB"] = max(one["peak_rss_MB"] for one in told)
    print("RESULT " + json.dumps(result))


def run(source, script, options, how, rank, ranks, writing):
    """One rank; ends the process."""
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT="29577",
                      OMP_NUM_THREADS="1" if ranks > 1 else os.environ.get("OMP_NUM_THREADS", ""))
    if ranks == 1:
        os.environ.pop("OMP_NUM_THREADS")
    else:
        os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[rank % len(os.sched_getaffinity(0))]})
    import torch
    import torch.distributed as dist
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    def wrap(model):
        if ranks == 1:
            return model
        dist.init_process_group("gloo")
        wrapped = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
        if "bf16" in how:
            wrapped.register_comm_hook(None, default_hooks.bf16_compress_hook)
        return wrapped

    def tell(out):
        with os.fdopen(writing, "w") as pipe:
            pipe.write(json.dumps(out))

    sys.argv = [script, *options]
    exec(compile(source, script, "exec"), {"__name__": "__main__", "RANK": rank, "RANKS": ranks, "WRAP": wrap, "TELL": tell})  # pylint: disable=exec-used
    sys.stdout.flush()
    if ranks > 1:
        dist.destroy_process_group()
    os._exit(0)


if __name__ == "__main__":
    main()
