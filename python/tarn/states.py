"""The internal states of a model for given texts, token by token: in its layers, attention and recurrences."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

from . import _binding as c
from ._library import (
    Handle,
    PathLike,
    Text,
    call,
    fill,
    lib,
    path_bytes,
    pool,
    strings,
    texts,
    unknown,
    word_bytes,
    words,
    worker,
)
from .errors import UsageError
from .vocabulary import Tokens

SIDES = words("TARN_STATES_SIDE_")
FORMS = words("TARN_STATES_FORM_")
Numbers = Union[NDArray[np.float32], NDArray[np.int32]]


@dataclass(frozen=True)
class Offer:
    """An array of results that a model offers."""

    name: str  # "encoder.3.attention"
    text: str  # a description
    form: str  # "tokens": [tokens, width]; "sentence": [width]; "attention": [width heads, tokens, tokens]
    side: str  # "source" or "target": the side of the tokens
    width: int


class States(Mapping[str, list[Numbers]]):
    """The results, by name: `states["encoder.3"]` is a list with one array per sentence, and `states.all("encoder.3")`
    has the rows of all sentences. The arrays are views of the memory that the library wrote into; nothing is copied."""

    def __init__(self, arrays: dict[str, list[Numbers]], whole: dict[str, Numbers], pieces: dict[str, list[list[str]]]):
        self._arrays, self._whole = arrays, whole
        self.pieces = pieces  # by side, for each sentence the texts of the tokens that the model read

    def __getitem__(self, name: str) -> list[Numbers]:
        if name not in self._arrays:
            raise unknown("states", name, self._arrays)
        return self._arrays[name]

    def __contains__(self, name: object) -> bool:
        return name in self._arrays

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def all(self, name: str) -> Numbers:
        """The rows of all sentences, concatenated: [tokens, width] or [sentences, width]."""
        if name not in self._whole:
            arrays = self[name]
            raise UsageError(f"{name} has {len(arrays)} matrices of different sizes; states[{name!r}] is a list of them")
        return self._whole[name]

    def _shape(self, name: str) -> str:
        """The shape of the array of one name: for all sentences, or of each sentence's matrices."""
        if name in self._whole:
            return " x ".join(str(size) for size in self._whole[name].shape)
        heads = {rows.shape[0] for rows in self._arrays[name]}
        return " x ".join([*(str(count) for count in heads), *("tokens" for _ in range(2))]) + " for each sentence"

    def __repr__(self) -> str:
        sentences = max((len(arrays) for arrays in self._arrays.values()), default=0)
        count = f"{sentences} sentence{'' if sentences == 1 else 's'}"
        return f"<tarn.States of {count}: {', '.join(f'{name} {self._shape(name)}' for name in self) or 'nothing'}>"


class Observer:
    """A model opened for its internal states; created by `Run.states`."""

    def __init__(self, path: PathLike, threads: int, given: dict[str, Any]) -> None:
        options = c.tarn_states_options()
        lib.tarn_states_default(ctypes.byref(options))
        options.threads = pool(threads)
        fill(options, given)
        self.handle = Handle(c.tarn_states, "tarn_states_close", "the run is closed")
        call("tarn_states_open", self.handle.out(), path_bytes(path), ctypes.byref(options))

    def _list(self, function: str) -> list[Any]:
        count = ctypes.c_size_t()
        items = call(function, self.handle, ctypes.byref(count))
        return [items[i] for i in range(count.value)]

    def offered(self) -> list[Offer]:
        return [
            Offer(item.name.decode(), item.text.decode(), FORMS[item.form], SIDES[item.side], item.width)
            for item in self._list("tarn_states_offered")
        ]

    def compute(self, names: Sequence[str], lines: Sequence[Text], targets: Sequence[Text] | None) -> States:
        chosen, given = [word_bytes("names", name) for name in names], texts(lines, "states")
        others = texts(targets, "states") if targets is not None else None
        if others is not None and len(others) != len(given):
            raise UsageError(f"states: {len(given)} lines and {len(others)} targets")
        # One job: the selection, the tokens and the states belong together, whatever other threads request.
        return worker.call(lambda: self._compute(chosen, given, others))

    def _compute(self, names: list[bytes], lines: list[bytes], targets: list[bytes] | None) -> States:
        chosen, _, count = strings(names)
        call("tarn_states_select", self.handle, chosen, count)
        items, lengths, size = strings(lines)
        others = strings(targets) if targets is not None else (None, None, size)
        call("tarn_states_encode", self.handle, items, lengths, others[0], others[1], size)
        selected = self._list("tarn_states_selected")
        places = [self._places(i, size) for i in range(len(selected))]
        for item, place in zip(selected, places):
            if place[-1] < 0:
                raise UsageError(f"{item.name.decode()}: it needs the targets")
        wholes = [self._room(item, int(place[-1])) for item, place in zip(selected, places)]
        pointers: Any = (ctypes.c_void_p * len(wholes))(*(whole.ctypes.data for whole in wholes))
        call("tarn_states_compute", self.handle, pointers)
        offsets = [self._offsets(side, size) for side in range(len(SIDES))]
        arrays, flat = {}, {}
        for item, place, whole in zip(selected, places, wholes):
            name = item.name.decode()
            arrays[name] = [_shape(item, whole[a:b], offsets, s) for s, (a, b) in enumerate(zip(place, place[1:]))]
            if FORMS[item.form] != "attention":
                flat[name] = whole.reshape(-1, item.width)
        return States(arrays, flat, {SIDES[i]: self._pieces(i, one) for i, one in enumerate(offsets) if one is not None})

    def _places(self, array: int, sentences: int) -> list[int]:
        places = (ctypes.c_int64 * (sentences + 1))()
        call("tarn_states_places", self.handle, array, places)
        return list(places)

    @staticmethod
    def _room(item: Any, count: int) -> Numbers:
        room: Any = np.empty(count, np.int32 if item.type == c.TARN_STATES_TYPE_I32 else np.float32)
        return room  # type: ignore[no-any-return]

    def _offsets(self, side: int, sentences: int) -> NDArray[np.int64] | None:
        found = lib.tarn_states_offsets(self.handle.pointer, side)
        return np.ctypeslib.as_array(found, (sentences + 1,)).copy() if found else None

    def _pieces(self, side: int, offsets: NDArray[np.int64]) -> list[list[str]]:
        found = lib.tarn_states_ids(self.handle.pointer, side)
        ids: Tokens = np.ctypeslib.as_array(found, (int(offsets[-1]),)) if offsets[-1] else np.empty(0, np.int32)
        known = {token: lib.tarn_states_piece(self.handle.pointer, side, token).decode() for token in set(ids.tolist())}
        return [[known[token] for token in ids[a:b].tolist()] for a, b in zip(offsets, offsets[1:])]


def _shape(item: Any, numbers: Numbers, offsets: list[NDArray[np.int64] | None], sentence: int) -> Numbers:
    """The numbers of a sentence in their shape."""
    form = FORMS[item.form]
    if form == "sentence":
        return numbers
    if form == "tokens":
        return numbers.reshape(-1, item.width)
    sides = [offsets[item.side], offsets[item.key_side]]
    lengths = [int(side[sentence + 1] - side[sentence]) for side in sides if side is not None]
    return numbers.reshape(item.width, *lengths)
