"""Steps that show whether the device computes what it should."""

import concurrent.futures
import json
import os
import shutil

from place import fresh, line_of
from report import Failed, Skipped

# Few, since the tools take ten to a hundred times as long; one for each kind of access.
MEMCHECK = ["test_linear", "test_attention", "test_residual_norm", "test_embedding", "test_output", "test_recurrence"]
RACECHECK = ["test_attention", "test_residual_norm", "test_output", "test_recurrence"]
# Those of the kind golden that compute on the device of TARN_DEVICE.
GOLDEN = ["test_golden"]
# On the host, where threads of a block are fibres.
HOST = ["test_dropout_op", "test_residual_norm"]
AHEAD = ["test_dropout_op"]
HOST_SECONDS = 15  # of a test there; one that takes longer is unfinished, which is no failure


def ceilings(runner, left):
    command = [runner.place.ceilings] + (["--small"] if runner.place.host else [])
    figures = json.loads(runner.must(command, min(left, 60), what="cuda_ceilings").strip().splitlines()[-1])
    rates = {key: figures[key] for key in ("copy_bytes_per_second", "bf16_flops", "tf32_flops", "fp32_flops")}
    if not runner.place.host and None in rates.values():
        raise Failed(figures["why"], figures)
    words = [f"copy {rates['copy_bytes_per_second'] / 1e9:.0f} GB/s"]
    words += [f"{key[:4]} {value / 1e12:.0f} TFLOP/s" for key, value in list(rates.items())[1:] if value]
    return {"summary": ", ".join(words), **figures}


def chosen(place, kind, wanted=None):
    """Names of tests of a kind: all, or those of `wanted` that are here."""
    names = [name for name in place.names_of(kind) if wanted is None or name in wanted]
    if not names:
        raise Skipped(f"no tests of the kind {kind} in {place.tests}")
    return names


def limit(place, left):
    """Seconds for one test."""
    return HOST_SECONDS if place.host else min(left - 5, 120)


