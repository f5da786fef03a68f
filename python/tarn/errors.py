"""Errors of the library as exceptions with its one-line message."""

from __future__ import annotations

import errno


class TarnError(Exception):
    """A failure of the library; the text is the one-line message that the program would print."""


class UsageError(TarnError, ValueError):
    """An option or a description is not valid."""


class UnknownNameError(UsageError, KeyError):
    """There is nothing with that name; the message gives the nearest one."""

    __str__ = Exception.__str__  # KeyError would quote it


class DataError(TarnError, ValueError):
    """An input file is malformed or damaged, or does not fit the model."""


class FileError(TarnError, OSError):
    """The operating system refused to read or write."""


class NotFoundError(FileError, FileNotFoundError):
    """There is no file or run with that name."""

    def __init__(self, line: str) -> None:
        super().__init__(line)
        self.errno = errno.ENOENT


class OutOfMemoryError(TarnError, MemoryError):
    """There is not enough memory."""


class NumericError(TarnError, ArithmeticError):
    """A result is not a finite number."""


class BusyError(TarnError):
    """Another process uses the same run directory."""


class StoppedError(TarnError):
    """Stopped by request; the work done so far is saved."""


class UnsupportedError(TarnError, NotImplementedError):
    """This build or this machine cannot do it."""


class InternalError(TarnError, RuntimeError):
    """A defect in tarn itself."""
