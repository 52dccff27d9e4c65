"""Which tables with a key are read from one view, and what is locked beside them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tidegate.schema.model.columns import Column, TableVersion
from tidegate.schema.model.unlogged import ForeignKey
from tidegate.snapshot.by_view import Beside, read_by_view
from tidegate.snapshot.view_reading import TablesBusy
from tidegate.snapshot.watermark import Mark, MarkKind

Name = tuple[str, str]


def _version(name: str, *keys: ForeignKey) -> TableVersion:
    columns = (Column(1, "id", "int", nullable=False), Column(2, "up", "int"))
    return TableVersion("s", "d", name, 1, 0, "", 0, "create", "", columns, (1,), "utf8mb4", foreign_keys=keys)


def _key(parent: str, on_delete: str = "CASCADE", on_update: str = "", *, logged: bool = False) -> ForeignKey:
    return ForeignKey(f"to_{parent}", ("d", parent), on_delete, on_update, logged, ("up",), ("id",))


@dataclass
class _Server:
    tables: list[TableVersion]
    shown: list[Name] = field(default_factory=list)
    is_mariadb: bool = False
    is_tidb: bool = False

    def ask(self, _: str) -> list[Name]:
        return self.shown

    def versions(self, _: str, names: Iterable[Name]) -> dict[Name, TableVersion]:
        wanted = set(names)
        return {(t.database, t.table): t for t in self.tables if (t.database, t.table) in wanted}


def _by_view(server: Any, rows: int = 0) -> set[str]:
    versions = {(t.database, t.table): t for t in server.tables}
    return {table for _, table in read_by_view(versions, server, dict.fromkeys(versions, rows))}


@pytest.mark.parametrize(
    ("keys", "is_tree"),
    [
        ((_key("t"),), True),
        ((_key("t", "SET NULL"),), False),
        ((_key("t", "SET NULL", "CASCADE"),), False),
        ((_key("t", logged=True),), False),
        ((_key("t", "SET NULL"), _key("p")), True),
    ],
)
def test_a_tree_whose_rows_go_with_one_another_is_read_so_whatever_its_size(
    keys: tuple[ForeignKey, ...], *, is_tree: bool
) -> None:
    assert _by_view(_Server([_version("t", *keys)]), rows=10**10) == ({"t"} if is_tree else set())


def test_the_middle_of_a_chain_is_read_so_unless_it_is_large() -> None:
    chain = [_version("p"), _version("m", _key("p")), _version("g", _key("m"))]
    assert _by_view(_Server(chain)) == {"m"}
    assert _by_view(_Server(chain), rows=10**10) == set()
    assert _by_view(_Server(chain[1:2])) == set(), "nobody sees what is below it"
    assert _by_view(_Server(chain[1:2], shown=[("D", "M")])) == {"m"}
    assert _by_view(_Server(chain, is_tidb=True)) == set()


def test_all_tables_above_are_locked_where_the_view_has_the_marks_place() -> None:
    chain = [_version("p"), _version("q", _key("p")), _version("m", _key("q"), _key("m"), _key("gone"))]
    server: Any = _Server(chain)
    beside = Beside([("d", "m")], server, "s")
    assert beside.names == [("d", "p"), ("d", "q")]
    beside.check_same()
    server.tables[0] = _version("p", _key("q"))
    beside.check_same()
    server.tables += [_version("gone")]
    with pytest.raises(TablesBusy):
        beside.check_same()
    server.is_mariadb = True
    assert Beside([("d", "m")], server, "s").names == []


def test_a_mark_says_that_its_view_is_exact_and_one_of_an_earlier_release_does_not() -> None:
    plain = Mark("s", 1, MarkKind.HIGH, "t")
    exact = Mark("s", 1, MarkKind.HIGH, "t", exact=True)
    assert Mark.from_text(exact.to_text()) == exact
    assert Mark.from_text(plain.to_text()) == plain
    assert "exact" not in plain.to_text()