def workers(place):
    """How many tests run at a time: each has two threads."""
    return 1 if place.host else max(1, min(8, (os.cpu_count() or 2) // 2))


def each(place, names, act):
    """{name: act(name)}, several at a time."""
    with concurrent.futures.ThreadPoolExecutor(workers(place)) as pool:
        return dict(zip(names, pool.map(act, names)))


def bits_of(runner, name, number, left):
    """One run of a kernel test: its result, and what it recorded of its bits."""
    record = os.path.join(runner.place.folder, f"bits-{name}-{number}")
    if os.path.exists(record):
        os.remove(record)
    code, output, seconds = runner.run([os.path.join(runner.place.tests, name)], limit(runner.place, left),
                                       {"TARN_DEVICE": "cuda", "TARN_RECORD_BITS": record}, f"{name}, run {number}")
    bits = ""
    if os.path.exists(record):
        with open(record, encoding="utf-8") as file:
            bits = file.read()
    return code, line_of(output, code), seconds, bits


def twice(runner, name, left):
    """{"status", "seconds", "line"} of a test against the reference, and of its bits when it runs again."""
    code, line, seconds, first = bits_of(runner, name, 1, left)
    if code is None:
        return {"status": "unfinished", "seconds": seconds}
    if code != 0:
        return {"status": "failed", "seconds": seconds, "line": line}
    code, line, again, second = bits_of(runner, name, 2, left)
    entry = {"status": "ok", "seconds": round(seconds + again, 2), "bits": bool(first) and first == second}
    if code is None:
        entry["status"] = "unfinished"
    elif code != 0:
        entry.update(status="failed", line=f"it fails when run again: {line}")
    elif first and first != second:
        entry.update(status="failed", line="other bits when run again")
    return entry


def judge(entries, what):
    """The figures of a step with several tests; fails where one did, and where none came to its end."""
    bad = {name: entry for name, entry in entries.items() if entry["status"] == "failed"}
    good = sum(entry["status"] == "ok" for entry in entries.values())
    figures = {"summary": f"{good} of {len(entries)} {what}", "tests": entries}
    if bad:
        name, entry = next(iter(bad.items()))
        raise Failed(f"{len(bad)} of {len(entries)} {what} failed, such as {name}: {entry['line']}", figures)
    if good == 0:
        raise Failed(f"none of {len(entries)} {what} was done in time", figures)
    return figures


def kernels(runner, left):
    names = chosen(runner.place, "kernels", HOST if runner.place.host else None)
    entries = each(runner.place, names, lambda name: twice(runner, name, left))
    figures = judge(entries, "kernel tests")
    bits = sum(entry.get("bits", False) for entry in entries.values())
    figures["summary"] += f" agree with the reference, {bits} recorded bits that repeat"
    return figures


def once(runner, command, seconds, what, env=None):
    code, output, took = runner.run(command, seconds, {"TARN_DEVICE": "cuda", **(env or {})}, what)
    entry = {"status": "ok" if code == 0 else "unfinished" if code is None else "failed", "seconds": round(took, 2)}
    if entry["status"] == "failed":
        entry["line"] = line_of(output, code)
    return entry


def sanitizer(runner, tool, names, left):
    """memcheck or racecheck of compute-sanitizer. The host has warps that run ahead in its place."""
    place = runner.place
    if place.host:
        entries = each(place, chosen(place, "kernels", AHEAD), lambda name: once(runner, [os.path.join(place.tests, name)], HOST_SECONDS,
                                                       f"{name}, warps run ahead", {"TARN_CUDA_ORDER": "1"}))
        return judge(entries, "kernel tests with warps that run ahead (in place of compute-sanitizer)")
    if not shutil.which("compute-sanitizer"):
        raise Skipped("compute-sanitizer is not on the path")
    entries = each(place, chosen(place, "kernels", names), lambda name: once(
        runner, ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", os.path.join(place.tests, name)],
        min(left - 5, 90), f"{tool} of {name}"))
    return judge(entries, f"kernel tests under {tool}")


def memcheck(runner, left):
    return sanitizer(runner, "memcheck", MEMCHECK, left)


def racecheck(runner, left):
    if runner.place.host:
        raise Skipped("only on a card")
    return sanitizer(runner, "racecheck", RACECHECK, left)


def golden(runner, left):
    # The host has the time for one model.
    filtered = {"TARN_TEST_FILTER": "model0_post*", "TARN_SAMPLE": "1"} if runner.place.host else {}
    entries = each(runner.place, chosen(runner.place, "golden", GOLDEN), lambda name: once(
        runner, [os.path.join(runner.place.tests, name)], limit(runner.place, left), name, filtered))
    return judge(entries, "golden tests")


def tensors_of(run):
    """The bytes of the last checkpoint's tensors, without the header, which has times."""
    with open(os.path.join(run, "checkpoint_last.safetensors"), "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        file.seek(8 + size)
        return file.read()


def resume(runner, data, left):
    """A training that goes on has the bits of one that ran through; a checkpoint moves to the processor."""
    words = [*data.settings(), "--set", "train.precision=bf16", "--set", "train.log_every=5", "--quiet"]
    updates = 6 if runner.place.host else 40
    runs = {name: fresh(os.path.join(runner.place.folder, name)) for name in ("through", "pieces")}

    def train(name, most, *how):
        runner.tarn(["train", *how, "--device", "cuda", "--set", f"train.max_updates={most}", "--quiet"], left,
                    f"training {name}")

    train("through", updates, data.tiny, "--run", runs["through"], *words)
    train("pieces", updates // 2, data.tiny, "--run", runs["pieces"], *words)
    train("pieces", updates, "--resume", runs["pieces"])
    if tensors_of(runs["through"]) != tensors_of(runs["pieces"]):
        raise Failed("a training that was stopped and went on has other bits than one that ran through")
    runner.tarn(["train", "--resume", runs["pieces"], "--device", "cpu", "--quiet", "--set", f"train.max_updates={updates + 2}"],
                left, "the training goes on with the processor")
    entry = {"updates": updates, "summary": f"{updates} updates in two pieces have the bits of one"}
    if not runner.place.host and os.access(os.path.join(runner.place.tests, "test_resume"), os.X_OK):
        test = once(runner, [os.path.join(runner.place.tests, "test_resume")], min(left - 5, 120), "test_resume")
        entry["test_resume"] = test
        if test["status"] == "failed":
            raise Failed(f"test_resume: {test['line']}", entry)
    return entry
