"""What notebooks show of results: tables, and pictures of the library."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from typing import Any

SHOWN = 60  # rows of a table; of a longer one the first and the last


def cell(value: Any) -> str:
    """A value as a reader likes it: four digits of a number, nothing for one that is missing."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if (value.is_integer() or abs(value) >= 1000) and abs(value) < 1e15 else f"{value:.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return html.escape(str(value))


def _row(values: Iterable[Any], tag: str = "td") -> str:
    return "<tr>" + "".join(f'<{tag} style="text-align: left">{cell(value)}</{tag}>' for value in values) + "</tr>"


def facts(title: str, pairs: Iterable[tuple[str, Any]]) -> str:
    """A heading and a table of names and values; missing values are left out."""
    rows = [_row(pair) for pair in pairs if cell(pair[1]) != ""]
    return f"<div><b>{html.escape(title)}</b><table>{''.join(rows)}</table></div>"


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Rows with the same keys, without the columns that are empty in all of them."""
    if not rows:
        return "<div>no rows</div>"
    part = rows if len(rows) <= SHOWN else [*rows[: SHOWN // 2], *rows[-SHOWN // 2 :]]
    names = [name for name in rows[0] if any(cell(row.get(name)) != "" for row in part)]
    lines = [_row(names, "th"), *(_row(row.get(name) for name in names) for row in part)]
    if part is not rows:
        lines.insert(1 + SHOWN // 2, _row(["..."] * len(names)))
    count = f"<div>{len(rows):,} rows</div>" if part is not rows else ""
    return f"<table>{''.join(lines)}</table>{count}"


def curve(points: Sequence[tuple[float, float]], width: int = 240, height: int = 60) -> str:
    """A small picture of a curve, without axes, for a display that changes while it is looked at."""
    known = [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)]
    if len(known) < 2:
        return ""
    left, right = known[0][0], known[-1][0]
    low, high = min(y for _, y in known), max(y for _, y in known)
    scale = (width - 4) / (right - left or 1), (height - 4) / (high - low or 1)
    places = " ".join(f"{2 + (x - left) * scale[0]:.1f},{2 + (high - y) * scale[1]:.1f}" for x, y in known)
    line = f'<polyline points="{places}" fill="none" stroke="currentColor" stroke-width="1.5"/>'
    return f'<svg width="{width}" height="{height}" role="img"><title>{cell(high)} to {cell(low)}</title>{line}</svg>'
