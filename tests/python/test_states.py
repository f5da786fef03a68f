"""The inside of models: shapes, sums, agreement with what models say, and no copies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tarn


def test_layers_and_attention(trained: tarn.Trained, corpus: Path) -> None:
    lines = (corpus / "valid.de").read_text().splitlines()
    targets = (corpus / "valid.en").read_text().splitlines()
    with trained.open() as run:
        offers = {offer.name: offer for offer in run.offers()}
        assert {"encoder.0", "encoder.4", "encoder.1.attention", "decoder.1.cross_attention"} <= set(offers)
        assert offers["encoder.4"].width == 32 and offers["encoder.1.attention"].form == "attention"
        found = run.states(lines, ["encoder.*", "decoder.1.cross_attention"], targets=targets)
        lengths = [len(ids) + 1 for ids in run.encode(lines)]
        assert [len(rows) for rows in found["encoder.4"]] == lengths
        assert [len(pieces) for pieces in found.pieces["source"]] == lengths
        for source, target, weights in zip(*found.pieces.values(), found["decoder.1.cross_attention"]):
            assert weights.shape == (2, len(target), len(source))
            assert np.allclose(weights.sum(-1), 1, atol=1e-5)
        assert found.all("encoder.4").shape == (sum(lengths), 32)
        shown = f"encoder.4 {sum(lengths)} x 32"
        assert repr(found).startswith("<tarn.States of 20 sentences: encoder.0 ") and shown in repr(found)
        assert "decoder.1.cross_attention 2 x tokens x tokens for each sentence" in repr(found)
        with pytest.raises(KeyError, match="^states 'encoder.44': did you mean \"encoder.4\"\\?$"):
            found["encoder.44"]
        with pytest.raises(tarn.UsageError, match="different sizes"):
            found.all("encoder.1.attention")
        with pytest.raises(tarn.UsageError, match="targets"):
            run.states(lines, ["decoder.1"])
        with pytest.raises(tarn.UsageError, match="encoder.44"):
            run.states(lines, ["encoder.44"])
        with pytest.raises(tarn.UsageError, match="20 lines and 1 targets"):
            run.states(lines, ["output"], targets=["A dog ."])


def test_log_probabilities_are_those_of_scoring(text_run: tarn.Trained, corpus: Path) -> None:
    lines = (corpus / "valid.en").read_text().splitlines()
    with text_run.open() as run:
        found = run.states(lines, ["output.log_probabilities"])["output.log_probabilities"]
        for rows, score in zip(found, run.score(lines)):
            told = rows[np.arange(len(score.ids)), score.ids]
            assert np.allclose(told, score.log_probabilities, atol=1e-4)


def test_ten_thousand_rows_are_not_copied(text_run: tarn.Trained, corpus: Path) -> None:
    """All arrays are views of one piece of memory, which the library wrote into."""
    lines = (corpus / "train.en").read_text().splitlines() * 4
    with text_run.open() as run:
        states = run.states(lines, ["decoder.1"])
    whole = states.all("decoder.1")
    assert whole.shape[0] > 10000 and whole.dtype == np.float32 and whole.flags.c_contiguous
    assert whole.base is not None
    begin, size = whole.__array_interface__["data"][0], whole.nbytes
    for rows in states["decoder.1"]:
        assert begin <= rows.__array_interface__["data"][0] <= begin + size - rows.nbytes
        assert np.shares_memory(rows, whole)
    states["decoder.1"][0][0, 0] = 17
    assert whole[0, 0] == 17
