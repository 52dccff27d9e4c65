"""What the soak's pipeline file keeps, and which tables may be held, for which reason.

In:  what the faults did to the file and to tables.
Out: the file, rewritten in one step while others read it; Kept.unexplained(): held tables that no fault explains.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from tests.soak.plan import TABLES
from tests.soak.source import DATABASE
from tidegate.standing.standing import Standing

# A cause that a fault gave -> what control/table_states may then say.
_REASONS: Final = {
    "asked": r"waits for approval",
    "statement": r"silver lacked rows of it when it was left out|statement|changes rows that the binlog does not show",
    "renamed": r"renamed from another table|RenamedWithHeld|waits with|together with"
    r"|the table that had the rows isn't in silver"
    # What a table lacks since a RENAME is said of its newest version, when it is kept again.
    r"|changed rows that the binlog does not show",
    "left": r"bronze no longer reaches back|and bronze begins after"
    r"|silver lacked rows of it when it was left out|another selection of tables",
    "hands": r"the binlog deletes a row that silver does not hold",  # somebody's row of a table without a key
    "silver": r"its silver is gone|its silver is older|took its silver back|silver lacked rows of it when it was left",
}


class Causes(NamedTuple):
    """At a moment: of each table; how many were explained before."""

    of: Mapping[str, frozenset[str]]
    explained: int


class Kept:
    """excluded: the tables that the file leaves out now."""

    def __init__(self, file: Path, head: str, rules: str = "") -> None:
        """rules: more keys of `tables`, each behind a comma."""
        self._file, self._head, self._rules = file, head, rules
        self.excluded: tuple[str, ...] = ()
        self._causes: dict[str, set[str]] = defaultdict(set)
        self._explained: list[tuple[str, str]] = []
        self.write((), listed=False)

    def write(self, excluded: tuple[str, ...], *, listed: bool) -> None:
        """listed: by the names of those that are kept, instead of all but some."""
        names = [name for name in ("txns", *TABLES) if name not in excluded]
        include = [f"{DATABASE}.{name}" for name in names] if listed else [f"{DATABASE}.*"]
        left_out = [] if listed else [f"{DATABASE}.{name}" for name in excluded]
        for name in {*excluded, *self.excluded}:
            self.explain(name, "left")
        self.excluded = excluded
        beside = self._file.with_suffix(".new")
        beside.write_text(f"{self._head}tables: {{include: {include}, exclude: {left_out}{self._rules}}}\n")
        beside.replace(self._file)

    def explain(self, table: str, cause: str) -> None:
        """From now on, until all is settled, this table may be held for this cause."""
        self._causes[table].add(cause)
        self._explained.append((table, cause))

    def causes(self) -> Causes:
        """For a backup that begins now."""
        return Causes({table: frozenset(causes) for table, causes in self._causes.items()}, len(self._explained))

    def put_back(self, causes: Causes) -> None:
        """The lake is as it was then, and all that came since comes again."""
        since = self._explained[causes.explained :]
        for table, cause in [*((table, one) for table, those in causes.of.items() for one in those), *since]:
            self._causes[table].add(cause)

    def settled(self) -> None:
        """No table waits; one that is left out meets all that came meanwhile when it is kept again."""
        left = {name: self._causes[name] | {"left"} for name in self.excluded}
        self._causes.clear()
        for name, causes in left.items():
            for cause in sorted(causes):
                self.explain(name, cause)

    def unexplained(self, held: Mapping[str, Standing]) -> list[str]:
        """held: logical table -> its last state."""
        found = []
        for name, event in sorted(held.items()):
            causes = self._causes[name.removeprefix(f"{DATABASE}.").removesuffix("_away")]
            said = f"{event.cause} {event.fault} {event.partner}: {event.reason}"
            if not any(re.search(_REASONS[cause], said) for cause in causes):
                found.append(f"{name} ({', '.join(sorted(causes)) or 'no cause'}): {said}")
        return found
