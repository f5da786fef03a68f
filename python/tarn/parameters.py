"""The weights of a model as arrays."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _binding as c
from ._library import Handle, call, lib, unknown
from .results import Records

Weights = NDArray[np.float32]


@dataclass(frozen=True)
class Parameter:
    """The description of a set of weights in a model."""

    name: str  # "encoder.R1.self_attn.qkv.weight"
    rows: int  # outputs of a linear layer; 1 for a vector
    cols: int
    trained: bool  # False: random and frozen
    uses: int  # places of the model that use it; more than 1: shared
    places: str  # these places: "encoder layer 1 3 5 7"
    stored_bytes: int  # of its values in the file; 0: recomputed
    recipe: str | None  # how a frozen parameter is computed; None: its values are stored

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array: a matrix [outputs, inputs], or a vector."""
        return (self.rows, self.cols) if self.rows > 1 else (self.cols,)


class _Mapped:
    """Weights mapped from the file, read-only; arrays that are views of them keep the file open."""

    def __init__(self, handle: Handle, place: Any, shape: tuple[int, ...]) -> None:
        self.handle = handle
        address = ctypes.cast(place, ctypes.c_void_p).value
        self.__array_interface__ = {"shape": shape, "typestr": "<f4", "data": (address, True), "version": 3}


class Parameters(Mapping[str, Weights]):
    """All weights of a model by name, shared ones once, in the order of the model:
    `parameters["encoder.R1.ffn.in.weight"]` is a read-only array. Weights stored in fp32 are views of the file, without
    a copy; bf16 and int8 are widened; frozen weights not stored in the file are drawn on access, bit-identical to those
    of the model, and kept while the array exists. Arrays stay valid when the run is closed."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        info = handle.pointer.contents
        self._about = [_about(info.params[i]) for i in range(info.param_count)]
        self._places = {one.name: i for i, one in enumerate(self._about)}
        self._drawn: weakref.WeakValueDictionary[str, Weights] = weakref.WeakValueDictionary()

    def _place(self, name: object) -> int:
        if not isinstance(name, str) or name not in self._places:
            raise unknown("parameter", name, self._places)
        return self._places[name]

    def __getitem__(self, name: str) -> Weights:
        place = self._place(name)
        kept = self._drawn.get(name)
        if kept is not None:
            return kept
        shape = self._about[place].shape
        mapped = call("tarn_checkpoint_info_mapped", self._handle, place)
        if mapped:
            return np.asarray(_Mapped(self._handle, mapped, shape))
        weights: Weights = np.empty(shape, np.float32)
        room = weights.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        call("tarn_checkpoint_info_values", self._handle, place, room)
        weights.flags.writeable = False
        self._drawn[name] = weights
        return weights

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._about)

    def about(self, name: str) -> Parameter:
        """The description of these weights; nothing is read or drawn."""
        return self._about[self._place(name)]

    def table(self) -> Records:
        """The descriptions of all weights, one row each."""
        return Records(asdict(one) for one in self._about)

    def __repr__(self) -> str:
        count = sum(one.rows * one.cols for one in self._about)
        return f"<tarn.Parameters: {len(self)} arrays of {count} numbers>"


def _about(param: Any) -> Parameter:
    return Parameter(
        name=param.name.decode("utf-8", "replace"),
        rows=param.rows,
        cols=param.cols,
        trained=param.trained,
        uses=param.uses,
        places=param.places.decode("utf-8", "replace"),
        stored_bytes=param.stored_bytes,
        recipe=param.recipe.decode("utf-8", "replace") if param.recipe else None,
    )


def open_info(path: bytes) -> Handle:
    """Opens the description of a checkpoint."""
    info = Handle(c.tarn_checkpoint_info, "tarn_checkpoint_info_close", "the run is closed")
    call("tarn_checkpoint_info_open", info.out(), path)
    return info
