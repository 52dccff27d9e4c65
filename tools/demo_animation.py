"""`make demo` as an animated picture for README: docs/images/demo.svg, a terminal whose lines come one after the other.

In:  what `make demo` prints to a pipe: `make demo | tee demo.txt; .venv/bin/python tools/demo_animation.py demo.txt`.
Out: the picture, of some kilobytes. It needs no script: a code host shows it. Readers without movement get the last
     screen at once.

Each line gets the same time.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final

PATH: Final = Path(__file__).resolve().parents[1] / "docs/images/demo.svg"
COLUMNS: Final = 112
ROWS: Final = 26
_LETTER: Final = 7.8  # width of a letter of 13 px, in px
_LINE: Final = 18
_PAUSE_SECONDS: Final = 0.55
_LAST_SECONDS: Final = 9.0
# Of no use in a picture: an address, a password, a repeated wait.
_LEFT_OUT: Final = re.compile(
    r"login admin|still at it|still without an answer|^\s*$|^tidegate: (compil|the decoder is)|make: "
)
_CAPTURE_BEGINS: Final = re.compile(r"^ *\d+ s  capture begins$")
_COLOURS: Final = (
    (re.compile(r"equal\b"), "#7ee787"),
    (re.compile(r"^\$ .*"), "#ffffff"),
    (re.compile(r"^ *\d+ s "), "#79c0ff"),
    (re.compile(r"^tidegate: "), "#8b949e"),
)


@dataclass(frozen=True, slots=True)
class Screen:
    """lines: of the whole screen. at: when it is shown, in seconds."""

    lines: tuple[str, ...]
    at: float


def kept_lines(text: str) -> list[str]:
    """The lines worth a look, cut to the width; of equal waits the first."""
    lines, waits = ["$ make demo"], False
    for line in text.splitlines():
        if _LEFT_OUT.search(line) or (waits and _CAPTURE_BEGINS.match(line)):
            continue
        waits = waits or bool(_CAPTURE_BEGINS.match(line))
        if line.startswith("Next: "):
            break
        lines.append(line.rstrip()[:COLUMNS])
    return lines


def screens(lines: list[str]) -> list[Screen]:
    """A screen for each line, scrolled as a terminal does; a table comes as a whole."""
    made: list[Screen] = []
    at = 0.0
    for number in range(1, len(lines) + 1):
        if number < len(lines) and lines[number][:1] in "┃┡│└" and lines[number - 1][:1] in "┏┃┡│":
            continue  # inside a table
        made.append(Screen(tuple(lines[max(0, number - ROWS) : number]), at))
        at += _PAUSE_SECONDS
    return made


def svg(made: list[Screen]) -> str:
    """All screens above each other; each is visible in its turn."""
    total = made[-1].at + _LAST_SECONDS
    width, height = COLUMNS * _LETTER + 32, ROWS * _LINE + 52
    style, groups = [], []
    for number, screen in enumerate(made):
        begin = 100 * screen.at / total
        end = 100 * made[number + 1].at / total if number + 1 < len(made) else 100.0
        hidden = f"0%,{begin:.2f}%{{opacity:0}}" if begin else ""
        after = f"{end + 0.01:.2f}%,100%{{opacity:0}}" if end < 100 else ""
        style.append(f"@keyframes s{number}{{{hidden}{begin + 0.01:.2f}%,{end:.2f}%{{opacity:1}}{after}}}")
        name = f"s s{number}{' last' if number + 1 == len(made) else ''}"
        rows = "".join(_row(line, place) for place, line in enumerate(screen.lines))
        groups.append(f'<g class="{name}" style="animation-name:s{number}">{rows}</g>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img"'
        ' aria-label="make demo: a MariaDB shop, kept equal in Delta, and proved equal at the end">'
        f"<style>text{{font:13px ui-monospace,Menlo,Consolas,monospace;fill:#c9d1d9;white-space:pre}}"
        f".s{{opacity:0;animation:{total:.1f}s step-end infinite}}"
        f"@media (prefers-reduced-motion:reduce){{.s{{animation:none}}.last{{opacity:1}}}}{''.join(style)}</style>"
        f'<rect width="100%" height="100%" rx="8" fill="#0d1117"/>'
        '<circle cx="18" cy="16" r="5" fill="#ff5f57"/><circle cx="36" cy="16" r="5" fill="#febc2e"/>'
        f'<circle cx="54" cy="16" r="5" fill="#28c840"/>{"".join(groups)}</svg>\n'
    )


def _row(line: str, place: int) -> str:
    colour = next((colour for pattern, colour in _COLOURS if pattern.search(line)), "")
    filled = f' style="fill:{colour}"' if colour else ""
    long = f' textLength="{len(line) * _LETTER:.0f}"' if line[:1] in ("┏", "┃", "┡", "│", "└") else ""
    return f'<text x="16" y="{place * _LINE + 46}"{long}{filled} xml:space="preserve">{escape(line)}</text>'


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: demo_animation.py FILE", file=sys.stderr)
        return 2
    PATH.parent.mkdir(exist_ok=True)
    PATH.write_text(svg(screens(kept_lines(Path(arguments[0]).read_text(encoding="utf-8")))), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
