"""Small charts as SVG, without a script.

In:  a series of values, one per step.
Out: SVG text with a title and a description that a screen reader reads out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Final

_HEIGHT: Final = 100
_WIDTH: Final = 600
_DASH: Final = 5.0


def sparkline(values: Sequence[float | None], title: str) -> str:
    """A line of a word's size. A step without a value is a gap."""
    return _svg(values, title, "spark", 120, 24)


def chart(values: Sequence[float | None], title: str, shown: Callable[[float], str], ends: tuple[str, str]) -> str:
    """A figure: the line, the largest value beside it, and the times of both ends below."""
    known = [value for value in values if value is not None]
    if not known:
        return f"<figure><figcaption>{escape(title)}</figcaption><p>Nothing is known yet.</p></figure>"
    now, most = shown(known[-1]), shown(max(known))
    caption = f"{escape(title)}: <b>{escape(now)}</b> now, at most {escape(most)}"
    drawn = _svg(values, f"{title}, at most {most}", "chart", _WIDTH, _HEIGHT)
    return (
        f"<figure><figcaption>{caption}</figcaption>{drawn}"
        f"<p class='axis'><span>{escape(ends[0])}</span><span>{escape(ends[1])}</span></p></figure>"
    )


def _svg(values: Sequence[float | None], title: str, kind: str, width: int, height: int) -> str:
    top = max([value for value in values if value is not None], default=0.0) or 1.0
    step = width / max(1, len(values) - 1)
    runs: list[list[tuple[float, float]]] = [[]]
    for at, value in enumerate(values):
        if value is None:
            runs.append([])
        else:
            runs[-1].append((at * step, height - 2 - (height - 4) * value / top))
    lines = "".join(map(_line, filter(None, runs)))
    return (
        f"<svg class='{kind}' viewBox='0 0 {width} {height}' preserveAspectRatio='none' role='img'"
        f" aria-label='{escape(title, quote=True)}'>{lines}</svg>"
    )


def _line(run: Sequence[tuple[float, float]]) -> str:
    """A polyline. A single known step becomes a short dash, inside of the picture also at its right
    edge.
    """
    (x, y), *_ = run
    points = run if len(run) > 1 else [(x - _DASH, y), (x + _DASH, y)]
    return f"<polyline points='{' '.join(f'{x:.1f},{y:.1f}' for x, y in points)}'/>"
