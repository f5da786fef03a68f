"""Wrong arguments are named, none is cut to fit; names of measures; weights as arrays."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest

import tarn


def test_numbers_are_not_cut(trained: tarn.Trained) -> None:
    line = ["Ein Hund ."]
    with trained.open() as run:
        for value in (2**64 + 3, -(2**63) - 1):
            with pytest.raises(tarn.UsageError, match=f"beam: {value} is out of range"):
                run.translate(line, beam=value)
        for wrong in (3.0, True, "3", np.float64(3), None.__class__):
            with pytest.raises(TypeError, match="beam: a whole number is expected"):
                run.translate(line, beam=wrong)
        with pytest.raises(tarn.UsageError, match="length_penalty: it is not a number"):
            run.translate(line, length_penalty=float("nan"))
        with pytest.raises(TypeError, match="length_penalty: a number is expected"):
            run.translate(line, length_penalty="1")
        with pytest.raises(TypeError, match="strict: True or False is expected"):
            run.translate(line, strict=2)
        assert run.translate(line, beam=np.int64(3)) == run.translate(line, beam=3)
        with pytest.raises(TypeError, match=r"translate: a list of texts \(str or bytes\) is expected, and number 0 of it is 1"):
            run.translate([1, 2])  # type: ignore[list-item]
        with pytest.raises(tarn.UsageError, match=r'"fp23": one of .* is expected; did you mean "fp32"\?'):
            run.translate(line, precision="fp23")


def test_what_is_missing(tmp_path: Path) -> None:
    for call in (lambda: tarn.Run(tmp_path / "none"), lambda: tarn.results(tmp_path / "none")):
        with pytest.raises(FileNotFoundError, match="none") as caught:
            call()
        assert isinstance(caught.value, tarn.FileError)
    with pytest.raises(FileNotFoundError, match="there is no such description"):
        tarn.train(tmp_path / "none.yaml", tmp_path / "run")


def test_descriptions_are_named_by_their_keys(tmp_path: Path) -> None:
    with pytest.raises(tarn.TarnError) as caught:
        tarn.train({"model": {"d_modell": 16}}, tmp_path / "run")
    assert str(caught.value).startswith("description: ") and "d_modell" in str(caught.value)
    assert "tmp" not in str(caught.value)


def test_measures_by_both_spellings(trained: tarn.Trained) -> None:
    found = tarn.results(trained.run)
    assert found.curves("valid_loss") == found.curves("valid/loss") and found.curves("valid/loss")
    with pytest.raises(tarn.UsageError, match='curves: there is no "valid/los"; did you mean "valid/loss"'):
        found.curves("valid/los")
    runs = found.runs()
    with pytest.raises(tarn.UsageError, match='column: there is no "sed"; did you mean "seed"'):
        runs["sed"]
    found.close()


def test_weights_are_arrays(trained: tarn.Trained) -> None:
    with trained.open() as run:
        table = run.parameters()
        for row in table:
            values = table[row["name"]]
            assert values.shape == (row["rows"], row["cols"]) and values.dtype == np.float32
            assert not values.flags.writeable and np.isfinite(values).all()
        assert sum(table[row["name"]].size for row in table if row["trained"]) == run.trained_parameters
        name = table[0]["name"]
        kept = table[name]
        before = kept.copy()
        with pytest.raises(tarn.UsageError, match="parameters: there is no"):
            table[name + "x"]
    del run, table
    gc.collect()
    assert (kept == before).all()  # the array keeps what it is a view of


def test_states_say_what_they_are(trained: tarn.Trained) -> None:
    with trained.open() as run:
        states = run.states(["Ein Hund .", "Ein Mann ."], ["encoder.1"])
        assert repr(states).startswith("States of 1 array\n  encoder.1: 2 sentences, [")
        with pytest.raises(KeyError):
            states.all("encoder.9")
