"""Loads libtarn.so and libtarn-lab.so, and calls them.

All computation runs on a thread of the package, the worker. For each calling thread the library keeps a thread pool and
the last error message, and it makes the thread flush denormal numbers to zero. With a single worker, the caller's
threads get no pools of their own, and their arithmetic does not change. A thread that waits for the worker releases the
global interpreter lock and receives interrupts at once.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import errno
import logging
import os
import queue
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar, Union

from . import _check, errors

try:
    from . import _binding as c
except ModuleNotFoundError:
    raise ImportError(f"tarn: {__file__} was not installed: its _binding.py is made with the library", name="tarn") from None

T = TypeVar("T")
# Aliases are computed, unlike annotations, and Python 3.9 has no `|` of types.
Text = Union[str, bytes]
PathLike = Union[str, os.PathLike[str]]

log = logging.getLogger("tarn")


def _where() -> Path:
    """The libtarn of the package, or the one named by TARN_LIBRARY; libtarn-lab is in the same folder."""
    named = os.environ.get("TARN_LIBRARY")
    if named:
        return Path(named)
    package = Path(__file__).parent
    bundled = sorted((package / "lib").glob("libtarn.so.*"))  # as packaging/bundle/pack.py places it for C programs too
    return bundled[0] if bundled else package / "libtarn.so"


def _open() -> Any:
    path = _where()
    if not path.exists():
        raise ImportError(
            f"tarn: the library {path} is missing; install the package anew, or name the library of this version "
            "in TARN_LIBRARY",
            name="tarn",
            path=str(path),
        )
    # As in the program: waiting threads spin only briefly. No effect if another package has already initialised OpenMP.
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "20000")
    try:
        library = ctypes.CDLL(str(path))
        library.tarn_version.restype = ctypes.c_char_p
    except (OSError, AttributeError) as error:
        raise ImportError(f"tarn: {path} cannot be used: {error}", name="tarn", path=str(path)) from None
    version = library.tarn_version().decode()
    if version != c.VERSION:
        raise ImportError(
            f"tarn: {path} is version {version}, and this package is for version {c.VERSION}",
            name="tarn",
            path=str(path),
        )
    lab = path.with_name(path.name.replace("libtarn", "libtarn-lab", 1))
    try:
        library = ctypes.CDLL(str(lab))  # also resolves the functions of libtarn, in the file that is already open
    except OSError as error:
        raise ImportError(f"tarn: {lab} cannot be used: {error}", name="tarn", path=str(lab)) from None
    try:
        for name, (result, arguments) in c.FUNCTIONS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
            if name in c.CHECKED:
                function.errcheck = _raise
            checks = [(i, c.NAMES[name][i], _check.of_number(kind)) for i, kind in enumerate(arguments)]
            setattr(library, name, _checked(function, [(i, word, check) for i, word, check in checks if check]))
    except AttributeError as error:
        raise ImportError(f"tarn: {path} is another build of version {version}: {error}", name="tarn") from None
    return library


def _checked(function: Any, checks: list[tuple[int, str, _check.Check]]) -> Any:
    """The function with its numeric arguments checked before the call."""

    def checked(*arguments: Any) -> Any:
        given = list(arguments)
        for i, word, check in checks:
            given[i] = check(word, given[i])
        return function(*given)

    return checked if checks else function


def _failures() -> dict[int, type[errors.TarnError]]:
    return {
        c.TARN_STATUS_USAGE: errors.UsageError,
        c.TARN_STATUS_DATA: errors.DataError,
        c.TARN_STATUS_IO: errors.FileError,
        c.TARN_STATUS_MEMORY: errors.OutOfMemoryError,
        c.TARN_STATUS_NUMERIC: errors.NumericError,
        c.TARN_STATUS_BUSY: errors.BusyError,
        c.TARN_STATUS_INTERRUPTED: errors.StoppedError,
        c.TARN_STATUS_UNSUPPORTED: errors.UnsupportedError,
    }


def _raise(status: int, function: Any, arguments: Any) -> int:
    """Raises the library's last error on this thread."""
    if status != c.TARN_STATUS_OK:
        line = _told(lib.tarn_error_message().decode("utf-8", "replace"))
        if status == c.TARN_STATUS_IO:
            raise _refused(line)
        raise _failures().get(status, errors.InternalError)(line)
    return status


# Temporary files, and what they stand for in messages, which is what the caller knows: "text" and its rows.
renamed: dict[str, str] = {}


def _told(line: str) -> str:
    for path, name in [*renamed.items()]:
        line = re.sub(re.escape(path) + r"(?::(\d+))?", lambda at: f"{name}: row {at[1]}" if at[1] else name, line)
    return line


