"""What notebooks and terminals show, without either: tables, pictures and the progress of a training."""

from __future__ import annotations

import dataclasses
import io
import sys
import xml.etree.ElementTree as xml
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tarn
from tarn import _html, _progress


def parsed(html: str) -> xml.Element:
    """Well-formed, whatever is shown."""
    return xml.fromstring(f"<div>{html.replace('&middot;', '·')}</div>")


def text(html: str) -> str:
    return " ".join(part.strip() for part in parsed(html).itertext() if part.strip())


class Handle:
    def __init__(self, shown: list[str]) -> None:
        self.shown = shown

    def update(self, html: str) -> None:
        self.shown.append(html)


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """IPython as a notebook's kernel has it; returns what it shows."""
    shown: list[str] = []
    shell, module, display = object.__new__(type("Shell", (), {"kernel": 1})), ModuleType("IPython"), ModuleType("display")

    def show(html: str, display_id: bool) -> Handle:
        assert display_id
        shown.append(html)
        return Handle(shown)

    vars(module).update(get_ipython=lambda: shell, display=display)
    vars(display).update(HTML=str, display=show)
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr(_progress, "APART", 0)
    return shown


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_tables() -> None:
    rows = [{"a": 1234, "b": "<&>", "c": float("nan"), "d": None, "e": 0.123456, "f": 123456.7} for _ in range(100)]
    shown = _html.table(rows)
    assert text(shown).startswith("a b e f 1,234 <&> 0.1235 123,457") and text(shown).endswith("100 rows")
    assert len(parsed(shown).findall(".//tr")) == 1 + 60 + 1 and _html.table([]) == "<div>no rows</div>"
    assert text(_html.facts("<run>", [("x", None), ("y", 2.0)])) == "<run> y 2"
    line = parsed(_html.curve([(0, 5), (1, float("nan")), (2, 3), (4, 1)])).find(".//polyline")
    assert line is not None and line.get("points") == "2.0,2.0 120.0,30.0 238.0,58.0"
    assert _html.curve([(0, 1)]) == "" and "points" in _html.curve([(1, 1), (1, 1)])


def test_objects(trained: tarn.Trained) -> None:
    with trained.open() as run:
        shown = text(run._repr_html_())
        assert f"{run.frozen_parameters:,}" in shown and "translation" in shown and "(R1 L1)*2" in shown
    assert "closed" not in shown and text(run._repr_html_()).startswith("<tarn.Run ")
    assert "valid/bleu" in text(trained._repr_html_()) and trained._repr_html_().count("<polyline") == 2
    results = tarn.results(trained.run)
    assert "tarn.Results of 1 run in 1 group" in text(results._repr_html_()) and trained.run in text(results._repr_html_())
    assert "loss" in text(results.curves("valid/loss")._repr_html_())
    comparison = results.compare()
    shown = text(comparison._repr_html_())
    assert shown.startswith("valid/bleu, baseline translation") and comparison.notes[0] in shown
    figures = comparison.figures()
    assert {"bleu-time", "bleu-updates", "loss-time"} <= figures.keys()
    for figure in figures.values():
        assert xml.fromstring(figure._repr_svg_()).tag.endswith("svg") and xml.fromstring(figure.encode()) is not None
    results.close()
    assert "closed" in text(results._repr_html_())
    with pytest.raises(tarn.UsageError, match="the results are closed"):
        comparison.figures()


def test_the_folder_is_gone(trained: tarn.Trained) -> None:
    gone = dataclasses.replace(trained, run=trained.run + "-gone")
    assert "valid/bleu" in text(gone._repr_html_()) and "<svg" not in gone._repr_html_()


def test_a_notebook_shows_progress(notebook: list[str], description: dict[str, Any], tmp_path: Path) -> None:
    seen: list[str] = []
    tarn.train(description, tmp_path / "run", callback=lambda event: seen.append(event.kind))
    last = parsed(notebook[-1])
    bar = last.find(".//progress")
    assert len(notebook) >= seen.count("update") == 40 and bar is not None and float(bar.get("value", "")) == 1
    assert "update 40 · epoch" in text(notebook[-1]) and "bleu" in text(notebook[-1]) and "<polyline" in notebook[-1]

    # One that is interrupted shows where it stopped; one without a display, nothing.
    def fails(event: tarn.Event) -> None:
        if event.update == 7:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        tarn.train(description, tmp_path / "failed", callback=fails)
    assert "update 7 " in text(notebook[-1])
    count = len(notebook)
    tarn.train(description, tmp_path / "quiet", overrides={"train.max_updates": 2}, progress=False)
    assert len(notebook) == count


def test_a_terminal_has_a_line(
    description: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    screen, short = Screen(), {"train.max_updates": 3, "train.seeds": [1, 2]}
    monkeypatch.setattr(sys, "stderr", screen)
    tarn.train_seeds(description, tmp_path / "runs", overrides=short)
    lines = screen.getvalue().split("\n")
    assert len(lines) == 3 and lines[2] == ""
    for line in lines[:2]:
        last = line.split("\r")[-1].rstrip()
        assert line.startswith("\r") and last.startswith("update 3, epoch 0.") and len(last) <= 79
    # Where the output is no terminal there is nothing, unless it is asked for.
    for progress, expected in ((None, False), (True, True)):
        screen = io.StringIO()
        monkeypatch.setattr(sys, "stderr", screen)
        tarn.train(description, tmp_path / str(progress), overrides={"train.max_updates": 2}, progress=progress)
        assert bool(screen.getvalue()) == expected
    assert capsys.readouterr().out == ""
    with pytest.raises(TypeError, match="progress: True or False"):
        tarn.train(description, tmp_path / "never", progress=1)  # type: ignore[arg-type]


class Gone(Screen):
    """A terminal that has gone away."""

    def flush(self) -> None:
        raise BrokenPipeError


def test_a_terminal_that_goes_away(description: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_progress, "APART", 0)
    short, screen = {"train.max_updates": 3}, Gone()
    monkeypatch.setattr(sys, "stderr", screen)
    assert tarn.train(description, tmp_path / "run", overrides=short).update == 3
    assert screen.getvalue().count("update") == 1

    # An error at the end of the display is not raised in place of the real one.
    def fails(event: tarn.Event) -> None:
        raise ZeroDivisionError

    def wrong(self: object, finished: bool) -> None:
        raise AssertionError

    monkeypatch.setattr(_progress.Progress, "end", wrong)
    with pytest.raises(ZeroDivisionError):
        tarn.train(description, tmp_path / "failed", overrides=short, callback=fails)
