"""Tables in several modes of silver at once, and a pipeline file that changes these modes.

In:  a seeded random.Random.
Out: mixed(): tables by name; MixedSettings: the file of a hostile run over them.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from tests.soak.hostile.settings import Settings
from tests.soak.modes.tables import Table, rules
from tests.soak.source import DATABASE

KINDS: Final = {"keyed": 4, "pairs": 3, "notes": 3, "bag": 2}
_WORDS: Final = ("history", "soft", "changelog", "masked", "filtered", "picked", "renamed", "computed")
_PASTS: Final = frozenset(("history", "soft", "changelog"))
_BAG_WORDS: Final = ("soft", "changelog", "filtered", "renamed")
# What docs/ say that a table can't have together.
APART: Final = (
    *(("history", "soft"), ("changelog", "masked"), ("changelog", "filtered"), ("changelog", "picked")),
    ("soft", "filtered"),
)


def mixed(rng: random.Random) -> dict[str, Table]:
    """Every second one of a kind has the same rules, mostly, and a past of its own."""
    tables = {}
    for kind, count in KINDS.items():
        for first in (0, 1):
            like = Table(kind, "plain", own=rng.randrange(2))
            rules = [word for word in words_of(like) if word not in _PASTS and rng.random() < 0.5]
            for n in range(first, count, 2):
                table = replace(like, called=f"{kind}_{n}")
                pasts = [word for word in words_of(table) if word in _PASTS and rng.random() < 0.5]
                tables[table.name] = _fitting(table, [*rules, *pasts], rng)
    return tables


def words_of(table: Table) -> Sequence[str]:
    return _WORDS if table.key else _BAG_WORDS


def _fitting(table: Table, words: Iterable[str], rng: random.Random) -> Table:
    """With those of the words that fit together."""
    words = list(words)
    apart = list(APART)
    if table.own == 0 and table.kind != "pairs":
        apart.append(("picked", "computed"))  # it is computed from what is left out
    for pair in apart:
        if set(pair) <= set(words):
            words.remove(rng.choice(pair))
    return replace(table, mode="_".join(words) or "plain")


class MixedSettings(Settings):
    """tables: as the file has them now. edited: those whose rules have changed since somebody cleared it."""

    def __init__(self, file: Path, head: str, tables: Mapping[str, Table]) -> None:
        self.tables = dict(tables)
        self.edited: set[str] = set()
        super().__init__(file, head, [f"{DATABASE}.*"])

    def edit(self, rng: random.Random, tables: Sequence[str]) -> str:
        if rng.random() < 0.4:
            left = set(self.excluded)
            said = super().edit(rng, tables)
            self.edited |= {name.partition(".")[2] for name in self.excluded ^ left}
            return said
        table = self.tables[rng.choice(list(self.tables))]
        word = rng.choice([*words_of(table), "others"])
        words = [] if table.mode == "plain" else table.mode.split("_")
        if word == "others":
            table = replace(table, own=1 - table.own)
        elif word in words:
            words.remove(word)
        else:
            words.append(word)
        self.tables[table.name] = _fitting(table, words, rng)
        self.edited.add(table.name)
        self.write()
        return f"{table.name}: {self.tables[table.name].mode}, rules {table.own}"

    def are_alike(self, one: str, other: str) -> bool:
        """Whether silver has their rows in the same form; a past may be kept of one alone."""
        first, second = self.tables[one], self.tables[other]
        apart = set(first.mode.split("_")) ^ set(second.mode.split("_"))
        return first.own == second.own and apart <= {*_PASTS, "plain"}

    def _tables(self) -> str:
        exclude = [f"'{name}'" for name in sorted(self.excluded)]
        return f"{{include: ['{DATABASE}.*'], exclude: [{', '.join(exclude)}]{rules(DATABASE, self.tables.values())}}}"
