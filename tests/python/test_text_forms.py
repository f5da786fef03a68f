"""How vocabularies normalise, and how tables of labels are written."""

from __future__ import annotations

from pathlib import Path

import pytest

import tarn

JOINED = "می\u200cخواهم ශ්\u200dරී"


def test_normalization_is_chosen_and_told(tmp_path: Path) -> None:
    (tmp_path / "lines").write_text((JOINED + "\n") * 30, "utf-8")
    expected = {"auto": "nmt_nfkc_joiners", "nmt_nfkc": "nmt_nfkc", "identity": "identity"}
    for given, name in expected.items():
        vocab = tarn.Vocabulary.train(tmp_path / "v", [tmp_path / "lines"], size=24, normalization=given)
        assert vocab.normalization == name and vocab.kind == "SentencePiece bpe"
        assert vocab.keeps_joiners == (given != "nmt_nfkc")
        assert (vocab.decode(vocab.encode([JOINED])) == [JOINED]) == vocab.keeps_joiners
    with pytest.raises(tarn.UsageError, match='normalization "nfck": one of auto, nmt_nfkc'):
        tarn.Vocabulary.train(tmp_path / "v", [tmp_path / "lines"], normalization="nfck")


def test_tables_of_labels(tmp_path: Path) -> None:
    vocab = tmp_path / "bytes"
    tarn.Vocabulary.train(vocab, [], type="byte")
    (tmp_path / "t").write_text('text;score\n"a;b";1,5\nc;2\n')
    told = tarn.prepare_labelled(tmp_path / "d", vocab, tmp_path / "t", text="text", label="score", numbers=True)
    assert told["rows"] == 2 and told["least"] == 1.5
    again = tarn.prepare_labelled(
        tmp_path / "d", vocab, tmp_path / "t", text="text", label="score", numbers=True, delimiter=";", decimal=","
    )
    assert again == told
    with pytest.raises(tarn.UsageError, match="delimiter 'tab': one character"):
        tarn.prepare_labelled(tmp_path / "d", vocab, tmp_path / "t", text="1", label="2", delimiter="tab")
    with pytest.raises(tarn.UsageError, match="divided by a comma, a semicolon, a tab or a bar"):
        tarn.prepare_labelled(tmp_path / "d", vocab, tmp_path / "t", text="1", label="2", delimiter=" ")
