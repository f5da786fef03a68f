"""Weights given to other libraries by DLPack, as the array API standard says: shared or copied, in the file's own type."""

from __future__ import annotations

import ctypes
import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tarn
from tarn import _library

NAME = "decoder.layer1.ffn.in.weight"
FROZEN = "encoder.R1.ffn.in.weight"
SHARES = tuple(int(part) for part in np.__version__.split(".")[:2]) >= (2, 1)
CODES = {"float32": (2, 32), "bfloat16": (4, 16), "int8": (0, 8)}
sharing = pytest.mark.skipif(not SHARES, reason="NumPy 2.1 or later is not installed: it cannot mark memory as read-only")


class DLTensor(ctypes.Structure):
    """Written down from dlpack.h."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    ]


READ_ONLY, COPIED = 1, 2


def opened(capsule: Any, kind: Any, name: bytes) -> Any:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return kind.from_address(get(capsule, name))


def contents(tensor: DLTensor) -> bytes:
    """The bytes of a tensor without gaps."""
    shape, dims = [tensor.shape[i] for i in range(tensor.ndim)], tensor.ndim
    strides = [tensor.strides[i] for i in range(dims)] if tensor.strides else None
    expected = [int(np.prod(shape[i + 1 :])) for i in range(dims)]
    assert (tensor.device_type, tensor.device_id) == (1, 0) and strides in (None, expected)
    return ctypes.string_at(tensor.data + tensor.byte_offset, int(np.prod(shape)) * tensor.bits // 8)


@pytest.fixture(scope="module")
def files(trained: tarn.Trained, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The model in each type that a file may have."""
    folder = tmp_path_factory.mktemp("types")
    found = {"float32": trained.checkpoint}
    for word, dtype in (("bf16", "bfloat16"), ("int8", "int8")):
        found[dtype] = str(folder / word)
        _library.call(f"tarn_checkpoint_export_{word}", found[dtype].encode(), trained.checkpoint.encode())
    return found


def expected(tensor: tarn.Tensor, weights: Any) -> bytes:
    """What the type makes of the weights that the model computes with."""
    if tensor.dtype == "float32":
        return bytes(weights.tobytes())
    if tensor.dtype == "bfloat16":
        return bytes((weights.view(np.uint32) >> 16).astype(np.uint16).tobytes())
    assert tensor.scales is not None and tensor.scales.shape == tensor.shape[:1] and not tensor.scales.flags.writeable
    return bytes(np.rint(weights / tensor.scales[:, None]).astype(np.int8).tobytes())


@pytest.mark.parametrize("dtype", CODES)
def test_old_readers_get_a_copy(files: dict[str, str], dtype: str) -> None:
    with tarn.Run(files[dtype]) as run:
        tensor = run.tensor(NAME)
        assert (tensor.dtype, tensor.shape, tensor.__dlpack_device__()) == (dtype, run[NAME].shape, (1, 0))
        assert repr(tensor) == f"<tarn.Tensor {NAME}: 64 x 32 {dtype}>" and (tensor.scales is None) == (dtype != "int8")
        for options in ({}, {"copy": True}, {"max_version": (0, 8)}):
            capsule = tensor.__dlpack__(**options)
            one = opened(capsule, DLTensor, b"dltensor")
            assert (one.code, one.bits, one.lanes) == (*CODES[dtype], 1)
            assert contents(one) == expected(tensor, run[NAME]) and one.data != tensor._values.ctypes.data
        with pytest.raises(BufferError, match="read-only memory is shared with readers of DLPack 1.0 only"):
            tensor.__dlpack__(copy=False)
        with pytest.raises(BufferError, match="the weights are in the memory of the CPU"):
            tensor.__dlpack__(dl_device=(2, 0))
        assert contents(one) == expected(tensor, run[NAME])  # the copy is the capsule's own


@sharing
@pytest.mark.parametrize("dtype", CODES)
def test_new_readers_share_the_file(files: dict[str, str], dtype: str) -> None:
    with tarn.Run(files[dtype]) as run:
        tensor = run.tensor(NAME)
        for copy, flags in ((None, READ_ONLY), (False, READ_ONLY), (True, COPIED)):
            one = opened(capsule := tensor.__dlpack__(max_version=(1, 0), copy=copy), Versioned, b"dltensor_versioned")
            assert one.major == 1 and one.flags == flags
            assert (one.tensor.code, one.tensor.bits, one.tensor.lanes) == (*CODES[dtype], 1)
            assert (one.tensor.data == tensor._values.ctypes.data) == (copy is not True)
            assert contents(one.tensor) == expected(tensor, run[NAME])
            del capsule


def is_open(path: str) -> bool:
    gc.collect()
    _library.worker.call(lambda: None)
    return path in Path("/proc/self/maps").read_text()


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_numpy_reads_it(files: dict[str, str], dtype: str) -> None:
    """And the file stays open as long as its memory is used, and no longer."""
    with tarn.Run(files[dtype]) as run:
        tensor, weights = run.tensor(NAME), run[NAME].copy()
        found = np.from_dlpack(tensor)
        wide = found * tensor.scales[:, None] if tensor.scales is not None else found
        assert np.array_equal(wide, weights) and str(found.dtype) == dtype
        if SHARES:
            assert not found.flags.writeable and found.ctypes.data == tensor._values.ctypes.data
    del tensor, wide
    assert is_open(files[dtype]) == SHARES and np.any(found)
    del found
    assert not is_open(files[dtype])


def test_a_reader_that_fails_leaves_nothing(files: dict[str, str]) -> None:
    """NumPy has no bfloat16: it raises its own error, and lets go of the memory."""
    with tarn.Run(files["bfloat16"]) as run:
        tensor = run.tensor(NAME)
        with pytest.raises((BufferError, RuntimeError), match="(?i)dtype|type"):
            np.from_dlpack(tensor)
    del tensor
    assert not is_open(files["bfloat16"])


def test_frozen_weights_are_drawn(files: dict[str, str]) -> None:
    for path in files.values():
        with tarn.Run(path) as run:
            tensor = run.tensor(FROZEN)
            assert tensor.dtype == "float32" and np.array_equal(np.from_dlpack(tensor), run[FROZEN])
            with pytest.raises(tarn.UnknownNameError, match="did you mean"):
                run.tensor(FROZEN + "s")