def _refused(line: str) -> errors.FileError:
    """The error for a refusal of the operating system. The message ends with the reason, in the words of this process,
    unless it is one of the library's own."""
    reasons = {os.strerror(number): number for number in errno.errorcode}
    number = errno.ENOENT if ": there is no such file" in line else reasons.get(line.rpartition(": ")[2])
    if number == errno.ENOENT:
        return errors.NotFoundError(line)
    failure = errors.FileError(line)
    failure.errno = number
    return failure


class _Job:
    """One call for the worker: its result or its failure, and whether it is finished."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work
        self.done = threading.Event()
        self.result: Any = None
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            self.result = self.work()
        except BaseException as failure:  # the caller's thread raises it
            self.failure = failure
        self.done.set()

    def wait(self) -> Any:
        self.done.wait()
        if self.failure is not None:
            raise self.failure
        return self.result


class Worker:
    """The thread that computes, and its queue of jobs."""

    def __init__(self) -> None:
        self.jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self.thread: threading.Thread | None = None
        self.starting = threading.Lock()
        self.threads = 0  # of the training in progress: whatever is opened meanwhile uses the same number
        self.training = False

    def submit(self, work: Callable[[], Any]) -> _Job:
        job = _Job(work)
        with self.starting:
            if self.thread is None:
                self.thread = threading.Thread(target=self._loop, name="tarn", daemon=True)
                self.thread.start()
        self.jobs.put(job)
        return job

    def call(self, work: Callable[[], T]) -> T:
        """Does the work on the worker and waits for it. An interrupt is raised here at once; the work continues to its
        end, and later calls wait for that."""
        if threading.current_thread() is self.thread:
            return work()
        result: T = self.submit(work).wait()
        return result

    def serve_until(self, done: threading.Event) -> None:
        """On the worker, while a training waits for its callback: runs jobs of other threads. The caller that sets
        `done` appends a job to wake it."""
        while not done.is_set():
            self.jobs.get().run()

    def _loop(self) -> None:
        while True:
            self.jobs.get().run()


worker = Worker()


def _forget_worker() -> None:
    """A forked process has only the thread that forked."""
    worker.__init__()  # type: ignore[misc]


os.register_at_fork(after_in_child=_forget_worker)


def call(name: str, *arguments: Any) -> Any:
    """Calls a function of the library on the worker. The call holds its handles and dereferences them there, so closing
    one meanwhile happens before or after the call."""

    def work() -> Any:
        return getattr(lib, name)(*(one.pointer if isinstance(one, Handle) else one for one in arguments))

    return worker.call(work)


@contextlib.contextmanager
def temporary_folder() -> Iterator[str]:
    """A folder that the worker removes: a call that was interrupted may still write into it."""
    folder = tempfile.mkdtemp(prefix="tarn-")

    def remove() -> None:
        atexit.unregister(remove)
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)  # if the worker does not come to it
    try:
        yield folder
    except Exception:
        worker.call(remove)
        raise
    except BaseException:  # an interrupt, which does not wait
        worker.submit(remove)
        raise
    worker.call(remove)


def pool(threads: int) -> int:
    """The number of threads for opening an object."""
    if not worker.training or threads in (0, worker.threads):
        return worker.threads if worker.training else threads
    raise errors.UsageError(f"threads {threads}: a training is under way, and computes with {worker.threads or 'all'}")


def path_bytes(path: PathLike, what: str = "a path") -> bytes:
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"{what} is expected, not {path!r}")
    found = os.fsencode(os.fspath(path))
    if b"\0" in found:
        raise errors.UsageError(f"{path!r}: a zero byte in a path")
    return found


def paths(files: Iterable[PathLike] | PathLike, what: str) -> list[bytes]:
    """The files of a call. A single path is refused, since its characters would be taken as files."""
    if isinstance(files, (str, bytes, os.PathLike)) or not isinstance(files, Iterable):
        raise TypeError(f"{what}: a list of paths is expected, not {files!r}")
    return [path_bytes(path) for path in files]


def word_bytes(what: str, word: str) -> bytes:
    """A name or another short text from the caller."""
    if not isinstance(word, str):
        raise TypeError(f"{what}: a text is expected, not {word!r}")
    found = word.encode("utf-8", "surrogateescape")
    if b"\0" in found:
        raise errors.UsageError(f"{what}: a zero byte in {word!r}")
    return found


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word nearest to a misspelt one, if any is near enough."""
    items, _, count = strings(one.encode("utf-8", "replace") for one in known)
    found = lib.tarn_text_nearest(word.encode("utf-8", "replace"), items, count)
    return str(found.decode()) if found else None


def unknown(what: str, word: object, known: Iterable[str]) -> errors.UnknownNameError:
    """The error for an unknown name."""
    names = [*known]
    near = nearest(word, names) if isinstance(word, str) else None
    some = ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
    meant = f'did you mean "{near}"?' if near else f"there are {some or 'none'}"
    return errors.UnknownNameError(f"{what} {word!r}: {meant}")


