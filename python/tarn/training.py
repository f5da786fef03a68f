"""Training from a description: a YAML file, or an equivalent dictionary (docs/training.md)."""

from __future__ import annotations

import ctypes
import json
import math
import os
import queue
import re
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from . import _binding as c
from . import _html
from ._check import truth
from ._library import Handle, PathLike, call, fill, lib, path_bytes, strings, words, worker
from ._progress import Progress
from ._progress import progress as displayed
from .errors import BusyError, NotFoundError, StoppedError, TarnError, UsageError
from .results import Scores, results
from .run import Run, find_checkpoint

EVENTS = words("TARN_TRAIN_EVENT_")
ENDS = words("TARN_TRAIN_END_")


@dataclass(frozen=True)
class Event:
    """An event of a training. Unknown numbers are NAN."""

    kind: str  # "update", "log" (means since the previous line), "valid", "freeze", "saved", "dynamics"
    update: int  # optimiser steps done
    epoch: float  # passes over the data done
    seconds: float  # training time so far, without validation and saving
    seconds_left: float  # estimated
    loss: float  # per target token, natural logarithm, with label smoothing
    nll: float  # the same without it
    lr: float
    grad_norm: float  # before clipping
    tokens_per_second: float
    scores: Scores = field(default_factory=Scores)  # of a validation, by measure
    set: str | None = None  # the scored set; None: the validation data
    best: bool = False  # the best validation so far
    path: str | None = None  # of the saved or validated checkpoint
    layers: str | None = None  # the frozen ones
    line: str | None = None  # of the log: JSON
    values: dict[str, float] = field(default_factory=dict)  # "dynamics": exponents of the model, by name


@dataclass(frozen=True)
class Trained:
    """The result of a training. `end` is the limit that was reached: "updates", "epochs", "minutes", "patience", "pass"
    for a regression in closed form, or "stopped" by the callback; a stopped training is resumed with
    `train(resume=True)`."""

    run: str
    end: str
    update: int
    epoch: float
    seconds: float
    tokens_per_second: float
    scores: Scores  # of the last validation, by measure
    best_update: int  # of the best validation; 0: none
    best: float  # its value of valid.metric
    peak_bytes: int  # peak memory of the process; 0 if stopped
    checkpoint: str  # the one used by `open()`

    def open(self, *, threads: int = 0) -> Run:
        """Opens the model for use."""
        return Run(self.run, threads=threads)

    def _repr_html_(self) -> str:
        scores = [(f"valid/{name}", value) for name, value in self.scores.items()]
        pairs = [
            ("ended by", self.end),
            ("updates", self.update),
            ("epochs", self.epoch),
            ("seconds", self.seconds),
            ("tokens/s", self.tokens_per_second),
            *scores,
            ("best at update", self.best_update or None),
            ("checkpoint", self.checkpoint),
        ]
        return _html.facts(self.run, pairs) + self._curves()

    def _curves(self) -> str:
        """Of the losses in the log, small; a comparison has the pictures of a report."""
        try:
            points = results(self.run).curves()
        except TarnError:  # the folder is gone, and what is shown is what is known of it
            return ""
        found = []
        for name in ("train/loss", "valid/loss"):
            picture = _html.curve([(row["step"], row["value"]) for row in points if row["name"] == name])
            found.append(f"<div>{name} {picture}</div>" if picture else "")
        return "".join(found)


Callback = Callable[[Event], object]


def _measures() -> list[str]:
    return [lib.tarn_measure_of(i).contents.word.decode() for i in range(lib.tarn_measure_count())]


def _known_scores(scores: Any) -> Scores:
    return Scores({word: scores[i] for i, word in enumerate(_measures()) if not math.isnan(scores[i])})


def _word(text: bytes | None) -> str | None:
    return text.decode("utf-8", "replace") if text is not None else None


