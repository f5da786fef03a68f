"""Runs, their curves, comparisons over seeds and verdicts (docs/experiments.md), as tables."""

from __future__ import annotations

import ctypes
import html
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

import numpy as np

from . import _binding as c
from . import _html
from ._library import Handle, PathLike, call, fill, lib, path_bytes, strings, temporary_folder, unknown, word_bytes, words

if TYPE_CHECKING:
    import pandas

Row = dict[str, Any]
# Of a comparison, what a notebook shows.
SHOWN = ("best", "best_seconds", "aucc", "min_loss", "min_loss_seconds", "epoch_seconds", "test_bleu", "test_score")


def same_score(name: str, written: str) -> bool:
    """Whether a name is that of a score, in either spelling: "valid/bleu", or "valid_bleu" as in the log."""
    return bool(lib.tarn_measure_same_name(name.encode(), word_bytes("name", written)))


class Scores(dict[str, float]):
    """Scores by measure: `scores["bleu"]`, or `scores["valid/bleu"]` and `scores["valid_bleu"]`, the names in curves
    and logs."""

    def _key(self, name: object) -> str | None:
        """The measure with this name, if it is present."""
        if isinstance(name, str) and not super().__contains__(name):
            measure = lib.tarn_measure_find(word_bytes("scores", name))
            name = measure.contents.word.decode() if measure else name
        return name if isinstance(name, str) and super().__contains__(name) else None

    def __missing__(self, name: object) -> float:
        key = self._key(name)
        if key is None:
            raise unknown("scores", name, self)
        return super().__getitem__(key)

    def __contains__(self, name: object) -> bool:
        return self._key(name) is not None

    def get(self, name: str, default: Any = None) -> Any:
        """The score, or the default if there is none."""
        key = self._key(name)
        return default if key is None else super().__getitem__(key)


class Records(list[Row]):
    """Rows of a table, each a dictionary with the same keys. `records["loss"]` is a column as an array, and `frame()`
    the whole table as a pandas data frame, if pandas is installed."""

    @overload
    def __getitem__(self, key: SupportsIndex) -> Row: ...
    @overload
    def __getitem__(self, key: slice) -> Records: ...
    @overload
    def __getitem__(self, key: str) -> np.ndarray[Any, Any]: ...

    def __getitem__(self, key: SupportsIndex | slice | str) -> Any:
        if isinstance(key, str):
            self._check(key)
            return np.array([row[key] for row in self])
        return Records(super().__getitem__(key)) if isinstance(key, slice) else super().__getitem__(key)

    def _check(self, column: str) -> None:
        if self and column not in self[0]:
            raise unknown("column", column, self[0])

    def where(self, **values: Any) -> Records:
        """The rows with these values: records.where(run="runs/a"). The `name` of a score may be in either spelling; a
        name that no row has is refused."""
        for column in values:
            self._check(column)
        if self and "name" in values and not any(same_score(row["name"], values["name"]) for row in self):
            raise unknown("name", values["name"], sorted({row["name"] for row in self}))
        return Records(row for row in self if all(self._has(row, *value) for value in values.items()))

    @staticmethod
    def _has(row: Row, column: str, value: Any) -> bool:
        return same_score(row[column], value) if column == "name" else bool(row[column] == value)

    def frame(self) -> pandas.DataFrame:
        """The records as a data frame; needs pandas."""
        try:
            import pandas
        except ModuleNotFoundError:
            raise ImportError("frame(): pandas is not installed; the records are a list of dictionaries") from None
        return pandas.DataFrame(list(self))

    def _repr_html_(self) -> str:
        return _html.table(self)


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
    """Run directories in their present state: finished runs, and those still training."""

    def __init__(self, paths: Iterable[PathLike]) -> None:
        self._handle = Handle(c.tarn_results, "tarn_results_close", "the results are closed")
        items, _, count = strings(path_bytes(path) for path in paths)
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
        """One row per run: path, configuration (`group`), seed, state, end, sizes and test scores."""
        found = Records()
        for run in self._runs():
            row = _plain(run)
            for name in ("config_text", "series_count", "freeze_count", "set_count"):
                row.pop(name, None)
            row.update(group=self._group(run.group), state=self._states[run.state])
            found.append(row)
        return found

    def curves(self, *names: str) -> Records:
        """One row per point of a curve: `run`, `group`, `seed`, `name`, `seconds`, `step`, `epoch` and `value`. Names
        are "valid/loss", "train/loss", "valid/bleu", ... ("bleu" and "valid_bleu": "valid/bleu"); none: all names in
        the logs. A name that no run has is refused, unless it is a measure that an unfinished run may still have
        later."""
        found = Records()
        wanted = [word_bytes("names", name) for name in names]
        for one in wanted:
            self._check(one)
        for run in self._runs():
            if wanted:
                pointers = [lib.tarn_results_find(ctypes.byref(run), one) for one in wanted]
                series = [pointer.contents for pointer in pointers if pointer]
            else:
                series = [run.series[i] for i in range(run.series_count)]
            head = {"run": _word(run.path), "group": self._group(run.group), "seed": run.seed}
            for curve in series:
                name = _word(curve.name)
                for i in range(curve.count):
                    found.append({**head, "name": name, **_plain(curve.points[i])})
        return found

    def _check(self, name: bytes) -> None:
        going = (c.TARN_RESULTS_UNFINISHED, c.TARN_RESULTS_PENDING)
        if not lib.tarn_measure_find(name) or not any(run.state in going for run in self._runs()):
            call("tarn_results_check_name", self._handle, name)

    def compare(
        self,
        *,
        metric: str | None = None,
        budget: float = 0,
        baseline: str | None = None,
        resamples: int = 1000,
        seed: int = 12345,
    ) -> Comparison:
        """Compares the configurations of the finished runs, like `tarn compare`."""
        options = c.tarn_results_options()
        lib.tarn_results_default(ctypes.byref(options))
        texts = {"metric": metric, "baseline": baseline}
        fill(options, {what: word_bytes(what, text) for what, text in texts.items() if text is not None})
        fill(options, {"budget": budget, "resamples": resamples, "seed": seed})
        return Comparison(self, options)

    def close(self) -> None:
        """Frees the memory."""
        self._handle.close()

    def _repr_html_(self) -> str:
        if not self._handle:
            return html.escape(repr(self))
        columns = ("path", "group", "seed", "state", "step", "epoch", "seconds", "trained_parameters", "frozen_parameters")
        rows = [{name: row[name] for name in (*columns, "test_bleu")} for row in self.runs()]
        return f"<div><b>{html.escape(repr(self)[1:-1])}</b></div>{_html.table(rows)}"

    def __repr__(self) -> str:
        if not self._handle:
            return "<tarn.Results, closed>"
        runs, groups = self._all.run_count, self._all.group_count
        return f"<tarn.Results of {runs} run{'' if runs == 1 else 's'} in {groups} group{'' if groups == 1 else 's'}>"


