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
    """Numbers mapped from the file, read-only; arrays that are views of them keep the file open."""

    def __init__(self, handle: Handle, place: Any, shape: tuple[int, ...], kind: str = "<f4") -> None:
        self.handle = handle
        address = ctypes.cast(place, ctypes.c_void_p).value
        self.__array_interface__ = {"shape": shape, "typestr": kind, "data": (address, True), "version": 3}


# By the word of a precision: the name of its type, and what NumPy takes it for.
_STORED = {"fp32": ("float32", "<f4"), "bf16": ("bfloat16", "<u2"), "int8": ("int8", "|i1")}
_CPU = (1, 0)  # kDLCPU and the number of the device
_BFLOAT = 4  # kDLBfloat
# Where a DLTensor has the code of its type (dlpack.h), and what comes before it in the structure of a capsule.
_CODE_AT, _VERSIONED_AT = 20, 32
_SHARES_READ_ONLY = tuple(int(part) for part in np.__version__.split(".")[:2]) >= (2, 1)

_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


class Tensor:
    """Weights in the type in which the file has them, for any library that reads DLPack:
    `torch.from_dlpack(run.tensor("embeddings.weight")).clone()`.

    Readers of DLPack 1.0 get the memory of the file itself, marked as read-only, which stays mapped as long as they use
    it; the package needs NumPy 2.1 for that. Older readers, which do not know the mark, get a copy of their own, and
    `copy=False` is refused with a BufferError.

    PyTorch is said to read DLPack 1.0 and to ignore the mark (it was not tried): its tensor looks writable, and writing
    to it ends the process by SIGSEGV. `clone()` gives one that can be written to."""

    def __init__(self, name: str, dtype: str, values: NDArray[Any], scales: Weights | None) -> None:
        self.name = name
        self.dtype = dtype  # "float32", "bfloat16" or "int8"
        self.shape: tuple[int, ...] = values.shape
        self.scales = scales  # of int8, for each row: the weights are scales[:, None] * values
        self._values = values  # of bfloat16 as uint16, which NumPy has not

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CPU

    def __dlpack__(
        self,
        *,
        stream: None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A capsule, as the array API standard describes it. NumPy makes it, and with it whatever frees it, which must
        not be Python: a reader may drop it while an exception is on its way."""
        if stream is not None or dl_device not in (None, _CPU):
            raise BufferError(f"{self.name}: the weights are in the memory of the CPU")
        versioned = max_version is not None and max_version[0] >= 1 and _SHARES_READ_ONLY
        if copy is False and not versioned:
            raise BufferError(
                f"{self.name}: read-only memory is shared with readers of DLPack 1.0 only, by NumPy 2.1 or later"
            )
        given: Any = self._values if versioned else self._values.copy()
        capsule = given.__dlpack__(max_version=max_version, copy=copy) if versioned else given.__dlpack__()
        if self.dtype == "bfloat16":
            place = _capsule_pointer(capsule, b"dltensor_versioned" if versioned else b"dltensor")
            ctypes.c_uint8.from_address(place + _CODE_AT + (_VERSIONED_AT if versioned else 0)).value = _BFLOAT
        return capsule

    def __repr__(self) -> str:
        return f"<tarn.Tensor {self.name}: {' x '.join(str(size) for size in self.shape)} {self.dtype}>"


class Parameters(Mapping[str, Weights]):
    """All weights of a model by name, shared ones once, in the order of the model:
    `parameters["encoder.R1.ffn.in.weight"]` is a read-only array. Weights stored in fp32 are views of the file, without
    a copy; bf16, int8 and int4 are widened; frozen weights not stored in the file are drawn on access, bit-identical to
    those of the model, and kept while the array exists. Arrays stay valid when the run is closed."""

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

    def tensor(self, name: str) -> Tensor:
        """The weights as the file has them, for `from_dlpack` of other libraries: in bf16 or int8 if they are stored
        so. They are read-only, which PyTorch is said to ignore: see `Tensor`."""
        place, found = self._place(name), c.tarn_checkpoint_stored()
        if not call("tarn_checkpoint_info_stored", self._handle, ctypes.byref(found), place):
            return Tensor(name, "float32", self[name], None)
        dtype, kind = _STORED[found.precision.decode()]
        shape = self._about[place].shape
        values: Any = np.asarray(_Mapped(self._handle, found.values, shape, kind))
        scales = np.asarray(_Mapped(self._handle, found.scales, shape[:1])) if found.scales else None
        return Tensor(name, dtype, values, scales)

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