def _event(event: Any) -> Event:
    return Event(
        kind=EVENTS[event.kind],
        update=event.update,
        epoch=event.epoch,
        seconds=event.seconds,
        seconds_left=event.seconds_left if event.seconds_left >= 0 else math.nan,
        loss=event.loss,
        nll=event.nll,
        lr=event.lr,
        grad_norm=event.grad_norm,
        tokens_per_second=event.tokens_per_second,
        scores=_known_scores(event.scores) if event.scores else Scores(),
        set=_word(event.set),
        best=event.best,
        path=_word(event.path),
        layers=_word(event.layers),
        line=_word(event.line),
        values={event.values[i].name.decode(): event.values[i].value for i in range(event.value_count)},
    )


def _yaml(value: Any, key: str) -> str:
    """A value as YAML for a description. JSON is YAML, except for numbers that are not finite."""
    if isinstance(value, Mapping):
        entries = ((json.dumps(str(name), ensure_ascii=False), _yaml(item, f"{key}.{name}")) for name, item in value.items())
        return "{" + ", ".join(f"{name}: {item}" for name, item in entries) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_yaml(item, key) for item in value) + "]"
    if hasattr(value, "item"):  # a number or truth value of NumPy
        value = value.item()
    if value is None:  # as if the key were missing
        return "null"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (str, os.PathLike)):
        return json.dumps(os.fspath(value), ensure_ascii=False)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    raise UsageError(f"{key}: {value!r} has no place in a description")


def to_yaml(description: Mapping[str, Any]) -> str:
    """A description as YAML, with one line for each top-level section or key."""
    return "".join(f"{key}: {_yaml(value, str(key))}\n" for key, value in description.items())


def _flat(changes: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Overrides in the form of the program's --set, from {"train": {"lr": 0.1}} or {"train.lr": 0.1}."""
    for key, value in changes.items():
        if isinstance(value, Mapping) and "." not in key:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}={_yaml(value, prefix + key)}"


class _Source:
    """A description as a file for the library. For a dictionary, and for overrides, messages name the key, which the
    caller knows, instead of a temporary file and a line."""

    def __init__(self, overrides: Mapping[str, Any]) -> None:
        self.overrides = [*_flat(overrides)]
        self.path: bytes | None = None
        self._file = ""  # for a dictionary
        self._keys: list[str] = []  # of each line of that file

    def _lines(self, value: Mapping[str, Any], prefix: str) -> Iterator[str]:
        """Flow style, because then the map around all keys has its own line, and so has each key."""
        for key, item in value.items():
            path = f"{prefix}{key}"
            self._keys.append(path)
            name = json.dumps(str(key), ensure_ascii=False)
            if isinstance(item, Mapping) and item:
                yield f"{name}: {{"
                yield from self._lines(item, f"{path}.")
                self._keys.append(path)
                yield "},"
            else:
                yield f"{name}: {_yaml(item, path)},"

    @contextmanager
    def open(self, description: PathLike | Mapping[str, Any] | None) -> Iterator[None]:
        """Within this context `path` is that of the file, and error messages are adapted."""
        with ExitStack() as stack:
            if isinstance(description, Mapping):
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="tarn-"))
                self._file = os.path.join(folder, "description.yaml")
                self._keys = [""]
                text = "".join(f"{line}\n" for line in ["{", *self._lines(description, ""), "}"])
                with open(self._file, "w", encoding="utf-8", errors="surrogateescape") as file:
                    file.write(text)
            if description is not None:
                named: Any = self._file or description
                self.path = path_bytes(named, "description: a path or a dictionary")
            try:
                yield
            except TarnError as failure:
                failure.args = (self._told(str(failure)),)
                raise

    def _told(self, line: str) -> str:
        for override in self.overrides:
            shown = override.encode()[:96].decode("utf-8", "ignore") + ("..." if len(override.encode()) > 96 else "")
            if line.startswith(f"--set {shown}: "):
                return _by_key(override.partition("=")[0], line[len(f"--set {shown}: ") :])
        if not self._file:
            return line
        found = re.match(re.escape(self._file) + r"(?::(\d+))?: ", line)
        if found is None:
            return line.replace(self._file, "the description")
        number = int(found[1] or 0)
        return _by_key(self._keys[number - 1] if 0 < number <= len(self._keys) else "", line[found.end() :])


