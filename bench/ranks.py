"""Training on two ranks of one thread against one rank of two threads, with equal tokens per update, and against PyTorch's
DistributedDataParallel (gloo) on the same model."""

import os
import shutil

import peers
import tarn
from settings import ROOT, say
from training import MODELS
from turns import middle, paired_ratio, take_turns

RANKS = 2
# name: tokens of an update, on the longer side, of all ranks together.
CASES = {"ranks-model0-bf16-4k": 4096, "ranks-model0-bf16-8k": 8192}
NAMES = list(CASES)
DDP = os.path.join(ROOT, "bench", "ranks_ddp.py")
# Those that are fastest on one machine.
SETTINGS = {"train.precision": "bf16", "train.reduce": "bf16", "train.shard_optimiser": "yes"}


def launcher():
    """How ranks are started, each bound to a core of its own; None where there is no mpirun."""
    if not shutil.which("mpirun"):
        say("left out: several ranks need mpirun (docs/install.md)")
        return None
    if os.geteuid() == 0:
        os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    return ["mpirun", "-n", str(RANKS), "--bind-to", "core"]


def measure(context, names):
    start = launcher()
    return {name: measure_one(context, name, CASES[name], start) for name in names} if start else {}


def peer_side(python, data, ranks, threads, tokens, updates, how=()):
    source, target = data.pieces()
    result = peers.result_of(python, DDP, [
        peers.TRANSLATION, str(ranks), *how, "--", "--src", source, "--tgt", target, "--dtype", "bf16", "--fast-dropout",
        "--share-all", "--threads", str(threads), "--max-tokens", str(tokens), "--steps", str(updates), "--warm",
        str(tarn.WARM), *MODELS["model0"][1]])
    return dict(peers.figures(result, "tok_s_real_med"), overall_tokens_per_second=result["all"]["tok_s_real"])


def measure_one(context, name, tokens, start):
    say(f"{name} ...")
    data, updates, configuration = context.data(), context.updates(30), MODELS["model0"][0]
    each = tokens // RANKS

    def ours(of_rank, threads, started=()):
        keys = dict(SETTINGS, **{"train.max_tokens": of_rank})
        return tarn.train(data, configuration, keys, updates, threads, started)

    sides = {"one": lambda: ours(tokens, RANKS), "ranks": lambda: ours(each, 1, start),
             "thread": lambda: ours(each, 1)}
    found = context.peers() if peers.can_train() else {}
    for python in list(found.values())[:1]:
        sides["peer one"] = lambda: peer_side(python, data, 1, RANKS, tokens, updates)
        sides["peer ranks"] = lambda: peer_side(python, data, RANKS, 1, each, updates)
        sides["peer bf16"] = lambda: peer_side(python, data, RANKS, 1, each, updates, ["bf16"])
    results = take_turns(context.rounds, sides)
    return entry_of(results, list(found)[:1])


def entry_of(results, peer):
    speed = "overall_tokens_per_second"
    entry = {"unit": "tokens/s", "ours": middle(results["ranks"], speed), "one_rank": middle(results["one"], speed),
             "one_thread": middle(results["thread"], speed), "kept": paired_ratio(results["ranks"], results["one"], speed),
             "sent_mb": middle(results["ranks"], "sent_mb"), "waited_ms": middle(results["ranks"], "waited_ms"),
             "step_ms": middle(results["ranks"], "step_ms"), "peer": None, "ratio": None}
    if peer:
        # The faster way of sending is the peer.
        best = max(("peer ranks", "peer bf16"), key=lambda side: middle(results[side], speed))
        entry.update({"peer_name": f"{peer[0]} DDP{' bf16' if best == 'peer bf16' else ''}",
                      "peer": middle(results[best], speed), "peer_one_rank": middle(results["peer one"], speed),
                      "peer_kept": paired_ratio(results[best], results["peer one"], speed),
                      "peer_step_ms": middle(results[best], "step_ms"),
                      "ratio": paired_ratio(results["ranks"], results[best], speed)})
    return entry


def table(entries):
    head = ["ranks", "2 of 1 thread", "1 of 2", "kept", "1 of 1", "sent MB", "waited ms", "step ms", "DDP 2 of 1", "1 of 2",
            "kept", "ratio"]
    rows = [[name, (e["ours"], 0), (e["one_rank"], 0), (e["kept"], 3), (e["one_thread"], 0), (e["sent_mb"], 1),
             (e["waited_ms"], 1), (e["step_ms"], 0), (e["peer"], 0), (e.get("peer_one_rank"), 0), (e.get("peer_kept"), 3),
             (e["ratio"], 2)] for name, e in entries.items()]
    say_peer = sorted({e["peer_name"] for e in entries.values() if e.get("peer_name")})
    return head, rows, [f"peer: {', '.join(say_peer)}"] if say_peer else ["no peer is installed"]
