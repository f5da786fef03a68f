"""Weights as arrays: those that the model computes with, and no copy where the file has them."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tarn
from tarn import _library
from tarn.parameters import Weights


def tensors(path: str | Path) -> dict[str, Any]:
    """A safetensors file, read without tarn."""
    data = Path(path).read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    types = {"F32": np.float32, "I8": np.int8, "U8": np.uint8, "BF16": np.uint16}
    found = {}
    for name, one in json.loads(data[8:begin]).items():
        if name != "__metadata__":
            first, last = one["data_offsets"]
            found[name] = np.frombuffer(data[begin + first : begin + last], types[one["dtype"]]).reshape(one["shape"])
    return found


def export(function: str, run: tarn.Run, path: Path) -> str:
    _library.call(function, str(path).encode(), run.checkpoint.encode())
    return str(path)


def test_they_are_those_of_the_model(trained: tarn.Trained, tmp_path: Path) -> None:
    with trained.open() as run:
        parameters = run.parameters()
        assert run.parameters() is parameters
        dense = tensors(export("tarn_checkpoint_export", run, tmp_path / "dense"))
        frozen = 0
        for name, weights in parameters.items():
            about = parameters.about(name)
            assert weights.dtype == np.float32 and weights.shape == about.shape == dense[name].shape
            assert np.array_equal(weights, dense[name])
            assert not weights.flags.writeable
            with pytest.raises(ValueError, match="read-only"):
                weights[...] = 0
            frozen += about.recipe is not None
        assert frozen > 5 and set(parameters) == {name for name in dense if not name.startswith("vocab.")}
        assert sum(weights.size for weights in parameters.values()) == run.trained_parameters + run.frozen_parameters
        shared = parameters.about("encoder.R1.ffn.in.weight")
        assert shared.uses == 2 and shared.places == "encoder layer 1 3" and shared.stored_bytes == 0
        assert parameters.table().where(name="encoder.R1.ffn.in.weight")[0]["rows"] == 64


def is_mapped(weights: Weights, path: str) -> bool:
    """Whether an array lies where the process has the file mapped."""
    place = weights.__array_interface__["data"][0]
    for line in Path("/proc/self/maps").read_text().splitlines():
        first, last = (int(part, 16) for part in line.split()[0].split("-"))
        if first <= place < last:
            return line.endswith(path)
    return False


def test_nothing_is_copied_or_drawn_needlessly(trained: tarn.Trained) -> None:
    with trained.open() as run:
        parameters, path = run.parameters(), run.checkpoint
        trained_one = parameters["decoder.layer1.ffn.in.weight"]
        assert is_mapped(trained_one, path)
        frozen = parameters["encoder.R1.ffn.in.weight"]
        assert not is_mapped(frozen, path) and parameters["encoder.R1.ffn.in.weight"] is frozen
        calls: list[str] = []
        draw = _library.lib.tarn_checkpoint_info_values

        def note(*given: Any) -> Any:
            calls.append("drawn")
            return draw(*given)

        _library.lib.tarn_checkpoint_info_values = note
        try:
            assert "encoder.R1.ffn.in.weight" in parameters and len(parameters) == len([*parameters])
            assert parameters.about("encoder.R1.ffn.out.weight").rows == 32 and parameters.table() and repr(parameters)
            assert parameters["decoder.layer1.ffn.in.weight"].any() and not calls
            assert parameters["encoder.R1.ffn.out.weight"].any() and calls == ["drawn"]
        finally:
            _library.lib.tarn_checkpoint_info_values = draw
    # Arrays outlive the run, and the file is closed with the last of them.
    del parameters
    gc.collect()
    assert trained_one.any() and frozen.any() and is_mapped(trained_one, path)
    del trained_one
    gc.collect()
    _library.worker.call(lambda: None)
    assert path not in Path("/proc/self/maps").read_text()
    with pytest.raises(tarn.UsageError, match="the run is closed"):
        run.parameters()


def test_narrow_files_are_widened(trained: tarn.Trained, tmp_path: Path) -> None:
    with trained.open() as run:
        files = [export(f"tarn_checkpoint_export_{kind}", run, tmp_path / kind) for kind in ("bf16", "int8")]
        exact = run.parameters()["decoder.layer1.ffn.in.weight"]
    name, stored = "decoder.layer1.ffn.in.weight", [tensors(file) for file in files]
    expected = [(stored[0][name].astype(np.uint32) << 16).view(np.float32)]
    expected.append(stored[1][name].astype(np.float32) * stored[1][f"{name}.scale"][:, None])
    for file, wide in zip(files, expected):
        with tarn.Run(file) as narrow:
            found = narrow.parameters()[name]
        assert np.array_equal(found, wide) and not found.flags.writeable
        assert 0 < np.abs(found - exact).max() < 0.02 * np.abs(exact).max()


def test_int4_is_widened(trained: tarn.Trained, tmp_path: Path) -> None:
    with trained.open() as run:
        file = export("tarn_checkpoint_export_int4", run, tmp_path / "int4")
        exact = run.parameters()["decoder.layer1.ffn.in.weight"]
    name, stored = "decoder.layer1.ffn.in.weight", tensors(file)
    groups = stored[name].reshape(len(exact), -1, 17)
    numbers = np.stack([groups[..., 1:] & 15, groups[..., 1:] >> 4], -1).reshape(len(exact), -1, 32).astype(np.int32) - 8
    numbers *= groups[..., :1].astype(np.int8)
    wide = numbers.reshape(len(exact), -1)[:, : exact.shape[1]].astype(np.float32) * stored[f"{name}.scale"][:, None]
    with tarn.Run(file) as narrow:
        found, tensor = narrow.parameters()[name], narrow.tensor(name)
    assert np.array_equal(found, wide) and (tensor.dtype, tensor.scales) == ("float32", None)
    assert 0 < np.abs(found - exact).max() < 0.15 * np.abs(exact).max()


def test_names(trained: tarn.Trained) -> None:
    with trained.open() as run:
        parameters = run.parameters()
        with pytest.raises(KeyError) as told:
            parameters["encoder.R1.ffn.in.weigth"]
        expected = "parameter 'encoder.R1.ffn.in.weigth': did you mean \"encoder.R1.ffn.in.weight\"?"
        assert isinstance(told.value, tarn.UnknownNameError) and str(told.value) == expected
        with pytest.raises(KeyError, match="there are embeddings.weight, .* more$"):
            parameters.about("w")
        assert (
            parameters.get("w") is None and "w" not in parameters and repr(parameters).startswith("<tarn.Parameters: ")
        )