def _by_key(key: str, rest: str) -> str:
    """A message that begins with a key; most name the exact one themselves: "train.lr: ...", "data.train is ..."."""
    named = re.match(r"\w+: |\w+\.[\w.]+(: | is )", rest)
    return rest if named else f"{key or 'the description'}: {rest}"


class _Session:
    """A training on the worker, with its callback on the calling thread."""

    def __init__(self, callback: Callback | None, shown: Progress | None) -> None:
        self.callback = callback
        self.shown = shown
        self.stop = ctypes.c_int(0)
        self.events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()  # None: the training is over
        self.last: Event | None = None
        self.rate = 0.0  # tokens per second, of the last event that has it
        self.stopped = False  # by the callback
        self.answered = threading.Event()  # the callback has returned
        self.fault: BaseException | None = None
        fields: Any = c.tarn_train_options._fields_
        self.on_event = dict(fields)["on_event"](self._tell)

    def _tell(self, user: Any, event: Any) -> None:
        """Called on the worker. The callback may use models meanwhile."""
        try:
            self.last = _event(event.contents)
            self.rate = self.last.tokens_per_second or self.rate
            wanted = self.callback is not None or (self.shown is not None and self.shown.wants(self.last))
            if wanted and not self.stop.value:
                self.answered.clear()
                self.events.put(self.last)
                worker.serve_until(self.answered)
        except BaseException as fault:  # ctypes would print and ignore it
            self.fault = fault
            self.stop.value = 1

    def _answer(self) -> None:
        self.answered.set()
        worker.submit(lambda: None)  # wakes the worker

    def _next(self) -> Event | None:
        while True:
            try:
                return self.events.get(timeout=0.25)
            except queue.Empty:  # a signal just before the wait would not end it
                continue

    def _follow(self) -> None:
        while (event := self._next()) is not None:
            if self.shown is not None and not self.stop.value:
                self.shown.tell(event)
            if self.callback is not None and not self.stop.value and self.callback(event) is True:
                self.stopped = True
                self.stop.value = 1
            self._answer()

    def run(self, options: Any) -> Trained:
        """Trains. An exception from the callback or an interrupt stops the training, which saves its state; then it is
        raised again."""
        job = worker.submit(lambda: self._train(options))
        failure: BaseException | None = None
        while True:
            try:
                self._follow()
                break
            except BaseException as raised:
                self.stop.value = 1
                failure = failure or raised
                self._answer()  # an interrupt may arrive before the callback is called
        failure = failure or self.fault
        try:
            if self.shown is not None:
                self.shown.end(finished=failure is None and not self.stopped)
        except BaseException as problem:  # must not hide why the training ended, and the training is waited for
            failure = failure or problem
        if failure is not None:
            try:
                job.wait()
            except StoppedError:
                pass
            except Exception as problem:  # the reason why saving failed
                raise failure from problem
            raise failure
        result: Trained = job.wait()
        return result

    def _train(self, options: Any) -> Trained:
        train = Handle(c.tarn_train, "tarn_train_close")
        try:
            if worker.training:
                raise BusyError("a training is under way in this process")
            lib.tarn_train_open(train.out(), ctypes.byref(options))
            worker.threads, worker.training = options.threads, True
            result = c.tarn_train_result()
            try:
                lib.tarn_train_run(train.pointer, ctypes.byref(result))
            except StoppedError:
                if not self.stopped:
                    raise
                return self._stopped(options)
            return self._ended(options, result)
        finally:
            if train:
                worker.threads, worker.training = 0, False
            train.close()
            self.events.put(None)

    def _stopped(self, options: Any) -> Trained:
        last = self.last
        assert last is not None
        return Trained(
            run=os.fsdecode(options.run),
            end="stopped",
            update=last.update,
            epoch=last.epoch,
            seconds=last.seconds,
            tokens_per_second=self.rate,
            scores=Scores(),
            best_update=0,
            best=math.nan,
            peak_bytes=0,
            checkpoint=find_checkpoint(options.run, "auto")[0],
        )

    def _ended(self, options: Any, result: Any) -> Trained:
        return Trained(
            run=os.fsdecode(options.run),
            end=ENDS[result.end],
            update=result.update,
            epoch=result.epoch,
            seconds=result.seconds,
            tokens_per_second=result.tokens_per_second,
            scores=_known_scores(result.scores),
            best_update=result.best_update,
            best=result.best if result.best_update > 0 else math.nan,
            peak_bytes=result.peak_bytes,
            checkpoint=os.fsdecode(result.checkpoint),
        )


