"""Training: from a dictionary, with a callback, stopped and interrupted, without a bit that differs."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

import tarn

Description = dict[str, Any]


def weights(run: str | Path) -> bytes:
    """The tensors of the last checkpoint; the header has the clocks."""
    data = (Path(run) / "checkpoint_last.safetensors").read_bytes()
    return data[8 + int.from_bytes(data[:8], "little") :]


def test_dictionary_and_file_are_alike(trained: tarn.Trained, description: Description, tmp_path: Path) -> None:
    assert trained.end == "updates" and trained.update == 40 and trained.best_update in (20, 40)
    assert 0 < trained.scores["loss"] < 10 and trained.tokens_per_second > 0
    (tmp_path / "model.yaml").write_text(tarn.to_yaml(description))
    other = tarn.train(tmp_path / "model.yaml", tmp_path / "run")
    assert weights(other.run) == weights(trained.run)


def test_callback_sees_everything(description: Description, tmp_path: Path) -> None:
    events: list[tarn.Event] = []
    done = tarn.train(description, tmp_path / "run", callback=events.append)
    updates = [event for event in events if event.kind == "update"]
    assert [event.update for event in updates] == list(range(1, 41))
    assert all(event.loss > 0 and event.grad_norm > 0 for event in updates)
    assert [event.update for event in events if event.kind == "log"] == list(range(5, 41, 5))
    valid = [event for event in events if event.kind == "valid"]
    assert [event.update for event in valid] == [0, 20, 40] and all("bleu" in event.scores for event in valid)
    assert valid[-1].scores["loss"] == done.scores["loss"]
    assert any(event.kind == "saved" and event.path and os.path.exists(event.path) for event in events)


def test_exponents_over_a_training(description: Description, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("the dog sees the cat\nthe cat sleeps\n")
    events: list[tarn.Event] = []
    dynamics = {"input": str(text), "every": 20, "map": "period", "first_layer": 1, "iterations": 10}
    tarn.train(description, tmp_path / "run", overrides={"dynamics": dynamics}, callback=events.append)
    seen = [event for event in events if event.kind == "dynamics"]
    assert [event.update for event in seen] == [0, 20, 40]
    points = [row for row in tarn.results(tmp_path / "run").curves() if row["name"] == "dynamics/exponent"]
    assert [row["step"] for row in points] == [0, 20, 40]
    assert [row["value"] for row in points] == pytest.approx([event.values["exponent"] for event in seen], rel=1e-8)


def test_callback_stops_and_resuming_changes_no_bit(
    trained: tarn.Trained, description: Description, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    stopped = tarn.train(description, run, callback=lambda event: event.kind == "update" and event.update == 13)
    assert stopped.end == "stopped" and stopped.update == 13 and stopped.checkpoint
    with stopped.open() as model:
        assert model.update == 13
    resumed = tarn.train(None, run, resume=True)
    assert resumed.end == "updates" and weights(run) == weights(trained.run)


def test_an_exception_of_the_callback_saves(trained: tarn.Trained, description: Description, tmp_path: Path) -> None:
    def fail(event: tarn.Event) -> None:
        if event.update == 7:
            raise LookupError("of the callback")

    with pytest.raises(LookupError, match="of the callback"):
        tarn.train(description, tmp_path / "run", callback=fail)
    assert tarn.train(None, tmp_path / "run", resume=True).update == 40
    assert weights(tmp_path / "run") == weights(trained.run)


def test_models_are_used_from_the_callback(trained: tarn.Trained, description: Description, tmp_path: Path) -> None:
    seen: list[str] = []

    def look(event: tarn.Event) -> None:
        if event.kind == "saved" and event.path:
            with tarn.Run(event.path) as run:
                seen.extend(run.translate(["Ein Hund ."]))
        if event.kind == "update" and event.update == 3:
            with pytest.raises(tarn.UsageError, match="a training is under way"), tarn.Run(trained.run, threads=1) as run:
                run.translate(["Ein Hund ."])
            with pytest.raises(tarn.BusyError):
                tarn.train(description, tmp_path / "other")

    tarn.train(description, tmp_path / "run", callback=look)
    assert seen and weights(tmp_path / "run") == weights(trained.run)


INTERRUPTED = """
    import sys
    import tarn

    def tell(event):
        if event.kind == "update" and event.update == 5:
            print("begun", flush=True)

    try:
        tarn.train(sys.argv[1], sys.argv[2], callback=tell if sys.argv[3] == "yes" else None)
    except KeyboardInterrupt:
        print("interrupted")
