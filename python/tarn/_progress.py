"""The progress of a training: a display that changes in a notebook, a line in a terminal, nothing elsewhere."""

from __future__ import annotations

import math
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from . import _html

if TYPE_CHECKING:
    from .training import Event

APART = 0.25  # seconds between two changes of a display
POINTS = 400  # of the curve of a display; of a longer one every other is left out


def _kernel() -> Any:
    """IPython's display module, if this is a notebook's kernel."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    import IPython.display

    return IPython.display


def _time(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}" if whole >= 3600 else f"{whole // 60}:{whole % 60:02}"


def _parts(event: Event, rate: float, left: float) -> list[str]:
    parts = [f"update {event.update:,}", f"epoch {event.epoch:.1f}"]
    if not math.isnan(event.loss):
        parts.append(f"loss {event.loss:.3f}")
    if rate > 0:
        parts.append(f"{rate:,.0f} tokens/s")
    parts.append(_time(event.seconds))
    if not math.isnan(left):
        parts.append(f"{_time(left)} left")
    return parts


class Progress:
    """The display of one training. It is told of events on the caller's thread, and asked on the worker's whether it
    wants to hear of one, because handing over every update would cost time."""

    def __init__(self, run: str) -> None:
        self.run = run
        self._shown = -math.inf
        self._last: Event | None = None
        self._rate = math.nan
        self._finished = False
        self._gone = False
        self._losses: list[tuple[float, float]] = []
        self._validations: list[dict[str, Any]] = []

    def wants(self, event: Event) -> bool:
        if self._gone:
            return False
        return event.kind in ("log", "valid") or time.monotonic() - self._shown >= APART

    def tell(self, event: Event) -> None:
        """Takes the event in, and shows it unless that was done a moment ago."""
        if event.kind == "valid" and event.set is None:
            self._validations.append({"update": event.update, **event.scores, "best": "best" if event.best else ""})
        elif event.kind in ("update", "log") and not math.isnan(event.loss):
            self._last = event
            if event.tokens_per_second > 0:
                self._rate = event.tokens_per_second
            self._losses.append((event.update, event.loss))
            if len(self._losses) > POINTS:
                self._losses = self._losses[::2]
        if event.kind == "valid" or time.monotonic() - self._shown >= APART:
            self._shown = time.monotonic()
            self._try(event if self._last is None else self._last)

    def end(self, finished: bool) -> None:
        """Shows the last state: of a training that is finished, or was interrupted."""
        self._finished = finished
        self._try(self._last, last=True)

    def _try(self, event: Event | None, last: bool = False) -> None:
        """A terminal that goes away, or a stream that is closed, ends the display, and not the training."""
        if self._gone:
            return
        try:
            if event is not None:
                self.show(event)
            if last:
                self.close()
        except (OSError, ValueError):
            self._gone = True

    def show(self, event: Event) -> None:
        """Shows the state at an event."""

    def close(self) -> None:
        """Leaves the display as it is."""

    def left(self, event: Event) -> float:
        """The estimated seconds to the end; NAN if there is no telling, and at the end."""
        return math.nan if self._finished else event.seconds_left


class Notebook(Progress):
    def __init__(self, run: str, display: Any) -> None:
        super().__init__(run)
        self._display, self._handle = display, None

    def html(self, event: Event) -> str:
        left = self.left(event)
        share = 1.0 if self._finished else event.seconds / (event.seconds + left) if left > 0 else math.nan
        bar = f'<progress value="{share:.4f}" max="1"></progress> ' if not math.isnan(share) else ""
        head = f"<div><b>{_html.cell(self.run)}</b> {bar}{' &middot; '.join(_parts(event, self._rate, left))}</div>"
        valid = _html.table(self._validations[-5:]) if self._validations else ""
        return head + _html.curve(self._losses) + valid

    def show(self, event: Event) -> None:
        shown = self._display.HTML(self.html(event))
        if self._handle is None:
            self._handle = self._display.display(shown, display_id=True)
        else:
            self._handle.update(shown)


class Terminal(Progress):
    def __init__(self, run: str, stream: Any) -> None:
        super().__init__(run)
        self._stream, self._width = stream, 0

    def show(self, event: Event) -> None:
        valid = self._validations[-1] if self._validations else {}
        scores = [f"valid {name} {value:.4g}" for name, value in valid.items() if name in ("loss", "bleu", "accuracy")]
        # What a narrow terminal cuts off is the end of the name.
        line = ", ".join([*_parts(event, self._rate, self.left(event)), *scores, self.run])
        line = line[: max(20, _columns(self._stream) - 1)]
        self._stream.write("\r" + line.ljust(self._width))
        self._stream.flush()
        self._width = len(line)

    def close(self) -> None:
        if self._width:
            self._stream.write("\n")
            self._stream.flush()


def _columns(stream: Any) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError, AttributeError):
        return 80


def progress(run: str, wanted: bool | None) -> Progress | None:
    """The display for this place. `wanted`: False is none; True is a line even if the output is no terminal."""
    if wanted is False:
        return None
    display = _kernel()
    if display is not None:
        return Notebook(run, display)
    stream = sys.stderr
    if stream is not None and (wanted or stream.isatty()):
        return Terminal(run, stream)
    return None