def train_seeds(
    description: PathLike | Mapping[str, Any] | None,
    run: PathLike,
    *,
    overrides: Mapping[str, Any] | None = None,
    callback: Callback | None = None,
    resume: bool = False,
    accept_log: bool = False,
    threads: int = 0,
    progress: bool | None = None,
) -> list[Trained]:
    """Like `train`, for a description with train.seeds: one training after another, in RUN/seed-N. If the callback
    stops one, the later ones do not run."""
    if (description is None) != truth("resume", resume):
        raise UsageError("train: a description is expected, or resume=True without one")
    if callback is not None and not callable(callback):
        raise TypeError(f"callback: a function is expected, not {callback!r}")
    if progress is not None:
        truth("progress", progress)
    if overrides is not None and not isinstance(overrides, Mapping):
        raise TypeError(f"overrides: a dictionary is expected, not {overrides!r}")
    if resume and not os.path.exists(path_bytes(run)):
        raise NotFoundError(f"{os.fsdecode(run)}: no run to resume: there is no such folder")
    source = _Source(overrides or {})
    with source.open(description):
        options = c.tarn_train_options()
        lib.tarn_train_default(ctypes.byref(options))
        lib.tarn_dynamics_follow(ctypes.byref(options))
        changes, _, count = strings(change.encode() for change in source.overrides)
        fill(options, {"config": source.path, "run": path_bytes(run), "resume": resume, "accept_log": accept_log})
        options.overrides, options.override_count, options.threads = changes, count, threads
        runs = Handle(c.tarn_train_list, "tarn_train_list_close")
        call("tarn_train_list_open", runs.out(), ctypes.byref(options))
        found = []
        try:
            for i in range(runs.pointer.contents.count):
                one = runs.pointer.contents.runs[i]
                session = _Session(callback, displayed(os.fsdecode(one.run), progress))
                one.on_event = session.on_event
                one.stop = ctypes.pointer(session.stop)
                found.append(session.run(one))
                if session.stopped:
                    break
        finally:
            runs.close()
        return found


def train(
    description: PathLike | Mapping[str, Any] | None,
    run: PathLike,
    *,
    overrides: Mapping[str, Any] | None = None,
    callback: Callback | None = None,
    resume: bool = False,
    accept_log: bool = False,
    threads: int = 0,
    progress: bool | None = None,
) -> Trained:
    """Trains a model into the run directory `run` until a limit of its description is reached.

    `description`: the path of a YAML file, or an equivalent dictionary; None with `resume`, which continues from the
    last checkpoint. `overrides`: {"train.lr": 0.001} or {"train": {"lr": 0.001}}. `callback` is called with an `Event`
    after every update, line of the log, validation and checkpoint, on the thread that called `train`; if it returns
    True, the training saves its state and ends. After an interrupt (Ctrl-C, or the stop button of a notebook) or an
    exception in the callback, the current update or validation is completed, the state is saved, and the exception is
    raised again; resume=True continues, with the same bits as without the interruption. The callback may use models,
    with the number of threads of the training.

    A notebook shows the progress, with the curve of the loss, and a terminal a line of it; `progress` False shows
    nothing anywhere, True the line even where the output is no terminal."""
    given: dict[str, Any] = {"callback": callback, "resume": resume, "accept_log": accept_log, "threads": threads}
    given["progress"] = progress
    found = train_seeds(description, run, overrides=overrides, **given)
    if len(found) != 1:
        raise UsageError(f"{os.fsdecode(run)}: train.seeds makes {len(found)} runs: call train_seeds()")
    return found[0]