class Figure(str):
    """A picture as SVG, which a notebook shows: `open("curve.svg", "w").write(figure)`."""

    def _repr_svg_(self) -> str:
        return self[self.index("<svg") :]  # without the declaration of a file


class Comparison:
    """Configurations over seeds, side by side."""

    metric: str  # the score, "valid/bleu"
    budget: float  # seconds; the range of areas under curves
    processor: str | None  # what times, energies, areas and memory are of, where runs are of several
    baseline: str  # the configuration that others are compared with
    rows: Records  # one per configuration: for each measure its mean, `_sd` and `_runs`, over finished runs
    verdicts: Records  # one per measure and configuration: is it better than the baseline, and how certain is that
    notes: list[str]  # for readers of the comparison

    def __init__(self, results: Results, options: Any) -> None:
        self._results, self._options = results, options
        handle = self._compare()
        table = handle.pointer.contents
        self.metric = str(_word(table.metric))
        self.budget = table.budget
        self.processor = _word(table.processor)
        self.notes = [str(_word(table.notes[i])) for i in range(table.note_count)]
        names = [results._group(table.rows[i].group) for i in range(table.row_count)]
        self.baseline = names[table.baseline]
        self.rows = Records(self._row(name, table.rows[i]) for i, name in enumerate(names))
        self.verdicts = Records(self._judged(table, names))
        handle.close()

    def _compare(self) -> Handle:
        handle = Handle(c.tarn_results_table, "tarn_results_table_close")
        call("tarn_results_compare", handle.out(), self._results._handle, ctypes.byref(self._options))
        return handle

    def report(self, folder: PathLike, *, title: str | None = None) -> None:
        """Writes the report of `tarn report`: a page, tables and figures."""
        options = c.tarn_report_options()
        lib.tarn_report_default(ctypes.byref(options))
        fill(options, {"output": path_bytes(folder), "title": word_bytes("title", title) if title is not None else None})
        handle = self._compare()
        call("tarn_report_write", self._results._handle, handle, ctypes.byref(options))
        handle.close()

    def figures(self) -> dict[str, Figure]:
        """The pictures of that report by name, "valid_bleu" for one; a notebook shows them."""
        with temporary_folder() as folder:
            self.report(folder)
            paths = sorted(Path(folder, "figures").glob("*.svg"))
            return {path.stem: Figure(path.read_text("utf-8")) for path in paths}

    def _repr_html_(self) -> str:
        title = f"<div><b>{html.escape(self.metric)}, baseline {html.escape(self.baseline)}</b></div>"
        rows = [{"group": row["group"], **{name: self._cell(row, name) for name in SHOWN}} for row in self.rows]
        columns = ("measure", "group", "words", "difference", "low", "high")
        verdicts = [{name: row[name] for name in columns} for row in self.verdicts]
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in self.notes)
        return title + _html.table(rows) + (_html.table(verdicts) if verdicts else "") + f"<ul>{notes}</ul>"

    @staticmethod
    def _cell(row: Row, name: str) -> str:
        """A mean with its standard deviation."""
        spread = f" &plusmn; {_html.cell(row[f'{name}_sd'])}" if row[f"{name}_runs"] > 1 else ""
        return html.unescape(f"{_html.cell(row[name])}{spread}") if row[f"{name}_runs"] else ""

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
    """Reads run directories, sweep folders, and folders with both."""
    return Results(paths)