def no_text(where: str, error: UnicodeEncodeError) -> errors.UsageError:
    return errors.UsageError(f"{where}: a character that is no Unicode text: {error.reason}")


def text_bytes(text: Text, what: str, number: int) -> bytes:
    if isinstance(text, str):
        try:
            return text.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError as error:
            raise no_text(f"{what}: number {number}", error) from None
    if isinstance(text, bytes):
        return text
    raise TypeError(f"{what}: a list of texts (str or bytes) is expected; number {number} of it is {text!r}")


def strings(values: Iterable[bytes]) -> tuple[Any, Any, int]:
    """An array of C strings, their lengths in bytes, and their number."""
    lines = list(values)
    return (ctypes.c_char_p * len(lines))(*lines), (ctypes.c_size_t * len(lines))(*map(len, lines)), len(lines)


def texts(lines: Sequence[Text] | Text, what: str) -> list[bytes]:
    """The lines of a call as bytes. A single string is refused, since its characters would be taken as lines."""
    if isinstance(lines, (str, bytes)):
        raise TypeError(f"{what}: a list of texts is expected, not one text: [{lines!r}]")
    if not isinstance(lines, Iterable):
        raise TypeError(f"{what}: a list of texts (str or bytes) is expected, not {lines!r}")
    return [text_bytes(line, what, i + 1) for i, line in enumerate(lines)]


def fill(options: Any, given: dict[str, Any]) -> None:
    """Sets the given fields of a structure; None means the default."""
    for name, value in given.items():
        if value is not None:
            setattr(options, name, value)


def words(prefix: str, names: Sequence[str] = ()) -> list[str]:
    """The words of an enumeration of the library, in the order of their values: those of the constants with this
    prefix, or of `names`."""
    names = names or [name[len(prefix) :] for name in vars(c) if name.startswith(prefix) and not name.endswith("_COUNT")]
    ordered = sorted(names, key=lambda name: int(getattr(c, prefix + name)))
    return [name.lower().replace("_", "-") for name in ordered]


def choice(what: str, word: str, words: Sequence[str]) -> int:
    """The value of a word in an enumeration, whose words are in the order of their values."""
    if word not in words:
        raise errors.UsageError(f'{what} "{word}": one of {", ".join(words)} is expected')
    return list(words).index(word)


class _Out:
    """The output argument of a function that opens an object. It holds the handle, and the call holds it: an object
    opened for a caller that was interrupted meanwhile is closed with the handle."""

    def __init__(self, handle: Handle, place: Any) -> None:
        self.handle = handle
        self._as_parameter_ = place


class Handle:
    """An object of the library, closed when it is no longer used. Code that uses `pointer` must hold the handle.
    `closed` is the error message for use after close."""

    def __init__(self, kind: Any, close: str, closed: str = "this is closed") -> None:
        self._pointer = ctypes.POINTER(kind)()
        self._close = close
        self._closed = closed

    def __bool__(self) -> bool:
        """Whether it is open."""
        return bool(self._pointer)

    @property
    def pointer(self) -> Any:
        if not self._pointer:
            raise errors.UsageError(self._closed)
        return self._pointer

    def out(self) -> Any:
        return _Out(self, ctypes.byref(self._pointer))

    def close(self) -> None:
        if self._pointer:
            pointer, self._pointer = self._pointer, type(self._pointer)()
            call(self._close, ctypes.byref(pointer))

    def __del__(self) -> None:
        # Called by the garbage collector, on any thread: must not wait.
        if getattr(self, "_pointer", None):
            pointer, name = self._pointer, self._close
            worker.jobs.put(_Job(lambda: getattr(lib, name)(ctypes.byref(pointer))))


def _hear(user: Any, level: int, text: bytes) -> None:
    levels = {c.TARN_LOG_INFO: logging.INFO, c.TARN_LOG_WARNING: logging.WARNING}
    log.log(levels.get(level, logging.ERROR), "%s", _told(text.decode("utf-8", "replace")))


def _end() -> None:
    """The other ranks must not wait for a process that could not join them. The launcher may kill this one
    meanwhile."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            if stream is not None:
                stream.flush()
    lib.tarn_ranks_abandon()


lib = _open()
atexit.register(_end)
_heard = c.tarn_log_fn(_hear)
lib.tarn_log_set(_heard, None)


def version() -> str:
    """The version of the library."""
    return str(lib.tarn_version().decode())


def build_info() -> str:
    """Version, build, instruction set, threads and libraries, one line each, for bug reports."""
    return str(worker.call(lambda: lib.tarn_version_text().decode()))
