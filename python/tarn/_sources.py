"""Texts and labelled rows from iterables, frames and data sets, as temporary files for the library.

They are written row by row, so memory does not grow with them, and a row is a line, so that a message of the library
about a line is one about a row.
"""

from __future__ import annotations

import os
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Any, BinaryIO, Union

import numpy as np

from ._library import PathLike, Text, no_text, path_bytes, renamed, temporary_folder, unknown
from .errors import UsageError

Texts = Union[PathLike, Iterable[Text]]  # a path, or the lines themselves
Row = Union[Mapping[str, Any], tuple[Any, ...], list[Any]]


def is_path(given: object) -> bool:
    return isinstance(given, (str, os.PathLike))


def _shown(value: Any) -> str:
    return reprlib.repr(value)


def _line(text: Any, where: Callable[[], str]) -> bytes:
    """A text as a line without its end, which a row may have, as those of an open file do."""
    if isinstance(text, str):
        try:
            line = text.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError as error:
            raise no_text(where(), error) from None
    elif isinstance(text, bytes):
        line = text
    else:
        column = "; of a data set give a column" if isinstance(text, Mapping) else ""
        raise TypeError(f"{where()}: a text (str or bytes) is expected, not {_shown(text)}{column}")
    line = line.removesuffix(b"\n")
    if b"\n" in line:
        raise UsageError(f"{where()}: a text of several lines; give one row for each, or replace their ends by spaces")
    return line


def _is_frame(given: Any) -> bool:
    """Whether it is a frame of pandas or polars, whose own iteration is not over its rows."""
    return hasattr(given, "itertuples") or hasattr(given, "iter_rows")


def _rows(given: Any, what: str, kind: str) -> Iterable[Any]:
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise TypeError(f"{what}: {kind} are expected, not {_shown(given)}")
    frame: Any = given
    if hasattr(given, "itertuples"):
        return frame.itertuples(index=False, name=None)  # type: ignore[no-any-return]
    return frame.iter_rows() if hasattr(given, "iter_rows") else frame  # type: ignore[no-any-return]


class Sources:
    """The temporary files of one call; messages about them name the argument, and the row in place of the line."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._folder: str | None = None
        self._paths: list[str] = []

    def __enter__(self) -> Sources:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        for path in self._paths:
            renamed.pop(path, None)
        self._stack.__exit__(kind, failure, trace)

    def _open(self, what: str) -> BinaryIO:
        if self._folder is None:
            self._folder = self._stack.enter_context(temporary_folder())
        path = os.path.join(self._folder, what)
        renamed[path] = what
        self._paths.append(path)
        return open(path, "wb")

    def lines(self, what: str, given: Texts) -> bytes:
        """The path of a file of these lines; a path is returned unchanged."""
        if isinstance(given, (str, os.PathLike)):
            return path_bytes(given)
        rows = _rows(given, what, "a path, or texts")
        if _is_frame(given):
            raise TypeError(f"{what}: one column of texts is expected, not a frame")
        with self._open(what) as file:
            for number, text in enumerate(rows, 1):
                file.write(_line(text, lambda: f"{what}: row {number}") + b"\n")  # noqa: B023 - called at once
        return os.fsencode(file.name)

    def pairs(self, given: Iterable[tuple[Text, Text]]) -> tuple[bytes, bytes]:
        """The paths of two files, of the first and the second texts."""
        with self._open("source") as source, self._open("target") as target:
            for number, row in enumerate(_rows(given, "pairs", "pairs of texts"), 1):
                if isinstance(row, (str, bytes, Mapping)) or not isinstance(row, Iterable) or len(pair := [*row]) != 2:
                    raise TypeError(f"pairs: row {number}: two texts are expected, not {_shown(row)}")
                for text, file, name in zip(pair, (source, target), ("source", "target")):
                    line = _line(text, lambda: f"pairs: row {number}, {name}")  # noqa: B023 - called at once
                    file.write(line + b"\n")
        return os.fsencode(source.name), os.fsencode(target.name)

    def table(self, given: Any, columns: list[str], take: Callable[[int, Any, str], Text]) -> bytes:
        """The path of a table with these columns of the rows, in their order, divided by commas. `take` makes a field
        from a value: of the column with this place in `columns`, with the place of the row for messages."""
        with self._open("table") as file:
            for number, row in enumerate(_fields(given, columns), 1):
                fields = []
                for i, value in enumerate(row):
                    where = f"table: row {number}, {columns[i]}"
                    line = _line(take(i, value, where), lambda: where)  # noqa: B023 - called at once
                    fields.append(b'"' + line.replace(b'"', b'""') + b'"')
                file.write(b",".join(fields) + b"\n")
        return os.fsencode(file.name)


def _fields(given: Any, columns: list[str]) -> Iterator[list[Any]]:
    """Of each row, the values of the columns: by name, or by number from 1."""
    if _is_frame(given):
        names, kept = [*given.columns], [*dict.fromkeys(columns)]
        for column in kept:
            if column not in names:
                raise unknown("column", column, map(str, names))
            if names.count(column) > 1:
                raise UsageError(f"table: {names.count(column)} columns have the name {column!r}")
        given = given[kept]
        columns = [str(kept.index(column) + 1) for column in columns]
    for number, row in enumerate(_rows(given, "table", "a path, or rows"), 1):
        if isinstance(row, Mapping):
            for column in columns:
                if column not in row:
                    raise UsageError(f"table: row {number}: {unknown('column', column, map(str, row))}")
            yield [row[column] for column in columns]
        elif isinstance(row, Iterable) and not isinstance(row, (str, bytes)):
            values = [*row]
            for column in columns:
                if not column.isdigit() or not 1 <= int(column) <= len(values):
                    raise UsageError(f"table: row {number}: column {column!r}: its {len(values)} columns have numbers")
            yield [values[int(column) - 1] for column in columns]
        else:
            raise TypeError(f"table: row {number}: a tuple or a dictionary is expected, not {_shown(row)}")


def _is_missing(value: Any) -> bool:
    if isinstance(value, (float, np.floating)):
        return bool(np.isnan(value))
    return value is None or type(value).__name__ in ("NAType", "NaTType")  # of pandas


def class_name(value: Any, where: str) -> Text:
    """A label as the name of a class: a text, a number, or a truth value."""
    if _is_missing(value):
        raise TypeError(f"{where}: a label is expected, not {value!r}")
    return value if isinstance(value, (str, bytes)) else str(value)


def number(value: Any, where: str) -> Text:
    """A label as a number that the library reads as the same one."""
    try:
        if _is_missing(value):
            raise TypeError
        return repr(float(value))
    except OverflowError:
        raise UsageError(f"{where}: the number is too large") from None
    except (TypeError, ValueError):
        raise TypeError(f"{where}: a number is expected, not {_shown(value)}") from None


def joined(values: Any, where: str, one: Callable[[Any, str], Text]) -> Text:
    """Words, or the labels of words, as the library reads them: divided by white space. A text is taken as it is."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        return one(values, where)
    words = []
    for value in values:
        word = _line(one(value, where), lambda: where)
        if len(word.split()) != 1:  # of bytes, where blanks are those of ASCII, as in the library
            raise UsageError(f"{where}: one word is expected, not {value!r}")
        words.append(word)
    return b" ".join(words)
