"""Numbers that their types cannot hold, and what is no number: refused in every field and by every function."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tarn
from tarn import _binding, _check, _library

INTEGERS = {kind for kind, check in _check._NUMBERS.items() if check not in (_check.real, _check.truth)}
NO_INTEGERS = [True, False, 2.0, 2.5, math.nan, math.inf, "3", b"3", None, np.float64(3), np.bool_(True), [3], 3 + 0j]
NO_NUMBERS = [True, "1", b"1", None, [1.0], np.bool_(False), 1j]
NO_TRUTH = [0, 1, 2, "no", "yes", None, 1.0, math.nan]
OPTIONS = (tarn.UsageError, TypeError)


def outside(kind: Any) -> list[int]:
    """Integers that wrap in a type, as 2**64 + 3 did to 3."""
    least, most = _check.bounds(kind)
    return [most + 1, least - 1, 2**64 + 3, -(2**64) + 3, 10**30]


def wrong(kind: Any) -> list[Any]:
    if kind in INTEGERS:
        return [*NO_INTEGERS, *outside(kind)]
    return {ctypes.c_bool: NO_TRUTH, ctypes.c_char_p: [5, "text", b"a\0b"]}.get(kind, [*NO_NUMBERS, 10**400])


def right(kind: Any) -> list[Any]:
    if kind in INTEGERS:
        least, most = _check.bounds(kind)
        return [least, most, 0, np.int8(1), np.uint16(1), np.int64(1)]
    if kind is ctypes.c_char_p:
        return [None, b"", b"a"]
    return [True, np.bool_(False)] if kind is ctypes.c_bool else [0, 1.5, -math.inf, np.float32(2), np.int64(3)]


def test_every_field_of_every_structure() -> None:
    kinds = {*_check._NUMBERS, ctypes.c_char_p}
    structures = [one for one in vars(_binding).values() if isinstance(one, type) and issubclass(one, ctypes.Structure)]
    fields = [
        (one, name, kind) for one in structures for name, kind, *_ in getattr(one, "_fields_", []) if kind in kinds
    ]
    assert len(fields) > 400
    for structure, name, kind in fields:
        options = structure()
        for value in right(kind):
            setattr(options, name, value)
            assert getattr(options, name) == value
        before = getattr(options, name)
        for value in wrong(kind):
            with pytest.raises(OPTIONS, match=f"^{name}"):
                setattr(options, name, value)
            assert getattr(options, name) == before


def test_every_argument_of_every_function() -> None:
    """A wrong one is refused before anything is called: all others may be anything."""
    checked = 0
    for name, (_, kinds) in _binding.FUNCTIONS.items():
        assert len(_binding.NAMES[name]) == len(kinds)
        numbers = [i for i, kind in enumerate(kinds) if kind in _check._NUMBERS]
        for i in numbers:
            given: list[Any] = [False if kind is ctypes.c_bool else 0 for kind in kinds]
            for value in wrong(kinds[i]):
                given[i] = value
                with pytest.raises(OPTIONS, match=f"^{_binding.NAMES[name][i]}"):
                    getattr(_library.lib, name)(*given)
                checked += 1
    assert checked > 500


def test_tokens() -> None:
    assert _check.integers("ids", [1, np.int64(2)]).tolist() == [1, 2]
    assert _check.integers("ids", []).dtype == _check.integers("ids", np.arange(3)).dtype == np.int32
    wrong_ids: list[Any] = [
        [2**31],
        [-(2**31) - 1],
        [2**64 + 3],
        np.array([2**32]),
        [1.0],
        [True],
        ["1"],
        [None],
        5,
        "12",
    ]
    for ids in [*wrong_ids, np.array([1.5]), np.array([math.nan]), np.array([True]), np.zeros((2, 2), int), [[1]]]:
        with pytest.raises(OPTIONS, match="^ids"):
            _check.integers("ids", ids)


def refused(call: Callable[[], object], kind: type[Exception], line: str) -> None:
    with pytest.raises(kind) as told:
        call()
    assert str(told.value) == line


def test_the_lines(trained: tarn.Trained) -> None:
    with trained.open() as run:
        line = ["Ein Hund ."]
        most = "beam {}: a whole number up to 9223372036854775807 is expected"
        refused(lambda: run.translate(line, beam=2**64 + 3), tarn.UsageError, most.format(2**64 + 3))
        refused(lambda: run.translate(line, beam=2.0), TypeError, "beam: a whole number is expected, not 2.0")
        refused(lambda: run.translate(line, beam=True), TypeError, "beam: a whole number is expected, not True")
        refused(lambda: run.translate(line, beam=math.nan), TypeError, "beam: a whole number is expected, not nan")
        refused(lambda: run.translate(line, strict=1), TypeError, "strict: True or False is expected, not 1")
        number = "length_penalty: a number is expected, not NAN"
        refused(lambda: run.translate(line, length_penalty=math.nan), tarn.UsageError, number)
        texts: Any = [1, 2]
        expected = "translate: a list of texts (str or bytes) is expected"
        refused(lambda: run.translate(texts), TypeError, f"{expected}; number 1 of it is 1")
        texts = 5
        refused(lambda: run.translate(texts), TypeError, f"{expected}, not 5")
        one = "translate: a list of texts is expected, not one text: ['Ein Hund .']"
        refused(lambda: run.translate("Ein Hund ."), TypeError, one)
        with pytest.raises(TypeError, match='^there is no option "bean"; did you mean "beam"\\? There are beam, '):
            run.translate(line, bean=3)
        assert run.translate(line, beam=np.int64(3)) == run.translate(line, beam=3)


def test_what_is_missing(tmp_path: Path) -> None:
    """One kind of error, whatever is not there, with the number of the operating system."""
    nowhere = tmp_path / "nowhere"
    absent = f"{nowhere}: cannot read: No such file or directory"
    vocabulary = f"{nowhere}: there is no such file; tarn vocab makes vocabularies (--output {nowhere})"
    uses: list[tuple[Callable[[], object], str]] = [
        (lambda: tarn.Run(nowhere), absent),
        (lambda: tarn.Run(nowhere, which="best"), absent),
        (lambda: tarn.results(nowhere), absent),
        (lambda: tarn.Vocabulary(nowhere), vocabulary),
        (lambda: tarn.train(nowhere, tmp_path / "run"), absent),
        (lambda: tarn.train(None, nowhere, resume=True), f"{nowhere}: no run to resume: there is no such folder"),
        (lambda: tarn.Vocabulary.train(tmp_path / "vocab", [nowhere], size=300), absent),
        (lambda: tarn.prepare(tmp_path / "data", nowhere, text=nowhere), vocabulary),
        (lambda: tarn.prepare_labelled(tmp_path / "data", nowhere, nowhere, text="a", label="b"), vocabulary),
    ]
    for use, line in uses:
        with pytest.raises(FileNotFoundError) as told:
            use()
        assert isinstance(told.value, tarn.NotFoundError) and isinstance(told.value, tarn.TarnError)
        assert told.value.errno == 2 and str(told.value) == line
    zero = "a\0b"
    with pytest.raises(tarn.UsageError, match="a zero byte in a path"):
        tarn.Run(zero)


def test_descriptions_are_told_by_key(description: dict[str, Any], tmp_path: Path) -> None:
    kinds, data = description["kinds"], description["data"]
    cases: list[tuple[dict[str, Any], str | None]] = [
        (
            {"kinds": {**kinds, "L": {"freeze": True}}},
            'kinds.L.freeze: unknown key "freeze" in kinds.L; did you mean "frozen"?',
        ),
        ({"modle": {}}, 'modle: unknown section "modle"'),
        ({"model": {"d_model": -3}}, "model.d_model: -3 is out of range (1 .. 65536)"),
        ({"model": {"d_model": 2**70}}, f"model.d_model: {2**70} is out of range (1 .. 65536)"),
        ({"model": {"d_model": math.nan}}, "model.d_model: nan has no place in a description"),
        ({"model": {"d_model": [1]}}, "model.d_model: expected one value, not a list"),
        ({"model": 5}, "model: expected keys and values"),
        (
            {"encoder": {"layers": "Q"}},
            'encoder.layers: at character 1: kind "Q" is not defined under kinds; did you mean "L"?',
        ),
        ({"data": {"vocab": data["vocab"]}}, "data.train is missing"),
        ({"decoder": None}, None),  # an encoder alone, which has its own line
    ]
    for changes, line in cases:
        with pytest.raises(tarn.UsageError) as told:
            tarn.train({**description, **changes}, tmp_path / "run")
        assert line is None or str(told.value) == line
        assert "description.yaml" not in str(told.value) and str(tmp_path) not in str(told.value)
    overrides: list[tuple[dict[str, Any], str]] = [
        ({"train.lr": -1}, "train.lr: -1 is out of range (0 < x <= 100)"),
        ({"train": {"lrr": 1}}, 'train.lrr: unknown key "lrr" in train; did you mean "lr"?'),
        ({"data.vocab": "x" * 200, "train.lr": -1}, "train.lr: -1 is out of range (0 < x <= 100)"),
        ({"train.seeds": list(range(-1, 40))}, "train.seeds: -1 is out of range (0 .. 4294967295)"),
    ]
    for change, line in overrides:
        with pytest.raises(tarn.UsageError) as told:
            tarn.train(description, tmp_path / "run", overrides=change)
        assert str(told.value) == line


def test_a_description_comes_back(trained: tarn.Trained, description: dict[str, Any], tmp_path: Path) -> None:
    """What a run says of itself trains the same model again."""
    with trained.open() as run:
        found = run.description
        assert found["model"]["d_model"] == 32 and found["kinds"]["R"]["frozen"] is True
        assert found["train"]["lr"] == 0.005 and found["valid"]["at_start"] is True
        assert found["data"]["vocab"] == str(description["data"]["vocab"]) and found["encoder"]["layers"] == "(R1 L1)*2"
        again = tarn.train({**found, "train": {**found["train"], "max_updates": np.int64(3)}}, tmp_path / "run")
        with again.open() as other:
            assert other.yaml == run.yaml.replace("max_updates: 40", "max_updates: 3")