"""


@pytest.mark.parametrize("callback", ["yes", "no"])
def test_an_interrupt_saves_and_is_raised(
    trained: tarn.Trained, description: Description, tmp_path: Path, callback: str
) -> None:
    long = {**description, "train": {**description["train"], "max_updates": 100000}}
    (tmp_path / "model.yaml").write_text(tarn.to_yaml(long))
    run = tmp_path / "run"
    command = [sys.executable, "-c", textwrap.dedent(INTERRUPTED), str(tmp_path / "model.yaml"), str(run), callback]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        if callback == "yes":
            assert child.stdout.readline() == "begun\n"
        else:
            # The log begins before the first update: its first line is no sign that one was made.
            while not (run / "log.jsonl").exists() or '"kind":"train"' not in (run / "log.jsonl").read_text():
                assert child.poll() is None
                time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "interrupted\n"
        assert child.wait() == 0
    with tarn.Run(run, which="last") as model:
        reached = model.update
    assert reached > 0
    whole = {**description, "train": {**description["train"], "max_updates": reached + 2}}
    tarn.train(None, run, resume=True, overrides={"train.max_updates": reached + 2})
    assert tarn.train(whole, tmp_path / "whole").update == reached + 2
    assert weights(run) == weights(tmp_path / "whole")


def test_what_is_refused(description: Description, tmp_path: Path) -> None:
    with pytest.raises(tarn.UsageError, match="model.d_model: .* has no place in a description"):
        tarn.train({**description, "model": {"d_model": object()}}, tmp_path / "run")
    with pytest.raises(tarn.UsageError, match="a description is expected"):
        tarn.train(None, tmp_path / "run")
    with pytest.raises(tarn.UsageError, match="train.lr"):
        tarn.train(description, tmp_path / "run", overrides={"train": {"lr": math.pi * -1}})


def test_seeds_and_comparison(description: Description, tmp_path: Path) -> None:
    half = tmp_path / "half"
    done = tarn.train_seeds(description, half, overrides={"train.seeds": [1, 2, 3], "train.max_updates": 20})
    assert [Path(one.run).name for one in done] == ["seed-1", "seed-2", "seed-3"]
    full = {**description, "encoder": {"layers": "L*4"}}
    tarn.train_seeds(full, tmp_path / "full", overrides={"train.seeds": [1, 2, 3], "train.max_updates": 20})
    results = tarn.results(half, tmp_path / "full")
    runs = results.runs()
    assert len(runs) == 6 and set(runs["state"]) == {"finished"} and set(runs["group"]) == {"half", "full"}
    curves = results.curves("valid/loss")
    assert len(curves.where(group="half", seed=2)) == 2 and (curves["value"] > 0).all()
    assert {"train/loss", "valid/bleu"} <= set(results.curves()["name"])
    for name in ("valid_loss", "loss"):
        assert results.curves(name) == curves
    assert results.curves().where(name="valid_loss") == curves
    assert results.compare(metric="valid_loss", baseline="full").metric == "valid/loss"
    misspelt = 'no run has a score "valid_los"; did you mean "valid/loss"?'
    for use in (lambda: results.curves("valid_los"), lambda: results.compare(metric="valid_los")):
        with pytest.raises(tarn.UsageError) as told:
            use()
        assert str(told.value) == misspelt
    with pytest.raises(tarn.UnknownNameError, match="^name 'valid_los': did you mean \"valid/loss\"\\?$"):
        results.curves().where(name="valid_los")
    with pytest.raises(KeyError, match="^column 'vale': did you mean \"value\"\\?$"):
        curves["vale"]
    assert repr(results) == "<tarn.Results of 6 runs in 2 groups>"
    comparison = results.compare(metric="loss", baseline="full")
    assert comparison.processor is None
    assert comparison.metric == "valid/loss" and comparison.baseline == "full"
    assert [row["group"] for row in comparison.rows] == ["half", "full"] and comparison.rows[0]["best_runs"] == 3
    verdict = comparison.verdicts.where(measure="best", group="half")[0]
    assert verdict["words"] in ("better", "worse", "undecided") and verdict["low"] < verdict["high"]
    with pytest.raises(tarn.UsageError, match="nothing"):
        results.compare(baseline="nothing")
    results.close()


def test_scores_have_two_spellings(trained: tarn.Trained) -> None:
    scores = trained.scores
    assert scores["bleu"] == scores["valid/bleu"] == scores["valid_bleu"] == scores.get("valid_bleu")
    assert "valid_bleu" in scores and "valid_blue" not in scores and scores.get("blue") is None
    with pytest.raises(KeyError, match="^scores 'blue': did you mean \"bleu\"\\?$"):
        scores["blue"]


def test_a_run_that_trains_has_no_scores_yet(description: Description, tmp_path: Path) -> None:
    """A measure that may come is no mistake; a name that is none is."""
    quiet = {**description, "valid": {"every": 30}}
    found: list[int] = []

    def look(event: tarn.Event) -> bool:
        if event.update == 10 and event.kind == "update":
            results = tarn.results(tmp_path / "run")
            found.append(len(results.curves("valid/bleu")))
            with pytest.raises(tarn.UsageError, match="valid_blue"):
                results.curves("valid_blue")
        return event.update > 10

    tarn.train(quiet, tmp_path / "run", callback=look)
    assert found == [0]


def test_frames(trained: tarn.Trained) -> None:
    pytest.importorskip("pandas")
    results = tarn.results(trained.run)
    frame = results.curves("valid/loss").frame()
    assert list(frame["step"]) == [0, 20, 40] and frame["value"].dtype == float
    assert len(results.runs().frame()) == 1 and "<table" in str(results.runs()._repr_html_())


def test_ten_lines_to_a_learning_curve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of docs/python.md, with a shorter training."""
    pytest.importorskip("matplotlib").use("Agg")
    source = Path(os.environ.get("TARN_SOURCE_DIR", Path(__file__).parents[2]))
    text = (source / "docs/python.md").read_text().split("## Ten lines")[1].split("## Models")[0]
    lines = [line[4:] for line in text.splitlines() if line.startswith("    ")]
    assert 5 < len(lines) <= 10
    program = "\n".join(lines).replace("examples/", f"{source}/examples/").replace('"corpus")', '"corpus", sentences=500)')
    program = program.replace("overrides={", 'overrides={"train.max_updates": 20, "valid.every": 10, ')
    assert "max_updates" in program and "sentences=500" in program
    monkeypatch.chdir(tmp_path)
    exec(compile(program, "docs/python.md", "exec"), {})
    assert (tmp_path / "curve.png").stat().st_size > 1000
