"""Checks of numbers and texts from callers against the types of the library.

ctypes lets integers wrap, accepts anything as a truth value and an integer as the address of a text, and the library
reads a text up to its first zero byte. This module refuses all of that: every assignment to a field of a structure and
every call of a function goes through it.
"""

from __future__ import annotations

import ctypes
import functools
import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import UsageError

Check = Callable[[str, Any], Any]


def whole(what: str, value: Any, least: int, most: int) -> int:
    """An integer in a range. `what` is the name of the argument, for messages."""
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{what}: a whole number is expected, not {value!r}") from None
    if number < least:
        raise UsageError(f"{what} {number}: a whole number from {least} on is expected")
    if number > most:
        raise UsageError(f"{what} {number}: a whole number up to {most} is expected")
    return number


def real(what: str, value: Any) -> float:
    """A number. NAN, which is in no range, is refused."""
    # In Python 3.9 and in NumPy complex numbers have a __float__ too.
    if isinstance(value, (bool, np.bool_, str, bytes, complex, np.complexfloating)) or not hasattr(value, "__float__"):
        raise TypeError(f"{what}: a number is expected, not {value!r}")
    try:
        number = float(value)
    except OverflowError:
        raise UsageError(f"{what}: the number is too large") from None
    if number != number:
        raise UsageError(f"{what}: a number is expected, not NAN")
    return number


def truth(what: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{what}: True or False is expected, not {value!r}")
    return bool(value)


def text(what: str, value: Any) -> bytes | None:
    """A text, which the library reads up to its zero byte."""
    if value is None:
        return None
    if not isinstance(value, bytes):
        raise TypeError(f"{what}: a text is expected, not {value!r}")
    if b"\0" in value:
        raise UsageError(f"{what}: a zero byte in {value!r}")
    return value


def bounds(kind: Any) -> tuple[int, int]:
    """The smallest and the largest integer of a type."""
    bits = 8 * ctypes.sizeof(kind)
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if kind(-1).value < 0 else (0, (1 << bits) - 1)


def _integer(kind: Any) -> Check:
    least, most = bounds(kind)
    return lambda what, value: value if isinstance(value, kind) else whole(what, value, least, most)


_SIGNED = (ctypes.c_int8, ctypes.c_int16, ctypes.c_int32, ctypes.c_int64, ctypes.c_int)
_UNSIGNED = (ctypes.c_uint8, ctypes.c_uint16, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_uint, ctypes.c_size_t)
_NUMBERS: dict[Any, Check] = {kind: _integer(kind) for kind in (*_SIGNED, *_UNSIGNED)}
_NUMBERS |= {ctypes.c_double: real, ctypes.c_float: real, ctypes.c_bool: truth}


def of_number(kind: Any) -> Check | None:
    """The check of an argument of this type, if it is numeric."""
    return _NUMBERS.get(kind)


@functools.cache
def _fields(structure: Any) -> dict[str, Check]:
    checks = {name: text if kind is ctypes.c_char_p else _NUMBERS.get(kind) for name, kind in structure._fields_}
    return {name: check for name, check in checks.items() if check is not None}


class Structure(ctypes.Structure):
    """A structure of the library, whose fields accept only values that their types can hold."""

    def __setattr__(self, name: str, value: Any) -> None:
        check = _fields(type(self)).get(name)
        super().__setattr__(name, value if check is None else check(name, value))


def integers(what: str, values: Iterable[Any]) -> NDArray[np.int32]:
    """Token ids in the library's format."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"{what}: a list of whole numbers is expected, not {values!r}")
    given = np.asarray(values if isinstance(values, np.ndarray) else list(values))
    least, most = bounds(ctypes.c_int32)
    if given.size == 0:
        return np.empty(0, np.int32)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        found: Any = given.tolist()
        given = np.array([whole(what, value, least, most) for value in (found if given.ndim == 1 else [found])])
    for extreme in (given.min(), given.max()):
        whole(what, extreme, least, most)
    return np.ascontiguousarray(given, np.int32)
