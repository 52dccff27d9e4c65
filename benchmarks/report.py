"""The report: Markdown for people, report.json for programs, a plot.

In:  the rows that were measured, the machine's noise.
Out: report.md, report.json, plot.svg (and plot.png where matplotlib is installed) in a folder.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import plot
from benchmarks.figures import KEYS, Row
from benchmarks.sizes import Sizes

_MARKS = ("<!-- latest figures -->", "<!-- end of them -->")
_LEGEND = (
    "Larger is better, except for seconds and kB. A ratio is the median of the runs' own ratios; the spread is"
    " (largest - smallest) / median over our runs.\n"
)


@dataclass(slots=True)
class Report:
    """rows: in the order in which they were measured. failures: section -> what went wrong in it; left_out: section
    -> what it needs and isn't there.
    """

    sizes: Sizes
    rows: list[Row] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    noise: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0

    def keyed(self) -> dict[str, dict[str, Any]]:
        """report.json's content: each key of KEYS, and no other."""
        found = {row.key: row.as_json() for row in self.rows}
        why = "; ".join(f"{section}: {reason}" for section, reason in (self.failures | self.left_out).items())
        empty = Row("", "", "", why_missing=why or "not measured").as_json()
        return {key: found.get(key, empty) for key in KEYS}

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "report.json").write_text(json.dumps(self.keyed(), indent=1, ensure_ascii=False) + "\n")
        (folder / "report.md").write_text(self.markdown(), encoding="utf-8")
        plot.write([row for row in self.rows if row.ratio], folder)

    def markdown(self) -> str:
        """The whole report as a page."""
        parts = [
            f"# tidegate's benchmarks: {self.sizes.name} run\n",
            self._machine(),
            "![ratios](plot.svg)\n",
            table(self.rows),
            _LEGEND,
            "## What each row counts\n",
            "\n".join(f"- **{row.title}**: {row.note or 'see benchmarks/README.md'}" for row in self.rows if row.ours),
        ]
        left_out = [f"- {row.title} ({row.key}): {row.why_missing}" for row in self.rows if row.why_missing]
        left_out += [f"- section {section}: {reason}" for section, reason in self.left_out.items()]
        left_out += [f"- section {section} failed: {reason}" for section, reason in self.failures.items()]
        if left_out:
            parts += ["\n## Left out\n", "\n".join(left_out)]
        parts += ["\n## Every run\n", _runs(self.rows)]
        return "\n".join(parts) + "\n"

    def _machine(self) -> str:
        noise = self.noise
        text = (
            f"{os.cpu_count()} processors ({platform.machine()}), Python {platform.python_version()};"
            f" {self.seconds / 60:.1f} minutes."
        )
        if noise:
            text += (
                f" The machine meanwhile: a fixed piece of work took {noise['kernel_median_s'] * 1000:.1f} ms of CPU"
                f" (median of {noise['kernel_timings']:.0f}), {noise['kernel_fastest']:.2f} to"
                f" {noise['kernel_slowest']:.2f} times that; nine in ten between {noise['kernel_p5']:.2f} and"
                f" {noise['kernel_p95']:.2f}. Differences smaller than that are noise."
            )
        return text + "\n"


def table(rows: Sequence[Row]) -> str:
    """The rows as a Markdown table."""
    lines = ["| what | ours | theirs | ratio | spread | beside |", "|---|---:|---:|---:|---:|---|"]
    for row in rows:
        if not row.ours:
            continue
        ours = statistics.median(row.ours)
        spread = (max(row.ours) - min(row.ours)) / ours if ours else 0.0
        theirs = amount(statistics.median(row.theirs)) if row.theirs else ""
        ratio = f"{row.ratio:.1f}x" if row.ratio else ""
        peer = row.peer if row.theirs else (f"left out: {row.peer}" if row.peer else "")
        cells = (f"{row.title}, {row.unit}", amount(ours), theirs, ratio, f"{spread:.0%}", peer.replace("|", " "))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def amount(value: float) -> str:
    """1234567 -> 1.23 M."""
    for size, letter in ((1e6, " M"), (1e3, " k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def _runs(rows: Sequence[Row]) -> str:
    lines = []
    for row in rows:
        if row.ours:
            theirs = f"; theirs {', '.join(map(amount, row.theirs))}" if row.theirs else ""
            lines.append(f"- {row.key}: ours {', '.join(map(amount, row.ours))}{theirs}")
    return "\n".join(lines)


def publish(page: Path, readme: Path) -> None:
    """The last report's head and table into the README, between its two marks."""
    title, _, rest = page.read_text(encoding="utf-8").partition("\n")
    lines = [line for line in rest.split("## What each row counts")[0].splitlines() if not line.startswith("![")]
    text = readme.read_text(encoding="utf-8")
    before, _, after = text.partition(_MARKS[0])
    _, found, after = after.partition(_MARKS[1])
    assert found, f"{readme} has no {_MARKS[0]} ... {_MARKS[1]}"
    run = title.rpartition(": ")[2].capitalize()
    body = "\n".join([_MARKS[0], "", f"{run}.", *lines]).rstrip()
    readme.write_text(f"{before}{body}\n\n{_MARKS[1]}{after}", encoding="utf-8")
