"""Texts and labelled rows from lists, generators, frames and data sets give the same bits as files."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tarn
from tarn import _library

ROWS = [("a fine, \"nice\" film", "good"), ("a poor\tfilm", "bad"), ("nice", "good"), ("odd; so odd", "bad")]


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Temporary files are removed, on success and on failure."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    yield
    assert not os.listdir(tmp_path / "temporary") and not _library.renamed


def shard(path: Path) -> bytes:
    return Path(f"{path}.tarn").read_bytes()


def test_texts_of_any_kind(corpus: Path, tmp_path: Path) -> None:
    lines, vocab = (corpus / "valid.de").read_text("utf-8").splitlines(), corpus / "vocab"
    told = tarn.prepare(tmp_path / "file", vocab, text=corpus / "valid.de", stream=16)
    with open(corpus / "valid.de", encoding="utf-8") as opened:
        given: Any
        for i, given in enumerate((lines, (line for line in lines), [line.encode() for line in lines], opened)):
            assert tarn.prepare(tmp_path / f"text{i}", vocab, text=given, stream=16) == told
            assert shard(tmp_path / f"text{i}") == shard(tmp_path / "file")


def test_pairs_of_texts(corpus: Path, tmp_path: Path) -> None:
    de, en = ((corpus / f"valid.{side}").read_text("utf-8").splitlines() for side in ("de", "en"))
    told = tarn.prepare(tmp_path / "file", corpus / "vocab", source=corpus / "valid.de", target=corpus / "valid.en")
    assert tarn.prepare(tmp_path / "pairs", corpus / "vocab", pairs=zip(de, en)) == told
    assert tarn.prepare(tmp_path / "mixed", corpus / "vocab", source=iter(de), target=corpus / "valid.en") == told
    assert shard(tmp_path / "file") == shard(tmp_path / "pairs") == shard(tmp_path / "mixed")
    with pytest.raises(tarn.DataError, match="^source has 20 lines and target has 19: line 20 of source has no partner"):
        tarn.prepare(tmp_path / "never", corpus / "vocab", source=de, target=en[:-1])
    with pytest.raises(tarn.UsageError, match="source and target, or pairs, or a text"):
        tarn.prepare(tmp_path / "never", corpus / "vocab", source=de, pairs=zip(de, en))


@pytest.mark.parametrize("kind", ["bpe", "whitespace"])
def test_vocabularies(corpus: Path, tmp_path: Path, kind: str) -> None:
    options: dict[str, Any] = {"type": kind, "size": 150}
    lines = (corpus / "valid.en").read_text("utf-8").splitlines()
    of_file = tarn.Vocabulary.train(tmp_path / "file", [corpus / "valid.en"], **options)
    of_texts = tarn.Vocabulary.train(tmp_path / "texts", texts=(line for line in lines), **options)
    of_both = tarn.Vocabulary.train(tmp_path / "both", [corpus / "valid.de"], texts=lines, **options)
    of_two = tarn.Vocabulary.train(tmp_path / "two", [corpus / "valid.de", corpus / "valid.en"], **options)
    assert of_texts.hash == of_file.hash != of_both.hash == of_two.hash
    with pytest.raises(TypeError, match="texts: a list of texts is expected, not 'valid.en'"):
        tarn.Vocabulary.train(tmp_path / "never", texts="valid.en", **options)


def test_labelled_rows(corpus: Path, tmp_path: Path) -> None:
    vocab = corpus / "vocab"
    table = tmp_path / "table.csv"
    quoted = [",".join('"' + field.replace('"', '""') + '"' for field in row) for row in ROWS]
    table.write_text("\n".join(quoted) + "\n")
    told = tarn.prepare_labelled(tmp_path / "file", vocab, table, text="1", label="2", delimiter=",")
    assert told["rows"] == 4 and told["classes"] == 2
    dictionaries = [{"id": i, "label": label, "sentence": text} for i, (text, label) in enumerate(ROWS)]
    assert tarn.prepare_labelled(tmp_path / "tuples", vocab, iter(ROWS)) == told
    assert tarn.prepare_labelled(tmp_path / "rows", vocab, dictionaries, text="sentence", label="label") == told
    assert shard(tmp_path / "file") == shard(tmp_path / "tuples") == shard(tmp_path / "rows")
    # Numbers, classes that are numbers, pairs of sentences, and words with labels.
    told = tarn.prepare_labelled(tmp_path / "n", vocab, [("a", 1), ("b", 2.5e-7)], numbers=True)
    assert (told["least"], told["greatest"]) == (pytest.approx(2.5e-7), 1)
    assert tarn.prepare_labelled(tmp_path / "c", vocab, [("a", 1), ("b", 0), ("b", 1)])["classes"] == 2
    told = tarn.prepare_labelled(tmp_path / "p", vocab, [("a", "b", "x"), ("c", "d", "y")], pair="2", label="3")
    assert told["tokens"] == 8
    words = [(["Ann", "lives", "in", "Paris"], ["B", "O", "O", "B"]), ("Bob lives", "B O")]
    told = tarn.prepare_labelled(tmp_path / "w", vocab, words, per_word=True)
    assert told["words"] == 6 and told["classes"] == 2


def test_errors_name_the_row(corpus: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    vocab, never = corpus / "vocab", tmp_path / "never"
    lines: Any
    for lines, error, message in (
        (["a", None], TypeError, r"text: row 2: a text \(str or bytes\) is expected, not None"),
        ([{"text": "a"}], TypeError, r"text: row 1: a text .*; of a data set give a column"),
        (["a", "b\nc"], tarn.UsageError, "text: row 2: a text of several lines; give one row for each"),
        (["a", "b", "\0"], tarn.DataError, "^text: row 3: "),
        (["a", "\ud800"], tarn.UsageError, "text: row 2: a character that is no Unicode text"),
        ({"a": "b"}, TypeError, "text: a path, or texts are expected, not {'a': 'b'}"),
        (5, TypeError, "text: a path, or texts are expected, not 5"),
    ):
        with pytest.raises(error, match=message):
            tarn.prepare(never, vocab, text=lines)
    for lines, message in (([("a", "b", "c")], "pairs: row 1: two texts are expected"), ([("a", 5)], "row 1, target: a text")):
        with pytest.raises(TypeError, match=message):
            tarn.prepare(never, vocab, pairs=lines)
    for lines, error, message in (
        ([("a", "x"), ("b", "")], tarn.DataError, "^table: row 2: "),
        ([("a", "x"), ("b", None)], TypeError, "table: row 2, 2: a label is expected, not None"),
        ([("a", "x"), ("b",)], tarn.UsageError, "table: row 2: column '2': its 1 columns have numbers"),
        ([("a", "x"), "b"], TypeError, "table: row 2: a tuple or a dictionary is expected, not 'b'"),
        ([(["a"], ["x"]), (["a b"], ["x"])], tarn.UsageError, "table: row 2, 1: one word is expected, not 'a b'"),
        ([(["a", float("nan")], ["x", "y"])], TypeError, r"table: row 1, 1: a text \(str or bytes\) is expected, not nan"),
        ([(["a"], ["x"]), (["b"], [np.float32("nan")])], TypeError, "table: row 2, 2: a label is expected, not "),
    ):
        with pytest.raises(error, match=message):
            tarn.prepare_labelled(never, vocab, lines, per_word=isinstance(lines[0][0], list))
    with pytest.raises(tarn.UsageError, match='row 1: column \'lable\': did you mean "label"'):
        tarn.prepare_labelled(never, vocab, [{"text": "a", "label": "x"}], text="text", label="lable")
    with pytest.raises(TypeError, match="table: row 1, 2: a number is expected, not 'x'"):
        tarn.prepare_labelled(never, vocab, [("a", "x")], numbers=True)
    with pytest.raises(TypeError, match="table: row 1, 2: a number is expected, not .*nan"):
        tarn.prepare_labelled(never, vocab, [("a", np.float32("nan"))], numbers=True)
    with pytest.raises(tarn.UsageError, match="table: row 2, 2: the number is too large"):
        tarn.prepare_labelled(never, vocab, [("a", 1), ("a", 10**400)], numbers=True)
    with pytest.raises(tarn.UsageError, match="header, delimiter and decimal are of files"):
        tarn.prepare_labelled(never, vocab, ROWS, delimiter=",")
    with pytest.raises(tarn.UsageError, match="the columns text and label of the table are expected"):
        tarn.prepare_labelled(never, vocab, tmp_path / "table")

    def fails() -> Iterator[str]:
        yield "a"
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        tarn.prepare(never, vocab, text=fails())
    # A warning about the text names it as the caller does.
    with caplog.at_level(logging.WARNING, "tarn"):
        tarn.prepare(tmp_path / "strange", vocab, text=["Qqq zzz xxx"] * 3)
    assert caplog.messages and caplog.messages[0].startswith("text: ")


def test_frames_of_pandas(corpus: Path, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": range(4), "text": [text for text, _ in ROWS], "label": [label for _, label in ROWS]})
    vocab = corpus / "vocab"
    told = tarn.prepare_labelled(tmp_path / "frame", vocab, frame, text="text", label="label")
    assert tarn.prepare_labelled(tmp_path / "rows", vocab, ROWS) == told
    assert shard(tmp_path / "frame") == shard(tmp_path / "rows")
    assert tarn.prepare(tmp_path / "column", vocab, text=frame["text"])["lines"] == 4
    told = tarn.prepare(tmp_path / "pairs", vocab, pairs=frame[["text", "label"]])
    assert told["lines"] == 4
    assert len(tarn.Vocabulary.train(tmp_path / "vocab", texts=frame["text"], type="char", size=40)) > 10
    # A column may have any name, but only one of them.
    named = frame.rename(columns={"id": "features"})
    tarn.prepare_labelled(tmp_path / "named", vocab, named, text="text", label="label")
    assert shard(tmp_path / "named") == shard(tmp_path / "frame")
    with pytest.raises(tarn.UsageError, match="table: 2 columns have the name 'text'"):
        tarn.prepare_labelled(tmp_path / "never", vocab, frame.rename(columns={"id": "text"}), text="text", label="label")
    frame.loc[2, "text"] = None
    with pytest.raises(TypeError, match="text: row 3: a text .* is expected, not (None|nan)"):
        tarn.prepare(tmp_path / "never", vocab, text=frame["text"])
    with pytest.raises(TypeError, match="text: one column of texts is expected, not a frame"):
        tarn.prepare(tmp_path / "never", vocab, text=frame)
    with pytest.raises(tarn.UnknownNameError, match="column 'lable': did you mean \"label\""):
        tarn.prepare_labelled(tmp_path / "never", vocab, frame, text="text", label="lable")


class Frame:
    """What is used of a frame of polars: iterating over it would give its columns."""

    def __init__(self, columns: list[str], rows: list[tuple[Any, ...]]) -> None:
        self.columns, self.rows = columns, rows

    def __getitem__(self, names: list[str]) -> Frame:
        places = [self.columns.index(name) for name in names]
        return Frame(names, [tuple(row[i] for i in places) for row in self.rows])

    def __iter__(self) -> Iterator[Any]:
        raise AssertionError

    def iter_rows(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows)


def frames_of_polars(columns: list[str], rows: list[tuple[Any, ...]]) -> Iterator[Any]:
    yield Frame(columns, rows)
    try:
        import polars
    except ImportError:
        return
    yield polars.DataFrame(rows, schema=columns, orient="row")


def test_frames_of_polars(corpus: Path, tmp_path: Path) -> None:
    vocab = corpus / "vocab"
    tarn.prepare_labelled(tmp_path / "rows", vocab, ROWS)
    for frame in frames_of_polars(["label", "text"], [(label, text) for text, label in ROWS]):
        tarn.prepare_labelled(tmp_path / "frame", vocab, frame, text="text", label="label")
        assert shard(tmp_path / "frame") == shard(tmp_path / "rows")
        assert tarn.prepare(tmp_path / "pairs", vocab, pairs=frame)["lines"] == 4
        with pytest.raises(TypeError, match="text: one column of texts is expected, not a frame"):
            tarn.prepare(tmp_path / "never", vocab, text=frame)


class DataSet(list[dict[str, Any]]):
    features = {"label": SimpleNamespace(names=["bad", "good"])}


def test_numbers_of_classes(corpus: Path, tmp_path: Path) -> None:
    rows = DataSet([{"text": "a", "label": 0}, {"text": "b", "label": 1}])
    named = tarn.prepare_labelled(tmp_path / "named", corpus / "vocab", rows, text="text", label="label")
    numbers = tarn.prepare_labelled(tmp_path / "n", corpus / "vocab", rows, text="text", label="label", numbers=True)
    assert named["classes"] == 2 and (numbers["classes"], numbers["least"], numbers["greatest"]) == (0, 0, 1)


def test_words_are_divided_by_blanks_of_ascii(corpus: Path, tmp_path: Path) -> None:
    rows = [(["a\u00a0b", "c\u3000d"], ["x", "y"])]
    assert tarn.prepare_labelled(tmp_path / "w", corpus / "vocab", rows, per_word=True)["words"] == 2


def test_data_sets_of_hugging_face(corpus: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    vocab, kinds = corpus / "vocab", datasets.ClassLabel(names=["bad", "good"])
    rows = {"text": [text for text, _ in ROWS], "label": [int(label == "good") for _, label in ROWS]}
    features = datasets.Features({"text": datasets.Value("string"), "label": kinds})
    data = datasets.Dataset.from_dict(rows, features=features)
    tarn.prepare_labelled(tmp_path / "rows", vocab, ROWS)
    for i, given in enumerate((data, data.to_iterable_dataset())):
        tarn.prepare_labelled(tmp_path / f"data{i}", vocab, given, text="text", label="label")
        assert shard(tmp_path / f"data{i}") == shard(tmp_path / "rows")
    assert tarn.prepare(tmp_path / "column", vocab, text=data["text"])["lines"] == 4
    with pytest.raises(TypeError, match="text: row 1: .*; of a data set give a column"):
        tarn.prepare(tmp_path / "never", vocab, text=data)
    unlabelled = datasets.Dataset.from_dict({"text": ["a"], "label": [-1]}, features=features)
    with pytest.raises(tarn.UsageError, match="table: row 1, label: -1 is none of the 2 classes"):
        tarn.prepare_labelled(tmp_path / "never", vocab, unlabelled, text="text", label="label")
