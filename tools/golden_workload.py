"""A golden case's workload: SQL text with directives in its comments.

In:  the text of tests/golden/workloads/NAME.sql.
Out: Workload: on which servers it runs, what the decoder must refuse of it, its statements.

A directive is a line of its own, `-- word: rest`; every other comment is for the reader. A statement ends with a
semicolon at the end of a line.

    -- needs: mysql >= 8.0.20, mariadb >= 10.3 < 11    any of these; without it every server will do
    -- held: t UnsupportedValue            decoding must hold table t for this reason (an error's class)
    -- unlogged: t                         the server changes rows of t without logging them: no truth for it
    -- tolerates: 1234                     go on after this error number
    -- connect: NAME                       the statements from here on run in the session of this name
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

_DIRECTIVE = re.compile(r"-- (needs|held|unlogged|tolerates|connect): (.*)")
_BOUND = re.compile(r"(>=|<)\s*([0-9.]+)")


@dataclass(slots=True)
class Workload:
    """statements: (session's name, SQL without its semicolon)."""

    name: str
    needs: list[str] = field(default_factory=list)
    held: dict[str, str] = field(default_factory=dict)
    unlogged: set[str] = field(default_factory=set)
    tolerates: set[int] = field(default_factory=set)
    statements: list[tuple[str, str]] = field(default_factory=list)

    def runs_on(self, flavour: str, version: tuple[int, ...]) -> bool:
        """Whether a server of this flavour ("mysql" | "mariadb") and version knows what the workload uses."""
        return not self.needs or any(_meets(need, flavour, version) for need in self.needs)


def read_workload(path: Path) -> Workload:
    made = Workload(path.stem)
    session, lines = "main", []
    for line in path.read_text().splitlines():
        found = _DIRECTIVE.fullmatch(line)
        if found is not None:
            session = _direct(made, found[1], found[2], session)
            continue
        if not lines and (not line.strip() or line.startswith("--")):
            continue
        lines.append(line)
        if line.rstrip().endswith(";"):
            made.statements.append((session, "\n".join(lines).rstrip()[:-1]))
            lines = []
    if lines:
        raise ValueError(f"{path}: no semicolon after {lines[0]!r}")
    return made


def _direct(made: Workload, word: str, rest: str, session: str) -> str:
    if word == "needs":
        made.needs += [need.strip() for need in rest.split(",")]
    elif word == "held":
        table, error = rest.split()
        made.held[table] = error
    elif word == "unlogged":
        made.unlogged |= set(rest.split())
    elif word == "tolerates":
        made.tolerates |= {int(number) for number in rest.split()}
    else:
        return rest.strip()
    return session


def _meets(need: str, flavour: str, version: tuple[int, ...]) -> bool:
    if need.split(maxsplit=1)[0] != flavour:
        return False
    for sign, text in _BOUND.findall(need):
        bound = tuple(int(part) for part in text.split("."))
        if (version >= bound) != (sign == ">="):
            return False
    return True
