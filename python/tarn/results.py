"""Runs, their curves, comparisons over seeds and verdicts (docs/experiments.md), as tables."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

import numpy as np

from . import _binding as c
from ._library import Handle, PathLike, call, existing, fill, lib, nearest, strings, words
from .errors import UsageError

if TYPE_CHECKING:
    import pandas

Row = dict[str, Any]


def spelled(name: str, names: Iterable[str], what: str) -> str:
    """That of the names which is meant: "valid/bleu", as logs have it, and "valid_bleu", as tables have it, are the same."""
    known = list(names)
    if name in known:
        return name
    same = [one for one in known if one.replace("/", "_") == name.replace("/", "_")]
    if same:
        return same[0]
    listed = ", ".join(known[:40]) + (", ..." if len(known) > 40 else "")
    raise UsageError(f'{what}: there is no "{name}"{nearest(name, known)}; there are {listed or "none"}')


class Records(list[Row]):
    """Rows of a table, each a dictionary with the same keys. `records["loss"]` is a column as an array, and `frame()`
    the whole table as a pandas data frame, if pandas is installed. Names of measures may be written with "/" or "_"."""

    @overload
    def __getitem__(self, key: SupportsIndex) -> Row: ...
    @overload
    def __getitem__(self, key: slice) -> Records: ...
    @overload
    def __getitem__(self, key: str) -> np.ndarray[Any, Any]: ...

    def __getitem__(self, key: SupportsIndex | slice | str) -> Any:
        if isinstance(key, str):
            column = spelled(key, self[0], "column") if self else key
            return np.array([row[column] for row in self])
        return Records(super().__getitem__(key)) if isinstance(key, slice) else super().__getitem__(key)

    def where(self, **values: Any) -> Records:
        """The rows that have these values: records.where(run="runs/a")."""
        keys = {spelled(key, self[0], "where") if self else key: value for key, value in values.items()}
        return Records(row for row in self if all(row[key] == value for key, value in keys.items()))

    def frame(self) -> pandas.DataFrame:
        """As a data frame; needs pandas."""
        try:
            import pandas
        except ModuleNotFoundError:
            raise ImportError("frame(): pandas is not installed; the records are a list of dictionaries") from None
        return pandas.DataFrame(list(self))

    def _repr_html_(self) -> str | None:
        try:
            return str(self.frame().to_html())
        except ImportError:
            return None


def _word(text: bytes | None) -> str | None:
    return text.decode("utf-8", "replace") if text is not None else None


def _plain(structure: Any) -> Row:
    """The numbers and texts of a structure, without its arrays and pointers."""
    row: Row = {}
    for name, kind in structure._fields_:
        if kind is ctypes.c_char_p:
            row[name] = _word(getattr(structure, name))
        elif issubclass(kind, ctypes._SimpleCData) and kind is not ctypes.c_void_p:
            row[name] = getattr(structure, name)
    return row


class Results:
    """Run directories as they are now: finished runs, and those that are still training."""

    def __init__(self, paths: Iterable[PathLike]) -> None:
        self._handle = Handle(c.tarn_results, "tarn_results_close", "the results are closed")
        items, _, count = strings(existing(path, "run or sweep") for path in paths)
        call("tarn_results_open", self._handle.out(), items, count)
        self._states = words("TARN_RESULTS_", ("FINISHED", "FAILED", "UNFINISHED", "PENDING"))

    @property
    def _all(self) -> Any:
        return self._handle.pointer.contents

    def _group(self, index: int) -> str:
        return self._all.groups[index].name.decode("utf-8", "replace")  # type: ignore[no-any-return]

    def _runs(self) -> Iterator[Any]:
        everything = self._all
        return (everything.runs[i] for i in range(everything.run_count))

    def runs(self) -> Records:
        """A row a run: its path, configuration (`group`), seed, state, how it ended, its sizes and test scores."""
        found = Records()
        for run in self._runs():
            row = _plain(run)
            for name in ("config_text", "series_count", "freeze_count", "set_count"):
                row.pop(name, None)
            row.update(group=self._group(run.group), state=self._states[run.state])
            found.append(row)
        return found

    def _curve(self, name: str) -> str:
        """The name of a curve that some log has; short ones are the library's to know."""
        runs = list(self._runs())
        if not runs or any(lib.tarn_results_find(ctypes.byref(run), name.encode()) for run in runs):
            return name
        return spelled(name, {str(_word(run.series[i].name)): 0 for run in runs for i in range(run.series_count)}, "curves")

    def curves(self, *names: str) -> Records:
        """A row a point of a curve: `run`, `group`, `seed`, `name`, `seconds`, `step`, `epoch` and `value`. Names are
        "valid/loss", "train/loss", "valid/bleu", ... ("bleu": "valid/bleu"); none: all that the logs have."""
        found = Records()
        names = tuple(self._curve(name) for name in names)
        for run in self._runs():
            if names:
                pointers = [lib.tarn_results_find(ctypes.byref(run), name.encode()) for name in names]
                series = [pointer.contents for pointer in pointers if pointer]
            else:
                series = [run.series[i] for i in range(run.series_count)]
            head = {"run": _word(run.path), "group": self._group(run.group), "seed": run.seed}
            for one in series:
                name = _word(one.name)
                for i in range(one.count):
                    found.append({**head, "name": name, **_plain(one.points[i])})
        return found

    def compare(
        self,
        *,
        metric: str | None = None,
        budget: float = 0,
        baseline: str | None = None,
        resamples: int = 1000,
        seed: int = 12345,
    ) -> Comparison:
        """Compares the configurations of the finished runs, as `tarn compare` does."""
        options = c.tarn_results_options()
        lib.tarn_results_default(ctypes.byref(options))
        metric = self._curve(metric) if metric else None
        fill(options, {"metric": metric.encode() if metric else None, "budget": budget, "resamples": resamples})
        fill(options, {"baseline": baseline.encode() if baseline else None, "seed": seed})
        return Comparison(self, options)

    def close(self) -> None:
        """Frees the memory."""
        self._handle.close()


