"""The plot: how many times a peer's work per CPU second each road does, on a logarithmic scale.

In:  rows with a ratio.
Out: plot.svg, drawn here; plot.png too where matplotlib is installed, which the environment doesn't ask for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from xml.sax.saxutils import escape

from benchmarks.figures import Row

_LABEL_WIDTH, _WIDTH, _LINE, _TOP = 420, 940, 34, 56
_BAR, _PEER = "#2a6fb0", "#8a8f98"


def write(rows: Sequence[Row], folder: Path) -> None:
    """rows: those with a ratio. Nothing is written when there are none."""
    if not rows:
        return
    (folder / "plot.svg").write_text(svg(rows), encoding="utf-8")
    if find_spec("matplotlib"):
        _png(rows, folder / "plot.png")


def svg(rows: Sequence[Row]) -> str:
    """A bar per row from 1 (as much as the peer) to its ratio; each run's own ratio as a dot."""
    ratios = [1.0, *(ours / theirs for row in rows for ours, theirs in zip(row.ours, row.theirs, strict=False))]
    lowest = math.floor(math.log10(min(ratios)))
    highest = max(1, math.ceil(math.log10(max(ratios) * 1.05)))
    across = (_WIDTH - _LABEL_WIDTH - 70) / (highest - lowest)

    def x(ratio: float) -> float:
        return _LABEL_WIDTH + across * (math.log10(ratio) - lowest)

    height = _TOP + _LINE * len(rows) + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}">',
        "<style>text { font-family: sans-serif; font-size: 13px }</style>",
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
        '<text x="12" y="22" style="font-size: 16px">Work per CPU second, as a multiple of the peer named</text>',
    ]
    for power in range(lowest, highest + 1):
        at = x(10.0**power)
        parts.append(f'<line x1="{at:.0f}" x2="{at:.0f}" y1="{_TOP - 12}" y2="{height - 20}" stroke="#ddd"/>')
        parts.append(f'<text x="{at:.0f}" y="{_TOP - 16}" fill="{_PEER}" text-anchor="middle">{10.0**power:g}x</text>')
    for number, row in enumerate(rows):
        y, ratio = _TOP + _LINE * number, row.ratio or 1.0
        left, right = sorted((x(1), x(ratio)))
        parts += [
            f'<text x="12" y="{y + 12}">{escape(row.title[:62])}</text>',
            f'<text x="12" y="{y + 26}" style="font-size: 10px" fill="{_PEER}">against {escape(row.peer[:70])}</text>',
            f'<rect x="{left:.1f}" y="{y + 4}" width="{max(right - left, 1):.1f}" height="18" fill="{_BAR}"/>',
            f'<text x="{right + 8:.1f}" y="{y + 18}">{ratio:.3g}x</text>',
        ]
        for ours, theirs in zip(row.ours, row.theirs, strict=False):
            parts.append(f'<circle cx="{x(ours / theirs):.1f}" cy="{y + 13}" r="2.5" fill="white" stroke="black"/>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _png(rows: Sequence[Row], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(10, 1 + 0.5 * len(rows)))
    names = [f"{row.title}\nagainst {row.peer}" for row in rows]
    bars = axes.barh(names, [(row.ratio or 1) - 1 for row in rows], left=1, color=_BAR)
    axes.bar_label(bars, [f"{row.ratio:.3g}x" for row in rows])
    axes.set_xscale("log")
    axes.invert_yaxis()
    axes.set_title("Work per CPU second, as a multiple of the peer named")
    axes.tick_params(axis="y", labelsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)