class Comparison:
    """Configurations over seeds, side by side."""

    metric: str  # the score, "valid/bleu"
    budget: float  # seconds that areas under curves are taken over
    baseline: str  # the configuration that others are judged against
    rows: Records  # a row a configuration: of each measure its mean, and `_sd` and `_runs`, over finished runs
    verdicts: Records  # a row a measure and configuration: is it better than the baseline, and how sure is that
    notes: list[str]  # what a reader must know

    def __init__(self, results: Results, options: Any) -> None:
        handle = Handle(c.tarn_results_table, "tarn_results_table_close")
        call("tarn_results_compare", handle.out(), results._handle, ctypes.byref(options))
        table = handle.pointer.contents
        self.metric = str(_word(table.metric))
        self.budget = table.budget
        self.notes = [str(_word(table.notes[i])) for i in range(table.note_count)]
        names = [results._group(table.rows[i].group) for i in range(table.row_count)]
        self.baseline = names[table.baseline]
        self.rows = Records(self._row(name, table.rows[i]) for i, name in enumerate(names))
        self.verdicts = Records(self._judged(table, names))
        handle.close()

    @staticmethod
    def _row(name: str, row: Any) -> Row:
        found: Row = {"group": name, "baseline": bool(row.baseline)}
        for field, kind in row._fields_:
            if kind is c.tarn_results_statistic:
                value = getattr(row, field)
                found.update({field: value.mean, f"{field}_sd": value.sd, f"{field}_runs": value.count})
        return found

    def _judged(self, table: Any, names: list[str]) -> Iterator[Row]:
        decisions = words("TARN_RESULTS_", ("NONE", "UNDECIDED", "BETTER", "WORSE"))
        for judged in table.judged:
            for i, name in enumerate(names):
                if judged.rows == 0 or i == table.baseline:
                    continue
                verdict = judged.verdicts[i]
                head = {"measure": _word(judged.key), "group": name, "baseline": self.baseline}
                row = {**head, **_plain(verdict), "leads": judged.leader == i}
                row["decision"] = decisions[verdict.decision]
                del row["basis"], row["seed_count"]
                yield row


def results(*paths: PathLike) -> Results:
    """Reads run directories, sweeps' folders, and folders that hold some of both."""
    return Results(paths)
